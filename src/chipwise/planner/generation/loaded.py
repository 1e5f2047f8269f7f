"""Some rows at work: at the asked load, full, with one request alone, and at rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.model import Model
from chipwise.perf.power import power
from chipwise.perf.predict_serving import Generation, drawn, predict, service, slots
from chipwise.perf.under_load import Demand, highest_of, planned_rates
from chipwise.planner.chances import chance_within
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.generation.capacity import goal_seconds
from chipwise.planner.generation.job import ServingJob, ask_of
from chipwise.planner.generation.search import Serving
from chipwise.planner.values.load import AtLess


@dataclass(frozen=True, slots=True)
class Loaded:
    """Some rows at work."""

    seconds: Mapping[tuple[str, float], Array]  # of every goal; where there is none, medians
    chip_w: Array  # watts of a chip with its share of the host
    rate: Array  # requests per second up to which a replica keeps the goals; of callers what is planned
    chance: Array | None = None  # that the replicas take all that comes; None: nothing is asked of them
    answer_s: Mapping[str, Array] = field(default_factory=dict)  # seconds of one answer, by what they go into


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
    room = slots(ask)
    serving, rate = None if job.concurrency else service(ask, model, room), rows.rate[selected]
    if serving is not None:
        rate = np.maximum(highest_of(serving, job.goals), rate)
    estimates = predict(ask, model, ("ttft_ms", "tpot_ms", "latency_ms"), room, serving)
    seconds = goal_seconds(ask, model, estimates, tuple(job.goals) or (("ttft", 0.5), ("tpot", 0.5)), serving, room)
    working_w = np.broadcast_to(drawn(ask, estimates).machine, (len(ask),))
    carried = _carried(job, seconds, rate * replicas, rows.spread[selected])
    parts = {name: np.broadcast_to(part, (len(ask),)) for name, part in estimates["latency_ms"].terms.items()}
    return Loaded(seconds=seconds, chip_w=working_w, rate=rate, chance=carried, answer_s=parts)


def _carried(job: ServingJob, seconds: Mapping[tuple[str, float], Array], rate: Array, spread: Array) -> Array | None:
    """That replicas take all that comes, by how sure their speed is; of callers that each of them is answered in time."""
    if job.rate:
        return chance_within(column(1.0), job.rate / np.maximum(rate, 1e-12), spread)
    if not job.goals:
        return None
    chances = [chance_within(column(limit), seconds[goal], spread) for goal, limit in job.goals.items()]
    return np.asarray(np.minimum.reduce(chances), dtype=np.float64)


def at_less(
    job: ServingJob, fleet: Fleet, model: Model, rows: Serving, selected: Index, loads: Sequence[float]
) -> list[AtLess]:
    """What one replica of each row is planned for at lower loads of all of them (`load.plan.quieter_loads`)."""
    if not loads or not len(selected):
        return [()] * len(selected)
    ask = _selected_ask(job, fleet, rows, selected)
    demands = [Demand(load, job.headroom, job.least_replicas) for load in loads]
    planned = planned_rates(ask, model, job.goals, demands)
    rates = [np.minimum(one, rows.rate[selected]).tolist() for one in planned]
    return [tuple(zip(loads, each, strict=True)) for each in zip(*rates, strict=True)]


def when_full(job: ServingJob, fleet: Fleet, model: Model, rows: Serving, selected: Index) -> Loaded:
    """As many requests as it takes, for whose answers nobody waits."""
    if not len(selected):
        return Loaded({}, np.zeros(0), np.zeros(0))
    ask = _selected_ask(job, fleet, rows, selected)
    working_w = np.broadcast_to(drawn(ask, predict(ask, model, ("requests_per_s",))).machine, (len(ask),))
    return Loaded({}, working_w, rows.rate[selected])


def lone(job: ServingJob, fleet: Fleet, model: Model, rows: Serving, selected: Index) -> dict[tuple[str, float], Array]:
    """Seconds of every goal for a request that is alone on its replica, of some rows: no load does better."""
    if not job.goals:
        return {}
    ask = replace(_selected_ask(job, fleet, rows, selected), scenario=Coded.of("closed"))
    return goal_seconds(ask, model, predict(ask, model, ("ttft_ms", "tpot_ms")), tuple(job.goals))


def at_rest_w(fleet: Fleet, shape: Index) -> Array:
    """Watts of a chip without work, with its share of the host."""
    parts = [fleet.part(at) for at in shape.tolist()]
    limit = np.array([part.power_w for part in parts], dtype=np.float64)
    return power(Coded.of([part.kind for part in parts]), limit, column(0.0), column(0.0)).machine


def _selected_ask(job: ServingJob, fleet: Fleet, rows: Serving, at: Index) -> Generation:
    precision = Coded(rows.precision.names, rows.precision.index[at])
    return ask_of(job, fleet, rows.shape[at], precision, rows.tp[at], rows.pp[at])
