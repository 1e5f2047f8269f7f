"""Numerical work and rendering over chips and machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.perf.kernels import hpc, render, timed
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.kernels.timed import TimedRun
from chipwise.perf.model import CARRIED
from chipwise.perf.part import Part
from chipwise.perf.power import Utilisation
from chipwise.perf.seen import FORMULA
from chipwise.planner.fleet import MOST_CHIPS, placed
from chipwise.planner.kinds.planning import plan_ways, remarked
from chipwise.planner.kinds.unknown import USE, foreign
from chipwise.planner.kinds.ways import (
    MEMORY,
    Cannot,
    Ground,
    Question,
    Table,
    Way,
    Ways,
    ground_of,
    machine_counts,
    no_count,
    reading_s,
    unable,
    worthwhile,
)
from chipwise.planner.pricing import Checkpoint
from chipwise.planner.reasons.sizes import HoldsTooLittle
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import Frames, Runs
from chipwise.predictor.kinds.timing import frame_notes, run_notes, timed_frame, timed_runs
from chipwise.workload.kinds import Hpc, Render

TRACING = 1.0  # of the power model's compute share while rays are traced: renderers draw what the board allows
EMULATED = 0.2  # of the FP32 rate: below it double precision is there for correctness, not for speed


def plan_hpc(question: Question, work: Hpc) -> Plan:
    ground = ground_of(question.known, question.rules)
    state = Checkpoint(work.working_set or 0.0)
    runs = timed_runs(question.known, work)
    notes = (*run_notes(question.known, work, runs), *_hpc_notes(work))
    table = Table(kind="hpc", per="job", units=float(work.runs), unit="run", apart=False, checkpoint=state, notes=notes)
    plan = plan_ways(question, ground, table, lambda at: _hpc_ways(question, ground, work, at, runs))
    return remarked(plan, _double(ground)) if work.precision.value == "fp64" else plan


def _hpc_notes(work: Hpc) -> tuple[str, ...]:
    sent = work.communication.bytes_per_step
    return ("Each chip sends as much per step as the file says, whatever the number of chips.",) if sent else ()


def _too_small(question: Question, chips: int, least: int, part: Part, needed: float) -> Cannot:
    """No allowed number of machines holds it: more chips than are allowed, or more than are ever tried."""
    allowed = machine_counts(question, chips)
    if not len(allowed) or least * chips <= MOST_CHIPS:
        return no_count(question, chips, least=least)
    memory = float(allowed[-1]) * chips * hpc.USABLE_MEMORY * part.memory_bytes
    return Cannot(HoldsTooLittle(f"{allowed[-1] * chips:,.0f} {part.name}", memory, needed), needed / memory, MEMORY)


def _hpc_ways(question: Question, ground: Ground, work: Hpc, index: int, runs: Sequence[TimedRun]) -> Ways:
    """Over each number of machines: all chips on one run after the other, or groups of chips with a run each."""
    shape, part = ground.fleet.shapes[index], placed(ground.fleet, index)
    if (cannot := unable(part, "hpc")) is not None:
        return cannot
    if work.is_unknown and (cannot := foreign(part, runs)) is not None:
        return cannot
    room, needed = hpc.USABLE_MEMORY * part.memory_bytes, work.working_set or 0.0
    least = max(math.ceil(needed / (room * shape.chips)), 1)
    able = machine_counts(question, shape.chips, least)
    if not len(able):
        return _too_small(question, shape.chips, least, part, needed)
    chips = able * shape.chips
    best, low, high, groups = _fastest(work, part, chips, room, runs)
    reading = reading_s(question, ground, index, able)  # behind the work, so the longer of the two counts
    best, low, high = (np.maximum(one, reading) for one in (best, low, high))
    share = needed * groups / (chips * part.memory_bytes) if needed else None
    used_s = USE.compute * best * chips
    spent_s = (used_s, used_s) if work.is_unknown else _least_seconds(work, part)
    compute, memory = (spent / (best * chips) for spent in spent_s)
    return [
        Way(
            shape=index,
            machines=int(able[row]),
            seconds=float(best[row]),
            low=float(low[row]),
            high=float(high[row]),
            precision=work.precision.value,
            split=Runs(int(groups[row]), int(chips[row] // groups[row])),
            memory_share=None if share is None else float(share[row]),
            provenance=CARRIED if runs else FORMULA,
            use=Utilisation(float(compute[row]), float(memory[row])),
        )
        for row in worthwhile(question, best)
    ]


def _least_seconds(work: Hpc, part: Part) -> tuple[float, float]:
    """What one chip would take at the peak of the arithmetic that the steps are done with, and of its memory's bandwidth."""
    chips, step = Chips.of([part], work.precision.value), hpc.step_of(work)
    rate = chips.matrix_rate if step.matrix else chips.rate
    flop, moved = (float(np.sum(each * step.repeats)) * work.runs for each in (step.flop, step.moved))
    return flop / float(rate[0]), moved / part.bandwidth


