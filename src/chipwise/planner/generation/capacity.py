"""What one replica can do: the rate it is planned for, its callers at once, and how likely a request alone keeps the goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.model import Estimate, Model
from chipwise.perf.predict_serving import Generation, predict, slots
from chipwise.perf.queueing import Service
from chipwise.perf.under_load import Demand, highest_rate, percentiles, planned_rates
from chipwise.planner.chances import chance_within, sure_factors
from chipwise.planner.generation.job import ServingJob
from chipwise.planner.limits import Mask


def capacity(job: ServingJob, ask: Generation, model: Model) -> tuple[Array, Array, Array, Array, Coded]:
    """What one replica is planned for in requests per second, how much slower it may be, callers at once, how likely a request
    alone keeps the goals, provenance."""
    room = slots(ask)
    full = predict(ask, model, ("requests_per_s",), room)["requests_per_s"]
    spread = np.broadcast_to(full.value / np.maximum(full.low, 1e-12), full.value.shape)
    sure = np.ones(1) if job.confidence is None else sure_factors(spread, job.confidence)
    if job.concurrency:
        callers = most_at_once(job, ask, model, sure)
        closed = replace(ask, setup=ask.setup.change(batch=np.maximum(callers, 1.0)), scenario=Coded.of("closed"))
        rate = predict(closed, model, ("requests_per_s",))["requests_per_s"].value
        return np.where(callers > 0, rate, 0.0), spread, callers, _chance(job, ask, model, room), full.provenance
    if not job.goals and not job.rate:
        return full.value, spread, np.zeros(1), np.ones(1), full.provenance
    demand = Demand(job.rate, job.headroom, job.least_replicas)
    (rate,) = planned_rates(ask, model, job.goals, [demand], room)
    if job.confidence is not None and job.rate:
        rate = np.minimum(rate, np.maximum(highest_rate(ask, model, job.goals), rate) / sure)
    return rate, spread, np.zeros(1), _chance(job, ask, model, room), full.provenance


def _chance(job: ServingJob, ask: Generation, model: Model, room: Array) -> Array:
    """How likely a request alone on its replica keeps every goal, by how sure its estimate is."""
    if not job.goals:
        return np.ones(1)
    alone = replace(ask, scenario=Coded.of("closed"))
    estimates = predict(alone, model, ("ttft_ms", "tpot_ms"), room)
    read = replace(ask, scenario=Coded.of("prefill"))
    prompt = predict(read, model, ("ttft_ms",), room)["ttft_ms"]  # no other wait is unsure
    first, token = estimates["ttft_ms"].seconds, estimates["tpot_ms"].seconds * max(job.output_len - 1.0, 0.0)
    spreads = {"ttft": prompt.high / prompt.value, "tpot": estimates["tpot_ms"].high / estimates["tpot_ms"].value}
    spreads["latency"] = (first * spreads["ttft"] + token * spreads["tpot"]) / (first + token)
    seconds = goal_seconds(alone, model, estimates, tuple(job.goals), room=room)
    chances = [chance_within(column(limit), seconds[name, share], spreads[name]) for (name, share), limit in job.goals.items()]
    return np.asarray(np.minimum.reduce(chances), dtype=np.float64)


def most_at_once(job: ServingJob, ask: Generation, model: Model, slower: Array) -> Array:
    """Callers that one replica answers within the goals though it be so many times slower, none of them queued; 0: not even
    one."""
    room = np.broadcast_to(np.minimum(slots(ask), np.ceil(job.concurrency * (1.0 + job.headroom))), (len(ask),))
    if not job.goals:
        return room
    shares = sorted({share for _, share in job.goals})

    def fine(batch: Array) -> Mask:
        trial = replace(ask, setup=ask.setup.change(batch=batch), scenario=Coded.of("closed"))
        estimates = predict(trial, model, ("ttft_ms", "tpot_ms"))
        seconds = percentiles(trial, model, estimates, shares)
        passes: Mask = np.logical_and.reduce(
            [slower * seconds[name][share] <= limit for (name, share), limit in job.goals.items()]
        )
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


def goal_seconds(
    ask: Generation,
    model: Model,
    estimates: Mapping[str, Estimate],
    goals: Sequence[tuple[str, float]],
    serving: Service | None = None,
    room: Array | None = None,
) -> dict[tuple[str, float], Array]:
    seconds = percentiles(ask, model, estimates, sorted({share for _, share in goals}), serving, room)
    return {(name, share): np.broadcast_to(seconds[name][share], (len(ask),)) for name, share in goals}
