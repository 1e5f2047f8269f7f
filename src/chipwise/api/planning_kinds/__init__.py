"""Plans for everything but transformers on whole accelerators: a file for each family of work, `ways` for what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.api.planning_kinds.circuits import plan_hybrid
from chipwise.api.planning_kinds.computing import plan_hpc, plan_render
from chipwise.api.planning_kinds.flowing import plan_stream, plan_transcode
from chipwise.api.planning_kinds.on_devices import at_the_edge, plan_devices
from chipwise.api.planning_kinds.people import plan_interactive
from chipwise.api.planning_kinds.samples import plan_batch, plan_learning, plan_serving
from chipwise.api.planning_kinds.ways import Question
from chipwise.api.predicting_kinds.ask import Ask, kind_of, known_model
from chipwise.api.predicting_samples import by_samples
from chipwise.errors import BadInput
from chipwise.plan.decision import Plan
from chipwise.plan.limits import Rules
from chipwise.workload.kinds import Batch, Common, Hpc, Hybrid, Interactive, Learning, Render, Serve, Stream, Transcode

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

_ALWAYS = (Hpc, Render, Transcode, Stream, Hybrid, Interactive)


def handles(session: Session, path: str, work: Common) -> bool:
    """Whether it is planned here; transformers over tokens and pipelines are not."""
    if isinstance(work, Serve) and at_the_edge(work):
        return True
    if isinstance(work, Learning | Serve | Batch):
        shape = known_model(Ask(session, path, "", {}), work)[2]
        return by_samples(shape, "train" if isinstance(work, Learning) else "serve")
    return isinstance(work, _ALWAYS)


def plan_other(session: Session, path: str, work: Common, rules: Rules, objective: str | None = None, top: int = 10) -> Plan:
    """`rules` are the workload's limits in the catalog's names."""
    question = Question(session, path, work, rules, objective, top)
    match work:
        case Hpc():
            return plan_hpc(question, work)
        case Render():
            return plan_render(question, work)
        case Transcode():
            return plan_transcode(question, work)
        case Stream():
            return plan_stream(question, work)
        case Hybrid():
            return plan_hybrid(question, work)
        case Interactive():
            return plan_interactive(question, work)
        case Serve():
            return plan_devices(question, work) if at_the_edge(work) else plan_serving(question, work)
        case Batch():
            return plan_batch(question, work)
        case Learning():
            return plan_learning(question, work)
    raise BadInput(f"{work.name}: work of the kind {kind_of(work)} is not planned yet.", remedy=f"chipwise predict {path}")
