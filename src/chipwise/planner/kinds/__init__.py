"""Plans for everything but transformers on whole accelerators: a file for each family of work, `ways` for what they share.

Each file loads when its kind is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.planner.defaults import TOP, with_spot_default
from chipwise.planner.limits import Rules
from chipwise.planner.values.plan import Plan
from chipwise.predictor.kinds.ask import Ask, by_samples, kind_of, known_model
from chipwise.workload.common import Common
from chipwise.workload.goals import Where
from chipwise.workload.kinds import Batch, Hpc, Hybrid, Interactive, Learning, Render, Serve, Stream, Transcode

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

_ALWAYS = (Hpc, Render, Transcode, Stream, Hybrid, Interactive)


def handles(known: Known, path: str, work: Common) -> bool:
    """Whether it is planned here; transformers over tokens and pipelines are not."""
    if isinstance(work, Serve) and _at_the_edge(work):
        return True
    if isinstance(work, Learning | Serve | Batch):
        if work.is_unknown:
            return True
        shape = known_model(Ask(known, path, "", {}), work)[2]
        return by_samples(shape, "train" if isinstance(work, Learning) else "serve")
    return isinstance(work, _ALWAYS)


def _at_the_edge(work: Serve) -> bool:
    return work.devices is not None or Where.EDGE in work.limits.where


def plan_other(known: Known, path: str, work: Common, rules: Rules, objective: str | None = None, top: int = TOP) -> Plan:
    """`rules` are the workload's limits in the catalog's names."""
    from chipwise.planner.kinds.ways import Question

    question = Question(known=known, path=path, work=work, rules=with_spot_default(rules, work), objective=objective, top=top)
    match work:
        case Hpc() | Render():
            from chipwise.planner.kinds import hpc_render as computing

            return computing.plan_hpc(question, work) if isinstance(work, Hpc) else computing.plan_render(question, work)
        case Transcode():
            from chipwise.planner.kinds.video import plan_transcode

            return plan_transcode(question, work)
        case Stream():
            from chipwise.planner.kinds.streams import plan_stream

            return plan_stream(question, work)
        case Hybrid():
            from chipwise.planner.kinds.circuits import plan_hybrid

            return plan_hybrid(question, work)
        case Interactive():
            from chipwise.planner.kinds.notebooks import plan_interactive

            return plan_interactive(question, work)
        case Learning() | Serve() | Batch() if work.is_unknown:
            from chipwise.planner.kinds.unknown import plan_unknown

            return plan_unknown(question, work)
        case Serve() if _at_the_edge(work):
            from chipwise.planner.kinds.devices import plan_devices

            return plan_devices(question, work)
        case Serve() | Batch() | Learning():
            from chipwise.planner.kinds import sample_training, samples

            if isinstance(work, Learning):
                return sample_training.plan_learning(question, work)
            return samples.plan_serving(question, work) if isinstance(work, Serve) else samples.plan_batch(question, work)
    raise BadInput(f"{work.name}: work of the kind {kind_of(work)} is not planned yet.", remedy=f"chipwise predict {path}")
