"""Percentiles of latencies under load, and the highest rate that keeps goals: one queueing model for whoever asks.

Requests at a rate (open): `queueing`, over the times of `predict_serving.service`. A fixed number of callers who each wait for
their answer (closed) cannot build a queue: a first token waits exponentially long around its mean wait, and a Poisson number of
other prompts stretches the steps of an answer of o tokens, which gives a time per token the variance (B - 1) p^2 / o^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, Coded, Index, cut, has_nonzero, pick
from chipwise.perf.model import Estimate, Model
from chipwise.perf.predict_serving import CHUNK, Generation, load, replica, service, slots
from chipwise.perf.queueing import METRICS, UTILISATION, Service, in_flight, selected, waits
from chipwise.perf.serving import in_flight as in_flight_of_callers

HALVINGS = 10
HIGHEST_USED = 0.99  # of the capacity: at all of it a queue has no end
LEAST_USED = 2e-3  # of the capacity, the lowest rate that is tried: a request is as good as alone
Goals = Mapping[tuple[str, float], float]
Seconds = dict[str, dict[float, Array]]


def percentiles(
    ask: Generation,
    model: Model,
    estimates: Mapping[str, Estimate],
    shares: Sequence[float],
    serving: Service | None = None,
    room: Array | None = None,
) -> Seconds:
    """Seconds to the first token, per token and in all that `share` of the requests stay below. `estimates` are those of
    `predict` for the first token and for tokens; `serving` and `room` are what `service` and `slots` give, where somebody
    asked before."""
    opened = ask.scenario.look_up(lambda name: float(name == "open"))
    flowing = (opened > 0) & (ask.rate > 0)
    of_callers = {} if flowing.all() else _of_callers(ask, estimates, shares, slots(ask) if room is None else room)
    if not has_nonzero(flowing):
        return of_callers
    loaded = waits(serving or service(ask, model, room), np.broadcast_to(ask.rate / ask.replicas, (len(ask),)))
    queued = {name: {share: loaded.seconds(name, share) for share in shares} for name in METRICS}
    if not of_callers:
        return queued
    return {
        name: {share: pick(flowing, values, of_callers[name][share]) for share, values in by_share.items()}
        for name, by_share in queued.items()
    }


def _of_callers(ask: Generation, estimates: Mapping[str, Estimate], shares: Sequence[float], room: Array) -> Seconds:
    first, token = estimates["ttft_ms"], estimates["tpot_ms"]
    running = in_flight_of_callers(replica(ask), load(ask, "ttft_ms", room))
    held_up = first.terms["waiting"] + first.terms["slots"]
    steady = first.seconds - held_up
    prompt = sum((values for name, values in token.terms.items() if name.startswith("prefill")), np.zeros(1))
    neighbours = np.maximum(running - 1.0, 0.0)
    out = np.maximum(ask.setup.output_len, 1.0)
    spread = np.where(neighbours > 0, prompt / np.sqrt(np.maximum(neighbours, 1.0)), 0.0)  # the mean stretch is (B - 1) p / o
    seconds: Seconds = {name: {} for name in METRICS}
    for share in shares:
        z = NormalDist().inv_cdf(min(max(share, 1e-6), 1 - 1e-6))
        seconds["ttft"][share] = steady + held_up * -np.log1p(-share)
        seconds["tpot"][share] = np.maximum(token.seconds + z * spread, 0.5 * token.seconds)
        mean = first.seconds + (out - 1.0) * token.seconds
        deviation = np.sqrt(held_up**2 + ((out - 1.0) * spread) ** 2)
        seconds["latency"][share] = np.maximum(mean + z * deviation, np.maximum(0.5 * mean, seconds["ttft"][share]))
    return seconds


def running(ask: Generation, model: Model) -> Array:
    """Sequences that are in flight on one replica, on average."""
    if not has_nonzero(ask.scenario.look_up(lambda name: float(name == "open")) * ask.rate):
        return in_flight_of_callers(replica(ask), load(ask, "ttft_ms", slots(ask)))
    serving, rate = service(ask, model), np.broadcast_to(ask.rate / ask.replicas, (len(ask),))
    return in_flight(serving, rate, waits(serving, rate, ("latency",)))


def highest_rate(ask: Generation, model: Model, goals: Goals) -> Array:
    """Requests per second, over all replicas, up to which every goal {(metric, share): seconds} is met: at most
    `HIGHEST_USED` of the capacity; 0: no rate meets them."""
    return np.concatenate([highest_of(one, goals) for one in _services(ask, model)]) * ask.replicas


def highest_of(serving: Service, goals: Goals) -> Array:
    """The same of one replica."""
    return _highest(serving, goals, HIGHEST_USED)


@dataclass(frozen=True, slots=True)
class Demand:
    """What replicas are counted for."""

    rate: float  # requests per second, of all replicas
    headroom: float  # above it, as a share of it: the goals hold up to there
    least_replicas: float = 1.0


def planned_rates(
    ask: Generation, model: Model, goals: Goals, demands: Sequence[Demand], room: Array | None = None
) -> list[Array]:
    """Of every demand, requests per second that one replica is planned for, of as many as carry it: with the headroom on top
    every goal is met, and it is never more than `UTILISATION` of the capacity; 0: no rate meets the goals. `room` is what
    `slots` gives, where somebody asked before."""
    services = list(_services(ask, model, room))
    return [np.concatenate([_planned(one, goals, demand) for one in services]) for demand in demands]


def _planned(serving: Service, goals: Goals, demand: Demand) -> Array:
    above = 1.0 + demand.headroom
    top = min(UTILISATION * above, HIGHEST_USED if goals else 1.0)
    return _highest(serving, goals, top, demand) / above


def _services(ask: Generation, model: Model, room: Array | None = None) -> Iterator[Service]:
    opened = replace(ask, scenario=Coded.of("open"))
    count = len(opened)
    if count <= CHUNK:
        yield service(opened, model, room)
        return
    for begin in range(0, count, CHUNK):
        piece = slice(begin, begin + CHUNK)
        yield service(opened.rows(piece), model, None if room is None else cut(room, piece))


def _highest(serving: Service, goals: Goals, top: float, demand: Demand | None = None) -> Array:
    """At most `top` of the capacity. Of a demand, the fewer replicas share it, the more of each burst one of them gets."""
    capacity = serving.capacity
    ceiling = top * capacity
    if not goals:
        return ceiling
    metrics = tuple(name for name in METRICS if any(name == metric for metric, _ in goals))

    def fine(services: Service, rate: Array) -> NDArray[np.bool_]:
        if demand is not None:
            copies = np.maximum(demand.rate * (1.0 + demand.headroom) / rate, demand.least_replicas)
            services = replace(services, traffic=services.traffic.of_one(copies))
        loaded = waits(services, rate, metrics)
        within = [loaded.seconds(name, share) <= limit for (name, share), limit in goals.items()]
        return np.asarray(np.logical_and.reduce(within), dtype=np.bool_)

    rates = np.where(fine(serving, ceiling), ceiling, 0.0)
    left = np.flatnonzero(rates == 0)
    if top > UTILISATION and len(left):
        usual = fine(selected(serving, left), UTILISATION * capacity[left])
        rates[left[usual]] = _between(serving, left[usual], fine, (UTILISATION, top))
        left = left[~usual]
    if len(left):
        left = left[fine(selected(serving, left), LEAST_USED * capacity[left])]
    rates[left] = _between(serving, left, fine, (LEAST_USED, min(top, UTILISATION)))
    return rates


def _between(
    serving: Service, rows: Index, fine: Callable[[Service, Array], NDArray[np.bool_]], used: tuple[float, float]
) -> Array:
    """The highest rate that is fine of rows for which the first use of the capacity is, and the second is not."""
    if not len(rows):
        return np.zeros(0)
    services, capacity = selected(serving, rows), serving.capacity[rows]
    low, high = (np.full(len(rows), np.log(one)) for one in used)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        good = fine(services, np.exp(middle) * capacity)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return np.asarray(np.exp(low) * capacity)
