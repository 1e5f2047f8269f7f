"""The best way to serve on every shape: splits and precisions, each at the highest rate that keeps the goals.

One row per shape and precision. A replica of tp x pp chips answers so many requests a second while every latency goal holds;
the number of machines follows from the asked rate and from how many replicas one machine holds. All chips of the machines work:
they are paid for, so they hold as many replicas as have room. Of a shape's splits the one that needs the fewest machines is
kept, of those the one that answers most requests.

Rows that no load can save are not predicted: where reading the weights once for a token, or multiplying one prompt with
them, takes longer than a goal allows even at 95% of the nominal bandwidth and peak (`family_inference.FLOORS`, below which
no prediction goes). That is what most processors and small slices of a chip fail by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np

from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.hardware import Hardware
from chipwise.perf.memory_serving import kv_bytes, kv_room, serving_memory
from chipwise.perf.model import Estimate, Model
from chipwise.perf.part import Part
from chipwise.perf.power import power
from chipwise.perf.predict_serving import (
    Generation,
    drawn,
    predict,
    replica,
    service,
    slots,
    usual_engines,
)
from chipwise.perf.queueing import Service, Traffic
from chipwise.perf.setup import ServingSetup
from chipwise.perf.transformer import Layer, Transformers
from chipwise.perf.under_load import Demand, highest_of, percentiles, planned_rate
from chipwise.planner.chances import chance_within
from chipwise.planner.defaults import within_headroom
from chipwise.planner.fleet import Fleet, Index, Shape, machines_for, replicas_in
from chipwise.planner.limits import Mask
from chipwise.predictor.splits import serving_splits

AT_BEST = 0.96  # of nominal bandwidth and peak: a hair above what predictions are floored at


@dataclass(frozen=True, slots=True)
class ServingJob:
    model: str
    layer: Layer
    input_len: float
    output_len: float
    prefix_len: float
    precisions: tuple[str, ...]
    kv_precision: str | None
    goals: Mapping[tuple[str, float], float]  # ("ttft", 0.9) -> seconds
    rate: float  # requests per second at the peak; 0: as many as possible (offline)
    concurrency: float = 0.0  # callers who each wait for their answer, instead of a rate
    longest: float = 0.0  # tokens of one sequence that must fit; 0: the mean one
    least_replicas: float = 1.0
    most_replicas: float = np.inf
    least_rate: float = 0.0  # requests per second that must be possible, whatever arrives
    headroom: float = 0.0  # above the rate, as a share of it
    published: str = ""  # format of the weights as they are published; empty: 16 bits
    burstiness: float = 1.0  # coefficient of variation of the times between arrivals
    sigmas: tuple[float, float] = (0.0, 0.0)  # of the logarithms of prompt and answer lengths


@dataclass(frozen=True)
class Serving:
    """One row per shape, precision and split."""

    shape: Index
    precision: Coded
    tp: Array
    pp: Array
    engine: Coded
    fits: Array  # 1: the weights and one sequence
    short: Array  # bytes per chip that are missing
    filled: Array  # of the memory that the engine takes of a chip, by all but the cache and by the longest sequence
    rate: Array  # requests per second that one replica is planned for; 0: no rate keeps the goals
    replicas: Array
    machines: Array
    spread: Array  # high over value, of the time per token
    per_machine: Array  # requests per second; a replica over several machines counts in parts
    counts: Index  # numbers of machines that the limits leave to choose from
    provenance: Coded  # how near to measurements
    predicted: Array  # 1: predicted; 0: left out, because it does not fit or no load keeps the goals
    chance: Array  # that a request alone keeps the goals; 1 without goals
    alone: Array  # `rate`, also where so many replicas or chips are not allowed

    def only(self, mask: Mask) -> Serving:
        """Some of the rows."""
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        return Serving(**{name: _picked(column, mask) for name, column in columns.items()})


def search(job: ServingJob, fleet: Fleet, model: Model, shapes: Sequence[int], chip_limits: tuple[int, int]) -> Serving:
    """`chip_limits` are the fewest and most chips at one time."""
    reach = fleet.shape_reach()
    rows = [
        (index, precision, tp, pp)
        for index in shapes
        for precision, (tp, pp) in product(
            formats(job, fleet.part(index)), _splits(job, fleet.shapes[index], float(reach[index]))
        )
        if max(fleet.shapes[index].chips, tp * pp) <= chip_limits[1]
    ]
    if not rows:
        none = np.zeros(0)
        empty = np.zeros(0, dtype=np.intp)
        return Serving(
            shape=empty,
            precision=Coded((), empty),
            tp=none,
            pp=none,
            engine=Coded.of(""),
            fits=none,
            short=none,
            filled=none,
            rate=none,
            replicas=none,
            machines=none,
            spread=none,
            per_machine=none,
            counts=empty,
            provenance=Coded.of(""),
            predicted=none,
            chance=none,
            alone=none,
        )
    shape = np.array([row[0] for row in rows], dtype=np.intp)
    precision = Coded.of([row[1] for row in rows])
    tp, pp = (np.array([row[place] for row in rows], dtype=np.float64) for place in (2, 3))
    ask = ask_of(job, fleet, shape, precision, tp, pp)
    capacity = np.array([one.memory_bytes for one in fleet.shapes])[shape]
    single = ask.setup.change(batch=column(1.0))
    if job.longest > job.input_len + job.output_len:
        single = single.change(input_len=column(max(job.longest - job.output_len, 1.0)))
    memory, longest = serving_memory(ask.model, single), kv_bytes(ask.model, single)
    room = kv_room(memory, single, capacity)  # below zero where not even the weights fit
    short = np.maximum(longest - room, 0.0)
    rest = memory.total - memory.kv_cache
    fits = short <= 0
    rate, spread, at_once, chance = np.zeros(len(rows)), np.ones(len(rows)), np.zeros(len(rows)), np.ones(len(rows))
    hopeful = fits & ~_hopeless(job, ask)
    places = np.flatnonzero(hopeful)
    provenance = Coded(("",), np.zeros(len(rows), dtype=np.intp))
    if len(places):
        first, alike = _replicas(ask, tp, pp, shape, places)
        sample = ask_of(job, fleet, shape[first], Coded(precision.names, precision.index[first]), tp[first], pp[first])
        *columns, near = _capacity(job, sample, model)
        rate[places], spread[places], at_once[places], chance[places] = (
            np.broadcast_to(one, first.shape)[alike] for one in columns
        )
        provenance.index[places] = 1 + np.broadcast_to(near.index, first.shape)[alike]
        provenance = Coded(("", *near.names), provenance.index)
    chips = np.array([one.chips for one in fleet.shapes], dtype=np.float64)[shape]
    load = job.concurrency or job.rate
    able = within_headroom(at_once, job.headroom, bool(job.goals)) if job.concurrency else rate
    replicas = np.ceil(load / np.maximum(able, 1e-9) - 1e-9) if load else np.ones(len(rows))
    replicas = np.maximum(np.where(able > 0, replicas, 1.0), job.least_replicas)
    if job.least_rate:
        replicas = np.maximum(replicas, np.where(rate > 0, np.ceil(job.least_rate / np.maximum(rate, 1e-9) - 1e-9), 1.0))
    machines = np.maximum(machines_for(chips, tp * pp, replicas), np.ceil(chip_limits[0] / np.maximum(chips, 1.0)))
    alone = rate
    rate = np.where((machines * chips <= chip_limits[1]) & (replicas <= job.most_replicas), rate, 0.0)
    machines = np.maximum(machines, np.ceil(chip_limits[0] / np.maximum(chips, 1.0)))
    if job.rate:
        replicas = np.maximum(replicas, np.minimum(replicas_in(chips, tp * pp, machines), job.most_replicas))
    return Serving(
        shape=shape,
        precision=precision,
        tp=tp,
        pp=pp,
        engine=ask.setup.engine,
        fits=fits.astype(float),
        short=short,
        filled=np.broadcast_to((rest + longest) / np.maximum(rest + room, 1.0), shape.shape),
        rate=rate,
        replicas=replicas,
        machines=machines,
        spread=spread,
        per_machine=rate * np.maximum(np.floor(chips / (tp * pp)), 1.0) / np.ceil(tp * pp / chips),
        counts=np.maximum(chip_limits[1] // chips - np.ceil(chip_limits[0] / chips) + 1, 0).astype(np.intp),
        provenance=provenance,
        predicted=hopeful.astype(float),
        chance=chance,
        alone=alone,
    )


def _replicas(ask: Generation, tp: Array, pp: Array, shape: Index, rows: Index) -> tuple[Index, Index]:
    """(one of each kind, the kind of each row): a replica within fast links is the same whatever machine it is in."""
    beyond = np.where(tp * pp > ask.hardware.domain, 1 + shape, 0)
    columns = (ask.hardware.part.index, ask.setup.precision_weights.index, tp.astype(np.intp), pp.astype(np.intp), beyond)
    key = np.zeros(len(rows), dtype=np.intp)
    for values in columns:
        key = key * (int(values.max()) + 1) + values[rows]
    _, first, alike = np.unique(key, return_index=True, return_inverse=True)
    return rows[first], alike


def _hopeless(job: ServingJob, ask: Generation) -> Mask:
    """Rows that miss a goal whatever the load: one request alone takes too long at the fastest that the hardware could be.

    A median or higher percentile of a time per token, or of a whole answer, is no less than the time of a step, and a step
    reads every weight that one token meets; a first token waits for its prompt. Stages follow each other, so that only the
    tensor split makes one request faster.
    """
    run = replica(ask)
    weights = run.model.layers * run.model.weights_met(column(1.0))
    token = weights * run.weight_bytes / (run.tp * run.bandwidth * AT_BEST)
    fresh = max(job.input_len - job.prefix_len, 1.0)
    worked = run.model.layers * (run.model.attention_weights + run.model.mlp_weights)
    first = 2.0 * fresh * worked / (run.tp * run.peak * AT_BEST)
    shortest = {"ttft": first, "tpot": token, "latency": first + max(job.output_len - 1.0, 0.0) * token}
    lost = np.zeros(len(ask), dtype=bool)
    for (name, share), limit in job.goals.items():
        if name == "ttft" or share >= 0.5:
            lost |= shortest[name] > limit
    return lost


def _splits(job: ServingJob, shape: Shape, reach: float) -> list[tuple[int, int]]:
    """`reach` is the most machines that one replica can be spread over."""
    if not shape.is_whole:  # slices do not reach each other, and a processor's sockets count as one
        return [(1, 1)]
    return serving_splits(job.layer, shape.chips, reach)


def _picked(column: Any, mask: Mask) -> Any:
    if isinstance(column, Coded):
        return column if len(column) == 1 and len(mask) != 1 else Coded(column.names, column.index[mask])
    return column[mask]


def formats(job: ServingJob, part: Part) -> list[str]:
    """Of the job's formats those that a chip has: of fp16 and bf16, which are as good, bf16 alone where it has both. GPUs
    without fp4 read weights that are published so, and compute in 16 bits."""
    able = [one for one in job.precisions if runs(part, one) or (one == job.published == "fp4" and part.kind == "gpu")]
    return [one for one in able if one != "fp16" or "bf16" not in able]


def runs(part: Part, precision: str) -> bool:
    return precision in ("int8", "int4", "fp32") or part.has(precision)


def ask_of(job: ServingJob, fleet: Fleet, shape: Index, precision: Coded, tp: Array, pp: Array) -> Generation:
    parts = _used(Coded.of([one.part for one in fleet.shapes]), shape)
    node = np.array([float(one.chips) for one in fleet.shapes])
    fabric = np.array([one.fabric for one in fleet.shapes])
    hardware = Hardware.of(parts, fleet.parts.by_name, node[shape], fabric[shape])
    cache = job.kv_precision or "bf16"
    setup = ServingSetup.of(
        batch=1.0,
        input_len=job.input_len,
        output_len=job.output_len,
        prefix_len=job.prefix_len,
        tp=tp,
        pp=pp,
        precision_weights=precision,
        precision_kv=cache,
        engine=usual_engines(hardware),
    )
    return Generation(
        model=Transformers.of([job.layer]),
        name=Coded.of(job.model),
        hardware=hardware,
        setup=setup,
        scenario=Coded.of("full"),
        rate=column(0.0),
        replicas=column(1.0),
        attention_dp=column(1.0),
        traffic=Traffic(
            burstiness=column(job.burstiness), prompt_sigma=column(job.sigmas[0]), answer_sigma=column(job.sigmas[1])
        ),
    )


def _used(names: Coded, rows: Index) -> Coded:
    """The rows with only the names that they have: every prediction looks all names up, and most shapes are processors."""
    index = names.index[rows]
    present = np.flatnonzero(np.bincount(index, minlength=len(names.names)))
    place = np.zeros(len(names.names), dtype=np.intp)
    place[present] = np.arange(len(present))
    return Coded(tuple(names.names[at] for at in present.tolist()), place[index])


def _capacity(job: ServingJob, ask: Generation, model: Model) -> tuple[Array, Array, Array, Array, Coded]:
    """What one replica is planned for in requests per second, how much slower it may be, callers at once, how likely a request
    alone keeps the goals, provenance."""
    full = predict(ask, model, ("requests_per_s",))["requests_per_s"]
    spread = np.broadcast_to(full.value / np.maximum(full.low, 1e-12), full.value.shape)
    if job.concurrency:
        callers = most_at_once(job, ask, model)
        closed = replace(ask, setup=ask.setup.change(batch=np.maximum(callers, 1.0)), scenario=Coded.of("closed"))
        rate = predict(closed, model, ("requests_per_s",))["requests_per_s"].value
        return np.where(callers > 0, rate, 0.0), spread, callers, _chance(job, ask, model), full.provenance
    if not job.goals and not job.rate:
        return full.value, spread, np.zeros(1), np.ones(1), full.provenance
    demand = Demand(job.rate, job.headroom, job.least_replicas)
    return planned_rate(ask, model, job.goals, demand), spread, np.zeros(1), _chance(job, ask, model), full.provenance


def _chance(job: ServingJob, ask: Generation, model: Model) -> Array:
    """How likely a request alone on its replica keeps every goal, by how sure its estimate is."""
    if not job.goals:
        return np.ones(1)
    alone = replace(ask, scenario=Coded.of("closed"))
    estimates = predict(alone, model, ("ttft_ms", "tpot_ms"))
    prompt = predict(replace(ask, scenario=Coded.of("prefill")), model, ("ttft_ms",))["ttft_ms"]  # no other wait is unsure
    first, token = estimates["ttft_ms"].seconds, estimates["tpot_ms"].seconds * max(job.output_len - 1.0, 0.0)
    spreads = {"ttft": prompt.high / prompt.value, "tpot": estimates["tpot_ms"].high / estimates["tpot_ms"].value}
    spreads["latency"] = (first * spreads["ttft"] + token * spreads["tpot"]) / (first + token)
    seconds = _goal_seconds(alone, model, estimates, tuple(job.goals))
    chances = [chance_within(column(limit), seconds[name, share], spreads[name]) for (name, share), limit in job.goals.items()]
    return np.asarray(np.minimum.reduce(chances), dtype=np.float64)


def most_at_once(job: ServingJob, ask: Generation, model: Model) -> Array:
    """Callers that one replica answers within the goals, none of them queued; 0: not even one."""
    room = np.broadcast_to(np.minimum(slots(ask), np.ceil(job.concurrency * (1.0 + job.headroom))), (len(ask),))
    if not job.goals:
        return room
    shares = sorted({share for _, share in job.goals})

    def fine(batch: Array) -> Mask:
        trial = replace(ask, setup=ask.setup.change(batch=batch), scenario=Coded.of("closed"))
        estimates = predict(trial, model, ("ttft_ms", "tpot_ms"))
        seconds = percentiles(trial, model, estimates, shares)
        passes: Mask = np.logical_and.reduce([seconds[name][share] <= limit for (name, share), limit in job.goals.items()])
        return passes

    low, high = np.zeros(len(room)), np.floor(room)
    if np.all(fine(np.maximum(high, 1.0))):
        return np.asarray(high, dtype=np.float64)
    low = np.where(fine(np.ones(len(room))), 1.0, 0.0)
    for _ in range(int(np.ceil(np.log2(max(float(high.max()), 2.0)))) + 1):
        middle = np.maximum(np.floor((low + high) / 2), 1.0)
        good = fine(middle) & (low > 0)
        low, high = np.where(good, np.maximum(middle, low), low), np.where(good, high, np.maximum(middle - 1, low))
    return np.asarray(low, dtype=np.float64)


def best(rows: Serving, online: bool, confidence: float = 0.0) -> Index:
    """Of every shape and precision the row that needs the fewest machines, of those the one with most room; offline the one
    that gets most out of a machine. A split that is sure enough of the goals comes before all that are not."""
    able = np.flatnonzero((rows.fits > 0) & (rows.rate > 0))
    room = rows.rate[able] * rows.replicas[able]
    first, second = (rows.machines[able], -room) if online else (-rows.per_machine[able], rows.machines[able])
    order = able[np.lexsort((second, first, rows.chance[able] < confidence, rows.precision.index[able], rows.shape[able]))]
    keys = np.stack([rows.shape[order], rows.precision.index[order]], axis=1)
    if not len(keys):
        return order
    fresh = np.concatenate([[True], np.any(keys[1:] != keys[:-1], axis=1)])
    chosen: Index = order[fresh]
    return chosen


def lone(job: ServingJob, fleet: Fleet, model: Model, rows: Serving, selected: Index) -> dict[tuple[str, float], Array]:
    """Seconds of every goal for a request that is alone on its replica, of some rows: no load does better."""
    if not job.goals:
        return {}
    ask = replace(_selected_ask(job, fleet, rows, selected), scenario=Coded.of("closed"))
    return _goal_seconds(ask, model, predict(ask, model, ("ttft_ms", "tpot_ms")), tuple(job.goals))


@dataclass(frozen=True, slots=True)
class Loaded:
    """Some rows at work."""

    seconds: Mapping[tuple[str, float], Array]  # of every goal; where there is none, medians
    chip_w: Array  # watts of a chip with its share of the host
    rate: Array  # requests per second up to which a replica keeps the goals; what is planned without any, and of callers


def at_load(job: ServingJob, fleet: Fleet, model: Model, rows: Serving, selected: Index) -> Loaded:
    """At the asked load, shared by a row's replicas."""
    if not len(selected):
        return Loaded({}, np.zeros(0), np.zeros(0))
    ask, replicas = _selected_ask(job, fleet, rows, selected), np.maximum(rows.replicas[selected], 1.0)
    if job.concurrency:
        ask = replace(
            ask, setup=ask.setup.change(batch=np.maximum(job.concurrency / replicas, 1.0)), scenario=Coded.of("closed")
        )
    else:
        ask = replace(ask, rate=np.maximum(job.rate, 1e-6 * replicas), replicas=replicas, scenario=Coded.of("open"))
    serving, rate = None if job.concurrency else service(ask, model), rows.rate[selected]
    if serving is not None and job.goals:
        rate = np.maximum(highest_of(serving, job.goals), rate)
    estimates = predict(ask, model, ("ttft_ms", "tpot_ms", "latency_ms"), serving=serving)
    seconds = _goal_seconds(ask, model, estimates, tuple(job.goals) or (("ttft", 0.5), ("tpot", 0.5)), serving)
    return Loaded(seconds, np.broadcast_to(drawn(ask, estimates).machine, (len(ask),)), rate)


