"""Work of which only a run is known: copies of it side by side on as many chips as it takes, by what chips' sheets say.

A pile is taken to split evenly over chips, and a service to answer as many requests at a time as the run did. A training keeps
to as many chips as it ran on, unless the limits ask for more. Nothing tells how much memory it needs but the chip that it
ran on, so smaller ones are not taken unless the file says how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chipwise.perf.arrays import Array, column
from chipwise.perf.kernels import timed
from chipwise.perf.kernels.timed import TimedRun
from chipwise.perf.kernels.work import Terms
from chipwise.perf.model import CARRIED
from chipwise.perf.part import Part
from chipwise.perf.power import Utilisation
from chipwise.planner.kinds.planning import plan_ways
from chipwise.planner.kinds.samples import Answers, lone_chance, machines_for, service_rates, service_way, surely_planned
from chipwise.planner.kinds.ways import (
    COUNT,
    KIND,
    MEMORY,
    TIME,
    Cannot,
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
from chipwise.planner.reasons.abilities import Unpredicted
from chipwise.planner.reasons.goals import TooSlow
from chipwise.planner.reasons.sizes import HoldsTooLittle
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import Copies
from chipwise.predictor.batching import Curve
from chipwise.predictor.kinds.ask import kind_of
from chipwise.predictor.kinds.latencies import share_of, wanted_goals
from chipwise.predictor.kinds.unknown import format_of, memory_needed, most_chips, unknown_notes, unknown_runs
from chipwise.text import plural
from chipwise.workload.kinds import Batch, Learning, Serve

USE = Utilisation(0.5, 0.5)  # of arithmetic and bandwidth, for the power: rule of thumb


def plan_unknown(question: Question, work: Learning | Serve | Batch) -> Plan:
    known, ground = question.known, ground_of(question.known, question.rules)
    runs = unknown_runs(known, work)
    needed, precision = memory_needed(work, runs), format_of(work)
    task = "train" if isinstance(work, Learning) else "serve"
    most = most_chips(work, runs)
    is_stated = any(line.memory is not None for line in work.measured or ())
    load = _Load(question, work) if isinstance(work, Serve) else None

    def ways_of(index: int) -> Ways:
        shape, part = ground.fleet.shapes[index], ground.fleet.part(index)
        if (cannot := unable(part, task)) is not None:
            return cannot
        if (cannot := foreign(part, runs)) is not None:
            return cannot
        if part.memory_bytes < needed:
            short = HoldsTooLittle(
                part.name, part.memory_bytes, needed, "the run" if is_stated else "the run, which had as much"
            )
            return Cannot(short, needed / part.memory_bytes, MEMORY)
        if load is not None:
            return load.ways(index, shape.chips, timed.shared(part, runs, precision, 1.0), precision)
        counts = machine_counts(question, shape.chips)
        if not len(counts):
            return no_count(question, shape.chips)
        counts = counts[counts * shape.chips <= most]
        if not len(counts):
            return Cannot(Unpredicted(f"nothing tells how it scales past {plural(most, 'chip')}, as it ran"), passed=COUNT)
        terms = timed.shared(part, runs, precision, counts * shape.chips)
        return _job(question, index, shape.chips, counts, terms, reading_s(question, ground, index, counts), precision)

    return plan_ways(question, ground, _table(question, work, unknown_notes(known, work, runs), load), ways_of)


def foreign(part: Part, runs: Sequence[TimedRun]) -> Cannot | None:
    """A chip with software of another vendor, on which nothing tells whether it runs."""
    vendors = {(run.part.vendor, run.part.kind) for run in runs}
    if (part.vendor, part.kind) in vendors:
        return None
    ran = " or ".join(sorted(run.part.name for run in runs))
    return Cannot(Unpredicted(f"nothing tells whether it runs there: only a run on {ran} is known"), passed=KIND)


def _table(question: Question, work: Learning | Serve | Batch, notes: tuple[str, ...], load: _Load | None) -> Table:
    if load is not None:
        return Table(
            kind="serve",
            per="month",
            units=load.mean * question.month_s / 1e6,
            unit="million requests",
            notes=(*notes, *load.notes),
            peak=load.peak,
        )
    if isinstance(work, Batch):
        return Table(kind="batch", per="job", units=work.items / 1e6, unit="million items", notes=notes)
    samples = getattr(work, "samples", None) or getattr(work, "tokens", None)
    amount, unit = (1.0, "job") if samples is None else (samples * getattr(work, "epochs", 1.0) / 1e6, "million samples")
    saved = Checkpoint(0.0, every_s=getattr(work, "checkpoint_every", None))
    return Table(kind=kind_of(work), per="job", units=amount, unit=unit, apart=False, checkpoint=saved, notes=notes)


def _job(question: Question, index: int, chips: int, counts: Array, terms: Terms, reading: Array, precision: str) -> list[Way]:
    return [
        Way(
            shape=index,
            machines=int(counts[row]),
            seconds=float(max(terms.total[row], reading[row])),
            low=float(max(terms.low[row], reading[row])),
            high=float(max(terms.high[row], reading[row])),
            precision=precision,
            split=Copies(int(counts[row]) * chips, 1),
            provenance=CARRIED,
            replicas=int(counts[row]) * chips,
            use=USE,
        )
        for row in worthwhile(question, terms.total)
    ]


class _Load:
    """Requests that come, to a model of which only a run is known."""

    def __init__(self, question: Question, work: Serve) -> None:
        self.question, self.work = question, work
        wanted = {share_of(percentile): limit for _, percentile, limit in wanted_goals(work.goals, {})}
        is_timed = any(line.rate is None for line in work.measured or ())
        self.goals = wanted if is_timed else {}
        self.notes: tuple[str, ...] = ()
        if wanted and not is_timed:
            self.notes = ("goals: a rate tells nothing of a latency; give the time of a request (takes) to hold them.",)
        arrival = work.arrival
        self.mean = self.peak = float(arrival.concurrency or 1) / min(wanted.values(), default=1.0)  # callers who each wait
        if arrival.concurrency is None:
            from chipwise.planner.load.plan import arrivals

            curve = arrivals(question.known, work, question.path).curve
            self.mean, self.peak = float(curve.mean), float(curve.peak)

    def ways(self, index: int, chips: int, terms: Terms, precision: str) -> Ways:
        work, request_s = self.work, float(terms.total[0])
        planned, capacity = service_rates(Curve(column(1.0), column(request_s), 1.0), self.goals, work, self.peak)
        if self.goals and capacity <= 1e-3:
            limit = min(self.goals.values())
            return Cannot(TooSlow("latency of a single request", request_s, limit), request_s / limit, TIME)
        spread = float(terms.high[0] / terms.total[0])
        planned = surely_planned(work, planned, capacity, spread)
        machines = machines_for(self.question, work, chips, chips, self.peak / planned)
        if isinstance(machines, Cannot):
            return machines
        answers = Answers(planned, capacity, spread, lone_chance(self.goals, request_s, spread))
        way = service_way(self.question, index, machines, Copies(machines * chips, 1), answers, USE, self.peak)
        return [replace(way, precision=precision, provenance=CARRIED)]