def _fastest(work: Hpc, part: Part, chips: Array, room: float, runs: Sequence[TimedRun]) -> tuple[Array, Array, Array, Array]:
    """Seconds on so many chips, their low and high, and over how many runs side by side; of equals the fewest.

    All divisions are asked for at once: a question about one row costs as much as one about hundreds.
    """
    sides = np.arange(1.0, min(work.runs, chips.max()) + 1)
    fine = (chips % sides[:, None] == 0) & (chips / sides[:, None] * room >= (work.working_set or 0.0))
    side, row = np.nonzero(fine)
    terms = timed.job(work, part, chips[row] / sides[side], runs, at_once=sides[side])
    times = np.full((3, *fine.shape), np.inf)
    times[:, side, row] = terms.total, terms.low, terms.high
    first = np.argmin(times[0], axis=0)
    best, low, high = times[:, first, np.arange(len(chips))]
    return best, low, high, sides[first]


def _double(ground: Ground) -> Callable[[Choice], str]:
    def remark(choice: Choice) -> str:
        part = ground.fleet.parts[choice.chip]
        rate, single = float(Chips.of([part], "fp64").rate[0]), part.rate("fp32")
        if rate >= EMULATED * single:
            return ""
        return f"{choice.chip} does {rate / 1e12:.2g} TFLOP/s in double precision, of {single / 1e12:.0f} in single"

    return remark


def plan_render(question: Question, work: Render) -> Plan:
    known = question.known
    ground = ground_of(known, question.rules)
    timing = timed_frame(known, work)
    notes = [*frame_notes(known, work, timing)]
    if timing is None:
        notes.append("No frame was timed: the cost of a sample is a guess; give measured: {on: CHIP, takes: SECONDS}.")
    engine, scene = render.engine_of(work), work.scene or 0.0
    table = Table(kind="render", per="job", units=float(work.frames), unit="frame", checkpoint=None, notes=tuple(notes))

    def ways_of(index: int) -> Ways:
        shape, part = ground.fleet.shapes[index], ground.fleet.part(index)
        if (cannot := unable(part, "render")) is not None:
            return cannot
        renderers = render.Renderers.of([ground.fleet.catalog.chips[shape.chip]], [part])
        if not render.fits(renderers, scene, engine)[0]:
            room = render.USABLE_MEMORY * part.memory_bytes
            needed_by = f"the scene, which {engine} does not page"
            return Cannot(HoldsTooLittle(part.name, room, scene, needed_by), scene / room, MEMORY)
        counts = machine_counts(question, shape.chips)
        if not len(counts):
            return no_count(question, shape.chips)
        counts = counts[counts * shape.chips <= work.frames] if work.frames >= counts[0] * shape.chips else counts[:1]
        terms = render.job(work, renderers, counts * shape.chips, timing)
        share = min(scene / part.memory_bytes, 1.0) if scene else None
        return [
            Way(
                shape=index,
                machines=int(counts[row]),
                seconds=float(terms.total[row]),
                low=float(terms.low[row]),
                high=float(terms.high[row]),
                precision="fp32",
                split=Frames(int(counts[row]) * shape.chips),
                memory_share=share,
                use=Utilisation(TRACING * float(terms["tracing"][row] / terms.total[row]), 0.0),
            )
            for row in worthwhile(question, terms.total)
        ]

    return plan_ways(question, ground, table, ways_of)