def when_full(job: ServingJob, fleet: Fleet, model: Model, rows: Serving, selected: Index) -> Loaded:
    """As many requests as it takes, for whose answers nobody waits."""
    if not len(selected):
        return Loaded({}, np.zeros(0), np.zeros(0))
    ask = _selected_ask(job, fleet, rows, selected)
    working_w = np.broadcast_to(drawn(ask, predict(ask, model, ("requests_per_s",))).machine, (len(ask),))
    return Loaded({}, working_w, rows.rate[selected])


def at_rest_w(fleet: Fleet, shape: Index) -> Array:
    """Watts of a chip without work, with its share of the host."""
    parts = [fleet.part(at) for at in shape.tolist()]
    limit = np.array([part.power_w for part in parts], dtype=np.float64)
    return power(Coded.of([part.kind for part in parts]), limit, column(0.0), column(0.0)).machine


def _selected_ask(job: ServingJob, fleet: Fleet, rows: Serving, at: Index) -> Generation:
    precision = Coded(rows.precision.names, rows.precision.index[at])
    return ask_of(job, fleet, rows.shape[at], precision, rows.tp[at], rows.pp[at])


def _goal_seconds(
    ask: Generation,
    model: Model,
    estimates: Mapping[str, Estimate],
    goals: Sequence[tuple[str, float]],
    serving: Service | None = None,
) -> dict[tuple[str, float], Array]:
    seconds = percentiles(ask, model, estimates, sorted({share for _, share in goals}), serving)
    return {(name, share): np.broadcast_to(seconds[name][share], (len(ask),)) for name, share in goals}
