"""Embedding tables over the chips of machines: which chips hold a recommender together, and what a plan says of it.

To answer, the fewest chips of one machine that hold the tables work as one copy: an exchange between machines in every pass
would cost more than it saves. In training the tables are split over all chips of the job; over several machines only where
their network is stated, or where the chips' own links reach from one to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chipwise.perf.published_vision import VisionCase
from chipwise.planner.fleet import Shape, linked
from chipwise.planner.kinds.ways import COUNT, MEMORY, Cannot
from chipwise.planner.reasons.sizes import HoldsTooLittle, NeedsNetwork
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import Copies, SampleTrainingSplit
from chipwise.predictor.sampled import ROOM, Sampled, shared_tables

STATES = (
    "Adam's 16 bytes are counted for every entry of the tables in training; row-wise optimisers, as many recommenders have, "
    "need about a quarter of that."
)


def lacking(ask: Sampled) -> Cannot | None:
    """Too little memory for a single sample."""
    needed, room = sum(ask.memory(1.0).values()), ROOM * ask.part.memory_bytes
    if needed <= room:
        return None
    spread = f" a chip with its tables over {ask.table_ways:g}" if ask.table_ways > 1 else ""
    return Cannot(HoldsTooLittle(ask.part.name, room, needed, f"{ask.model}{spread}"), needed / room, MEMORY)


def fitted_copy(ask: Sampled, chips: int) -> Sampled | Cannot:
    """On one chip where it holds all; else one copy over the fewest chips of a machine that hold its tables together."""
    if ask.fits(1.0) or not ask.tables or ask.part.kind == "edge":
        return lacking(ask) or ask
    shared = [replace(ask.split(many), chips=float(many)) for many in range(2, chips + 1) if chips % many == 0]
    fitting = next((one for one in shared if one.fits(1.0)), None)
    if fitting is not None:
        return fitting
    nearest = lacking(shared[-1] if shared else ask)
    assert nearest is not None
    return nearest


def trained(ask: Sampled, shape: Shape, machines: Sequence[float]) -> list[Sampled] | Cannot:
    """One for each number of machines on which it can be trained; numbers that are too few for the tables are left out."""
    spread = [
        replace(
            ask,
            chips=float(count * shape.chips),
            node=float(shape.chips),
            table_ways=count * shape.chips if ask.tables else 1.0,
        )
        for count in machines
        if not ask.tables or count == 1 or _joined(ask, shape, count)
    ]
    if not spread:
        return Cannot(NeedsNetwork(), passed=COUNT)
    fitting = [one for one in spread if one.fits(1.0)]
    if fitting:
        return fitting
    nearest = lacking(spread[-1])
    assert nearest is not None
    return nearest


def training_cases(passes: Sequence[tuple[Sampled, float]]) -> list[VisionCase]:
    """What `Sampled.case` makes of every pass. Of those that are `trained` on one shape of machine, only the numbers of chips,
    of samples and of chips that share tables differ."""
    cases: list[VisionCase] = []
    firsts: dict[tuple[str, float | None, str], VisionCase] = {}
    for ask, batch in passes:
        shape = (ask.part.name, ask.node, ask.precision)
        if shape not in firsts:
            firsts[shape] = replace(ask, chips=1.0).case(1.0, "samples_per_s")
        first, chips = firsts[shape], float(f"{ask.chips:g}")
        cases.append(
            replace(
                first,
                chips=chips,
                copies=chips * first.copies,
                batch=max(float(f"{batch:g}"), 1.0),
                table_ways=ask.table_ways,
            )
        )
    return cases


def _joined(ask: Sampled, shape: Shape, machines: float) -> bool:
    return shape.fabric > 0 or linked(ask.part, shape.chips) >= machines * shape.chips


def noted(plan: Plan) -> Plan:
    """A plan that tells where its tables lie, and that nobody measured their exchange."""
    split = plan.winner.split if plan.winner is not None else None
    if not isinstance(split, Copies | SampleTrainingSplit) or split.tables < 2:
        return plan
    return replace(
        plan,
        notes=(*plan.notes, shared_tables(split.tables), *((STATES,) if plan.per == "job" and plan.kind != "batch" else ())),
    )
