"""Models that are counted by samples: trained, served or run over a pile, on whole chips, slices and processors.

Serving: a chip answers so many requests a second while the latency goals hold (`Curve.highest_rate`) and is planned for a part
of them that leaves the headroom free, 80% of what it can at most. Training: copies side by side; where the batch of a copy has
no room it is passed in pieces.
A recommender whose tables no chip holds alone is split over the chips of a machine, in training of the job (`tables`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from chipwise.calibration.anchored import Anchored
from chipwise.errors import BadInput
from chipwise.perf.kernels.edge import ON_CHIP
from chipwise.perf.model import CARRIED, Estimate
from chipwise.perf.power import Utilisation
from chipwise.perf.published_vision import FORMATS
from chipwise.perf.queueing import UTILISATION
from chipwise.perf.seen import FORMULA
from chipwise.perf.under_load import HIGHEST_USED
from chipwise.planner.chances import carried, chance_of, sure_factor
from chipwise.planner.defaults import SPARED_COST, spared_headroom
from chipwise.planner.fleet import placed
from chipwise.planner.kinds.planning import plan_ways
from chipwise.planner.kinds.sample_notes import size_notes
from chipwise.planner.kinds.tables import fitted_copy, noted
from chipwise.planner.kinds.ways import (
    COUNT,
    FORMAT,
    TIME,
    Cannot,
    Ground,
    Question,
    Table,
    Way,
    Ways,
    ground_of,
    machine_counts,
    machines_within,
    no_count,
    reading_s,
    unable,
    worthwhile,
)
from chipwise.planner.reasons.abilities import NoPrecision, Unpredicted
from chipwise.planner.reasons.goals import TooSlow
from chipwise.planner.reasons.sizes import NeedsReplicas
from chipwise.planner.values.load import AtLess
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import Copies
from chipwise.predictor.batching import Curve
from chipwise.predictor.formats import usual_precision
from chipwise.predictor.kinds.answering import load_of
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.predictor.kinds.latencies import share_of, wanted_goals
from chipwise.predictor.known import Known
from chipwise.predictor.sampled import Sampled
from chipwise.predictor.samples import programs_of, resolve, sample_curve
from chipwise.predictor.sizes import check_sizes, sizes_of
from chipwise.workload.kinds import Batch, Serve
from chipwise.workload.model.shape import Shape
from chipwise.workload.schedule import Bursts

_SELDOM = ("fp8", "fp4")  # formats for language models: others run in them only where nothing else is allowed
NARROWER = "int8"  # looked at for what it would save
HALVINGS = 18  # of the span of rates: to a tenth of a percent
_OF_A_SAMPLE = ("input_tokens", "output_tokens", "precision")


def sampled_by_shape(
    question: Question, ground: Ground, model: str, settings: Mapping[str, Any], precisions: Sequence[str] = ()
) -> Callable[[int], Sampled | Cannot]:
    """What is asked of a shape's chip, if it can do it. Names are resolved once per chip of the catalog. Of `precisions` that
    the limits allow the fastest of a chip is taken, of equally fast ones the usual."""

    @cache
    def of_chip(chip: str) -> Sampled | Cannot:
        part, wanted = ground.known.parts[chip], settings.get("precision")
        if (cannot := unable(part, settings["task"])) is not None:
            return cannot
        if wanted is None and precisions:
            usual = usual_precision(None, part, settings["task"])
            able = [one for one in (usual, *precisions) if one in precisions and part.runs(one) and one in FORMATS]
            wanted = max([one for one in able if one not in _SELDOM] or able, key=part.rate, default=None)
            if wanted is None:
                return Cannot(NoPrecision(tuple(precisions), tuple(part.rates), chip), passed=FORMAT)
        if wanted is not None and not part.runs(wanted):
            return Cannot(NoPrecision((wanted,), tuple(part.rates), chip), passed=FORMAT)
        try:
            return resolve(ground.known, model, chip, settings if wanted is None else {**settings, "precision": wanted})
        except BadInput as error:
            return Cannot(Unpredicted(error.message))

    def of_shape(index: int) -> Sampled | Cannot:
        ask_of_chip = of_chip(ground.fleet.shapes[index].chip)
        if isinstance(ask_of_chip, Cannot):
            return ask_of_chip
        ask = replace(ask_of_chip, part=placed(ground.fleet, index))
        if ask.task == "train" and ask.tables:
            return ask  # it depends on the number of machines
        return fitted_copy(ask, ground.fleet.shapes[index].chips)

    return of_shape


def _in_formats(
    question: Question,
    ground: Ground,
    model: str,
    settings: Mapping[str, Any],
    work: Serve | Batch,
    ways_of: Callable[[int, Sampled], Ways],
) -> Callable[[int], Ways]:
    """Of every shape the ways in the format that is asked for, or usual; where none is stated, those in int8 beside them. There
    are hundreds of sizes of processors: in int8 they are looked at where nothing else may be used."""
    of_shape = sampled_by_shape(question, ground, model, settings, tuple(map(str, work.limits.precision)))
    stated = settings.get("precision") is not None or bool(work.limits.precision)
    narrower = None if stated else sampled_by_shape(question, ground, model, {**settings, "precision": NARROWER})
    parts = [ground.fleet.part(index) for index in ground.shapes]
    kinds = {part.kind for part in parts}
    worth = kinds if kinds == {"cpu"} else kinds - {"cpu"}
    has_wider = any(usual_precision(None, part, "serve") != NARROWER for part in parts)

    def ways_in_formats(index: int) -> Ways:
        ask = of_shape(index)
        ways = ask if isinstance(ask, Cannot) else ways_of(index, ask)
        if isinstance(ask, Cannot) or isinstance(ways, Cannot) or narrower is None:
            return ways
        if ask.precision == NARROWER and has_wider:  # a device that has no other format
            return [replace(way, unasked=True) for way in ways]
        if ask.precision == NARROWER or ask.part.kind not in worth:
            return ways
        beside = narrower(index)
        other = beside if isinstance(beside, Cannot) else ways_of(index, beside)
        return ways if isinstance(other, Cannot) else [*ways, *(replace(way, unasked=True) for way in other)]

    return ways_in_formats


def rate_of(work: Serve, settings: Mapping[str, Any], goals: Mapping[float, float]) -> float:
    """Requests per second; callers who each wait for an answer ask again as soon as the goals allow."""
    if "rate" in settings:
        return float(settings["rate"])
    callers = float(settings.get("concurrency", work.arrival.concurrency or 1))
    return callers / min(goals.values()) if goals else 0.0


def _goals(work: Serve) -> dict[float, float]:
    """By share of the requests; machines must be faster by what the round trip to the users takes."""
    travels = 0.0
    if work.traffic:
        from chipwise.planner.load.regions import network_s

        travels = network_s(work)
    wanted = wanted_goals(work.goals, {})
    return {share_of(percentile): limit - (travels if name != "tpot" else 0.0) for name, percentile, limit in wanted}


def _speech_notes(known: Known, shape: Shape) -> list[str]:
    programs = programs_of(known, shape)
    return [] if programs is None else [programs.words]


def plan_serving(question: Question, work: Serve) -> Plan:
    known, model, shape = known_model(Ask(question.known, question.path, "", {}), work)
    question = replace(question, known=known)
    ground = ground_of(known, question.rules)
    load, notes = load_of(Ask(known, question.path, "", {}), work)
    notes = [*size_notes(shape, work), *_speech_notes(known, shape), *notes]
    goals = _goals(work)
    peak = 1.0
    if any(one is not None for one in (work.arrival.rate, work.arrival.peak, work.arrival.trace)):
        from chipwise.planner.load.plan import arrivals

        curve = arrivals(known, work, question.path).curve
        load, peak = {**load, "rate": curve.mean}, curve.peak / curve.mean
    if isinstance(work.schedule, Bursts) and work.arrival.trace is None:
        notes.append(f"Machines are counted for the bursts, {peak:.3g} times the mean rate.")
    rate = rate_of(work, load, goals) * (work.devices or 1)
    loads: tuple[float, ...] = ()
    if goals:
        from chipwise.planner.load.plan import quieter_loads

        loads = quieter_loads(known, work, question.path)
    table = Table(
        kind="serve",
        per="month",
        units=rate * question.month_s / 1e6,
        unit="million requests",
        notes=tuple(notes),
        peak=rate * peak,
    )
    return noted(plan_ways(question, ground, table, serving_ways(question, ground, work, model, rate * peak, loads)))


def serving_ways(
    question: Question, ground: Ground, work: Serve, model: str, rate: float, loads: Sequence[float] = ()
) -> Callable[[int], Ways]:
    """`rate` in all: each machine takes its part of it; `loads`: lower ones at which fewer copies share bursts."""
    load, _ = load_of(Ask(ground.known, question.path, "", {}), work)
    settings: dict[str, Any] = {name: load[name] for name in _OF_A_SAMPLE if name in load} | sizes_of(work)
    check_sizes(ground.known.find_model(model), settings)
    settings |= {"task": "serve", "power_watts": work.limits.power_watts}
    goals = _goals(work)
    speeds: dict[tuple[str, float, str], tuple[float, float, float, float | None]] = {}
    curves: dict[tuple[str, float, str], Curve] = {}
    fewer: dict[tuple[str, float, str], AtLess] = {}
    passes: dict[tuple[str, float, str, float], Estimate] = {}

    def ways_of(index: int, ask: Sampled) -> Ways:
        shape = ground.fleet.shapes[index]
        place = (ask.part.name, ask.together, ask.precision)
        if place not in speeds:
            curve = curves[place] = sample_curve(ask)
            fastest = float(np.min(curve.seconds))
            chance = None
            if goals:
                alone = ask.passes([1.0 / ask.together], "samples_per_s")
                chance = lone_chance(goals, fastest, float(alone.value[0] / max(alone.low[0], 1e-12)))
            speeds[place] = (*service_rates(curve, goals, work, rate), fastest, chance)
            at_peak = speeds[place][0]
            fewer[place] = tuple((load, min(service_rates(curve, goals, work, load)[0], at_peak)) for load in loads)
        planned, capacity, fastest, chance = speeds[place]
        if goals and capacity <= 1e-3:  # without goals a sample may take as long as it does
            limit = min(goals.values())
            return Cannot(TooSlow("latency of a single sample", fastest, limit), fastest / limit, TIME)
        most_copies = shape.chips // int(ask.together)  # on one machine
        machines, headroom = machines_for(question, work, shape.chips, most_copies, rate / planned), None
        if spared := spared_headroom(work):
            wider = (1.0 + work.headroom) / (1.0 + work.headroom - spared)
            spared_machines = machines_for(question, work, shape.chips, most_copies, rate / (wider * planned))
            if isinstance(spared_machines, int) and (
                isinstance(machines, Cannot) or machines > (1.0 + SPARED_COST) * spared_machines
            ):
                copy_rate = rate / (spared_machines * most_copies)
                machines, headroom, planned = (
                    spared_machines,
                    (1.0 + work.headroom) * planned / copy_rate - 1.0,
                    max(planned, copy_rate),
                )
        if isinstance(machines, Cannot):
            return machines
        curve, less = curves[place], fewer[place]
        settled = curve.settled(rate / (machines * most_copies) * curve.copies)
        batch = float(curve.batches[-1]) if settled is None else float(max(round(settled), 1))
        share = None if ask.part.name in ON_CHIP else sum(ask.memory(1.0).values()) / ask.part.memory_bytes
        if (*place, batch) not in passes:
            passes[*place, batch] = ask.passes([batch / ask.together], "samples_per_s")
        speed = passes[*place, batch]
        spread = float(speed.value[0] / max(speed.low[0], 1e-12))
        if (sure := surely_planned(work, planned, capacity, spread)) < planned:
            planned, less = sure, tuple((load, min(each, sure)) for load, each in less)
            machines = machines_for(question, work, shape.chips, most_copies, rate / planned)
            if isinstance(machines, Cannot):
                return machines
        copies = Copies(machines * most_copies, int(ask.table_ways))
        answers = Answers(planned, capacity, spread, chance)
        use = ask.utilisation(batch / ask.together, float(speed.value[0]))
        way = service_way(question, index, machines, copies, answers, use, rate)
        way = replace(way, headroom=headroom, at_less=less, answer_s=pass_parts(speed, batch))
        return [
            replace(way, precision=ask.precision, provenance=provenance_of(ask), related=is_related(ask), memory_share=share)
        ]

    return _in_formats(question, ground, model, settings, work, ways_of)


def pass_parts(speed: Estimate, batch: float) -> dict[str, float]:
    """Seconds of a pass of so many samples at once, by what they go into."""
    parts = {name: float(np.atleast_1d(part)[0]) for name, part in speed.terms.items()}
    scale = batch / float(speed.value[0]) / max(sum(parts.values()), 1e-12)
    return {name: scale * seconds for name, seconds in parts.items()}


class Answers(NamedTuple):
    """What one replica of a service does."""

    planned: float  # requests per second that replicas are counted by
    capacity: float
    spread: float
    chance: float | None  # that a request alone keeps the latency goals


def surely_planned(work: Serve, planned: float, capacity: float, spread: float) -> float:
    """Requests per second that a copy is planned for, so that it carries them with the stated confidence."""
    confidence = work.goals.confidence
    return planned if confidence is None else min(planned, capacity / sure_factor(spread, confidence))


def service_way(
    question: Question, shape: int, machines: int, copies: Copies, answers: Answers, use: Utilisation, rate: float
) -> Way:
    """So many machines for a month, of which `rate` requests per second are asked."""
    month = question.month_s
    return Way(
        shape=shape,
        machines=machines,
        seconds=month,
        low=month,
        high=month,
        split=copies,
        rate=answers.capacity,
        planned=answers.planned,
        replicas=copies.replicas,
        rate_spread=answers.spread,
        request_chance=answers.chance,
        load_chance=carried(rate, answers.capacity * copies.replicas, answers.spread) if rate else None,
        use=use,
    )


def lone_chance(goals: Mapping[float, float], seconds: float, spread: float) -> float | None:
    """That a request alone, which takes as long whatever its share of all, is answered within every goal."""
    return chance_of(min(goals.values()), seconds, spread) if goals else None


def machines_for(question: Question, work: Serve, chips: int, inside: int, copies: float) -> int | Cannot:
    """Machines of so many chips, each with `inside` copies, that hold the copies of a service."""
    whole = max(math.ceil(copies - 1e-9), work.replicas.min or 1)
    if work.replicas.max is not None and whole > work.replicas.max:
        return Cannot(NeedsReplicas(whole, work.replicas.max), whole / work.replicas.max, COUNT)
    return machines_within(question, chips, math.ceil(whole / inside))


def service_rates(curve: Curve, goals: Mapping[float, float], work: Serve, rate: float) -> tuple[float, float]:
    """Requests per second of one copy, of as many as carry `rate`: that it is planned for, with the headroom left free, and up
    to which it keeps the goals."""
    burst, room = work.arrival.burstiness, 1.0 + work.headroom
    most = min(UTILISATION, 1.0 / room) * curve.max_rate
    if not goals:
        return most, HIGHEST_USED * curve.max_rate
    highest = curve.highest_rate(goals, burst, HALVINGS, load=rate * room, fewest=work.replicas.min or 1)
    return highest / room if burst == 0 else min(highest / room, most), highest  # on a clock nothing queues


def provenance_of(ask: Sampled) -> str:
    if isinstance(ask.fitted, Anchored):
        return CARRIED
    return "interpolated" if ask.alike and ask.part.kind != "edge" else FORMULA


def is_related(ask: Sampled) -> bool:
    """Whether programs that write down speech were measured on chips of this maker."""
    return ask.programs is not None and (ask.part.vendor, ask.part.kind) in ask.programs.measured_on


def plan_batch(question: Question, work: Batch) -> Plan:
    known, model, kind = known_model(Ask(question.known, question.path, "", {}), work)
    question = replace(question, known=known)
    ground = ground_of(known, question.rules)
    load, notes = load_of(Ask(known, question.path, "", {}), work)
    settings: dict[str, Any] = {name: load[name] for name in _OF_A_SAMPLE if name in load} | sizes_of(work)
    check_sizes(ground.known.find_model(model), settings)
    speeds: dict[tuple[str, float, str], tuple[float, float, float]] = {}
    uses: dict[tuple[str, float, str], Utilisation] = {}

    def ways_of(index: int, ask: Sampled) -> Ways:
        shape = ground.fleet.shapes[index]
        counts = machine_counts(question, shape.chips)
        if not len(counts):
            return no_count(question, shape.chips)
        place = (ask.part.name, ask.together, ask.precision)
        if place not in speeds:
            curve = sample_curve(ask)
            batch = float(curve.batches[int(np.argmax(curve.batches / curve.seconds))])
            rate = ask.passes([batch / ask.together], "samples_per_s")
            speeds[place] = (float(rate.value[0]), float(rate.low[0]), float(rate.high[0]))
            uses[place] = ask.utilisation(batch / ask.together, float(rate.value[0]))
        value, low, high = speeds[place]
        copies = shape.chips // int(ask.together)  # on one machine
        each_s, reading = work.items / (copies * counts), reading_s(question, ground, index, counts)
        seconds, shortest, longest = (np.maximum(each_s / rate, reading) for rate in (value, high, low))
        return [
            Way(
                shape=index,
                machines=int(counts[row]),
                seconds=float(seconds[row]),
                low=float(shortest[row]),
                high=float(longest[row]),
                precision=ask.precision,
                split=Copies(int(counts[row]) * copies, int(ask.table_ways)),
                memory_share=None,
                provenance=provenance_of(ask),
                related=is_related(ask),
                rate=value,
                replicas=int(counts[row]) * copies,
                use=uses[place],
            )
            for row in worthwhile(question, seconds)
        ]

    table = Table(
        kind="batch",
        per="job",
        units=work.items / 1e6,
        unit="million items",
        notes=(*size_notes(kind, work), *_speech_notes(known, kind), *notes),
    )
    return noted(
        plan_ways(question, ground, table, _in_formats(question, ground, model, settings | {"task": "serve"}, work, ways_of))
    )
