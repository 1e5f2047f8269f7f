"""What is asked of services that are paid by use: the rate over a day, lengths, goals, and the machines to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput
from chipwise.money.break_even import ReplicaSet
from chipwise.money.serverless_cost import BURST_S, Levels, phases_of
from chipwise.planner.defaults import serving_formats
from chipwise.planner.load.curve import LoadCurve
from chipwise.planner.load.plan import arrivals
from chipwise.planner.rules import rules_of
from chipwise.planner.services.speed import Need
from chipwise.planner.services.ways import Demand
from chipwise.planner.values.choice import Choice
from chipwise.predictor.kinds.latencies import share_of
from chipwise.predictor.settings import SERVING_PRECISIONS
from chipwise.text import duration
from chipwise.units import HOUR, MONTH, WEEK
from chipwise.workload.kinds import Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

HOURS_OF_A_DAY = 6  # levels at which a bill by use is reckoned
LEVELS = 24  # of the rate of a day that a break-even looks at
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)

Dedicated = Choice | Sequence[tuple[float, float]]


def demand_of(known: Known, work: Serve, name: str, dedicated: Dedicated, path: str) -> Demand:
    if work.arrival.rate is None:
        raise BadInput("arrival: services can be priced only for arrivals at a rate.", remedy="arrival: {rate: 10 req/s}")
    hours = (work.schedule.hours_per_week or WEEK / HOUR) * MONTH / WEEK
    goals = tuple(
        (metric, share_of(percentile), limit)
        for metric in ("ttft", "tpot", "latency")
        if (stated := getattr(work.goals, metric)) is not None
        for percentile, limit in stated.limits
    )
    lengths = [0.0 if one is None else float(one.mean) for one in (work.input_tokens, work.output_tokens)]
    longest = [0.0 if one is None else float(one.max or one.mean) for one in (work.input_tokens, work.output_tokens)]
    precisions = [str(one) for one in ((work.precision,) if work.precision is not None else work.limits.precision)]
    need = Need(
        input_tokens=lengths[0],
        output_tokens=lengths[1],
        prefix_tokens=float(work.shared_prefix_tokens or 0.0),
        context=max(float(work.context or 0.0), sum(longest)),
        precisions=serving_formats(precisions) or SERVING_PRECISIONS[known.find_model(name).published_precision],
        asked=bool(precisions),
        kv_precision=str(work.kv_precision) if work.kv_precision else None,
        shares=tuple(sorted({*SHARES, *(share for _, share, _ in goals)})),
    )
    curve = arrivals(known, work, path).curve
    peak = max(curve.busiest / curve.mean, 1.0)
    bursts = phases_of(work.arrival.rate * peak, work.arrival.burstiness)
    return Demand(
        model=name,
        rate=work.arrival.rate,
        hours=hours,
        peak=peak,
        day=_mean_levels(curve),
        bursts=bursts,
        need=need,
        goals=goals,
        rules=rules_of(known, work.limits),
        fleets=_fleets(work, dedicated, hours, curve),
        most_chips=float(work.limits.chip_count.max or inf),
        assumed=(_bursts_words(bursts),) if bursts > 1 else (),
        confidence=work.goals.sure_share,
        sure_enough=work.goals.sure_enough,
        network=("the network to the users is not counted: where it answers from is not stated",) if work.traffic else (),
    )


def _bursts_words(bursts: float) -> str:
    return f"bursts counted as phases of {duration(BURST_S)} at {bursts:.3g} times the mean rate, and none between"


def _fleets(work: Serve, dedicated: Dedicated, hours: float, curve: LoadCurve) -> tuple[ReplicaSet, ...]:
    """What they cost in an hour of the schedule, machine by machine where they are counted, as many as the plan would have at
    any other rate of the same shape: with the headroom, and at night fewer where they follow the load."""
    peak = max(curve.busiest / curve.mean, 1.0)
    if not isinstance(dedicated, Choice):
        return tuple(ReplicaSet(usd / hours, rate / peak) for usd, rate in dedicated)
    machines = max(dedicated.machines, 1)
    inside = max((dedicated.replicas or machines) / machines, 1.0)
    fewest = max(round((work.replicas.min or 1) / inside + 0.499), 1)
    planned = dedicated.rate if dedicated.planned is None else dedicated.planned
    fleet = ReplicaSet(dedicated.usd / machines / hours, inf if planned is None else planned / machines, min(fewest, machines))
    day = _top_levels(curve) if dedicated.over_time is not None else ()
    if len(day) < 2 or planned is None:
        return (replace(fleet, requests_per_s=fleet.requests_per_s / peak),)
    following = replace(fleet, day=day)
    up = following.replicas(curve.mean)
    return (replace(following, usd_per_hour=dedicated.usd / hours / up),)  # what starting up costs is in it


def _mean_levels(curve: LoadCurve) -> Levels:
    """The mean rate of a few levels of the day, as many hours each: what is paid by use follows each hour, and its cost bends
    little between."""
    order = np.argsort(curve.rate, kind="stable")
    rates, hours = curve.rate[order], curve.hours[order]
    middle = (np.cumsum(hours) - hours / 2) / hours.sum()
    level = np.minimum((middle * HOURS_OF_A_DAY).astype(np.intp), HOURS_OF_A_DAY - 1)
    total = np.bincount(level, weights=hours, minlength=HOURS_OF_A_DAY)
    mean = np.bincount(level, weights=hours * rates, minlength=HOURS_OF_A_DAY) / np.maximum(total, 1e-12) / curve.mean
    return tuple((float(mean[at]), float(total[at] / hours.sum())) for at in np.flatnonzero(total).tolist())


def _top_levels(curve: LoadCurve) -> tuple[tuple[float, float], ...]:
    """The highest rate of each of a few levels, where a recording has many steps: machines are there for it."""
    rates, position = np.unique(curve.rate, return_inverse=True)
    hours = np.bincount(position, weights=curve.hours)
    if len(rates) > LEVELS:
        level = np.minimum(np.arange(len(rates)) * LEVELS // len(rates), LEVELS - 1)
        tops = np.array([rates[level == at].max() for at in range(LEVELS)])
        rates, hours = tops, np.bincount(level, weights=hours)
    return tuple(zip(rates.tolist(), hours.tolist(), strict=True))
