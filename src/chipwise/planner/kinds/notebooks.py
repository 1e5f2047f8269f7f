"""People at notebooks: seats by memory, on whole chips, in slices of them, or in turns."""

from __future__ import annotations

import math

from chipwise.catalog.sharing import mig_profiles
from chipwise.perf.power import Utilisation
from chipwise.planner.kinds.planning import plan_ways
from chipwise.planner.kinds.ways import MEMORY, Cannot, Ground, Question, Table, Way, Ways, ground_of, machines_within, unable
from chipwise.planner.reasons.abilities import SharedSlice
from chipwise.planner.reasons.sizes import HoldsTooLittle
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import Seats
from chipwise.units import GIB, HOUR
from chipwise.workload.choices import Sharing
from chipwise.workload.kinds import Interactive

AT_WORK = 0.5  # of a chip's peaks, while somebody's program runs on it


def plan_interactive(question: Question, work: Interactive) -> Plan:
    ground = ground_of(question.known, question.rules)
    seats = float(work.at_once or work.people)
    notes = ["Counted by memory; how fast a notebook is depends on what people run."]
    if work.data is not None:
        notes.append("Keeping the data for the month is not in the cost; bringing it there is.")
    table = Table(kind="interactive", per="month", units=seats * question.month_s / HOUR, unit="seat hour", notes=tuple(notes))
    return plan_ways(question, ground, table, lambda at: _seats(question, ground, work, at))


def _seats(question: Question, ground: Ground, work: Interactive, index: int) -> Ways:
    shape, part = ground.fleet.shapes[index], ground.fleet.part(index)
    if (cannot := unable(part, "interactive")) is not None:
        return cannot
    if shape.share < 1 and work.sharing is Sharing.NONE:
        return Cannot(SharedSlice(part.name))
    needed = max(math.ceil(work.memory / part.memory_bytes - 1e-9), 1)  # chips of one person
    if needed > 1 and (shape.share < 1 or needed > shape.chips):
        room = shape.chips * part.memory_bytes
        return Cannot(
            HoldsTooLittle(f"{shape.chips} {part.name}", room, work.memory, "each person"), work.memory / room, MEMORY
        )
    sharers, profile = 1, ""
    if needed == 1 and shape.share == 1 and work.sharing is Sharing.SLICES:
        sharers, profile = _sliced(ground, work, shape.chip)
    elif needed == 1 and work.sharing is Sharing.TIME:
        sharers = max(int(part.memory_bytes // work.memory), 1)
    seats = float(work.at_once or work.people)
    inside = shape.chips // needed * sharers
    machines = machines_within(question, shape.chips, math.ceil(seats / inside))
    if isinstance(machines, Cannot):
        return machines
    slower = 1.0 + (sharers - 1.0) * work.busy if work.sharing is Sharing.TIME else 1.0
    split = Seats(sharers, needed, round((slower - 1) * 100))
    busy = min(work.busy * seats * needed / (machines * shape.chips), 1.0)  # of a chip's time, over all seats on it
    month = question.month_s
    return [
        Way(
            shape=index,
            machines=machines,
            seconds=month,
            low=month,
            high=month,
            precision=profile,
            split=split,
            memory_share=min(work.memory * sharers / (part.memory_bytes * needed), 1.0),
            replicas=None,
            use=Utilisation(AT_WORK * busy, AT_WORK * busy),
        )
    ]


def _sliced(ground: Ground, work: Interactive, chip: str) -> tuple[int, str]:
    """Slices of a chip that are large enough, the most of them; a chip that cannot be cut is one seat."""
    fitting = [
        profile
        for profile in mig_profiles(ground.fleet.catalog.data)
        if profile.chip == chip and (profile.memory_gb or 0) * GIB >= work.memory and profile.instances
    ]
    if not fitting:
        return 1, ""
    best = max(fitting, key=lambda one: one.instances or 0)
    return int(best.instances or 1), best.profile
