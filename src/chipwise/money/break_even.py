"""The traffic from which machines of one's own cost less than paying by use.

Machines cost by the hour in steps: so many replicas for so much traffic. What is paid by use rises with every request.
So there may be several crossings: right above a step the new replica is nearly empty. `first` is the lowest rate at which
the machines cost no more; from `always` on they cost no more at any rate. Over a day replicas follow the load of each hour:
rates are means, and the hours of the night hold fewer machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import InvalidSettings, Problem
from chipwise.text import price

_STEPS = 100  # steps that are looked at one by one; beyond, two prices are too near to tell apart
_FIRST_STEPS = 20  # steps that are looked at for a first crossing where there is no lasting one
_GRID = 12  # rates per step at which a cost that need not rise steadily is looked at
_DAY_STEPS = 20_000  # of the level with the most replicas of a day; beyond, as `_STEPS`
_DAY_GRID = 60  # rates at which a day is looked at, from `_LOWEST` of the highest on
_LOWEST = 1e-4
_ROUNDING = 1e-12  # of a count of replicas: 3.0000000001 needs three


@dataclass(frozen=True, slots=True)
class ReplicaSet:
    """Machines that run all the time: each `usd_per_hour`, each good for `requests_per_s`."""

    usd_per_hour: float
    requests_per_s: float = inf
    minimum: int = 1
    fixed_usd_per_hour: float = 0.0  # gateway, disks, staff: whatever does not grow with the replicas
    day: tuple[tuple[float, float], ...] = ((1.0, 1.0),)  # levels of the rate that replicas follow, and hours of each

    def __post_init__(self) -> None:
        problems = [
            Problem(name, f"{value:g} is not an amount of USD per hour", allowed="a finite number from 0 on")
            for name, value in (("usd_per_hour", self.usd_per_hour), ("fixed_usd_per_hour", self.fixed_usd_per_hour))
            if not (isfinite(value) and value >= 0)
        ]
        if not self.requests_per_s > 0:
            problems.append(Problem("requests_per_s", f"{self.requests_per_s:g} serves no requests", allowed="more than 0"))
        if self.minimum < 1:
            problems.append(Problem("minimum", f"{self.minimum} replicas serve no requests", allowed="1 or more"))
        if problems:
            raise InvalidSettings(*problems)

    @property
    def levels(self) -> tuple[tuple[float, float], ...]:
        """Of each level of the day the rate over the mean, and its share of the hours."""
        hours = sum(share for _, share in self.day)
        mean = sum(rate * share for rate, share in self.day) / hours
        return tuple((rate / mean, share / hours) for rate, share in self.day)

    def replicas(self, requests_per_s: float) -> float:
        """Over all hours, of a mean rate."""
        return sum(
            share * max(self.minimum, ceil(requests_per_s * level / self.requests_per_s - _ROUNDING))
            for level, share in self.levels
        )

    def costs(self, requests_per_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """USD per hour of many rates."""
        replicas = np.zeros(len(requests_per_s))
        for level, share in self.levels:
            counts = np.ceil(requests_per_s * (level / self.requests_per_s) - _ROUNDING)
            replicas += share * np.maximum(counts, self.minimum)
        return replicas * self.usd_per_hour + self.fixed_usd_per_hour

    def cost(self, requests_per_s: float) -> float:
        """USD per hour."""
        return self.replicas(requests_per_s) * self.usd_per_hour + self.fixed_usd_per_hour


@dataclass(frozen=True, slots=True)
class BreakEven:
    first: float | None  # requests per second; None: at no rate
    always: float | None
    why: str


def by_the_request(usd_per_request: float, fleet: ReplicaSet) -> BreakEven:
    """Closed form, where each request costs the same.

    With s = 3600 x USD per request, n replicas of h USD/h for q requests/s each and f USD/h beside them, the machines cost
    no more on step n from (n h + f) / s on. That lies below the step's end n q if n (q - h/s) >= f/s, and above its start
    (n-1) q, so that the service wins there once more, if n (q - h/s) < q + f/s.
    """
    slope = 3600.0 * usd_per_request
    h, f, q, minimum = fleet.usd_per_hour, fleet.fixed_usd_per_hour, fleet.requests_per_s, fleet.minimum
    if slope <= 0:
        return BreakEven(None, None, "the service costs nothing")
    if q == inf:
        rate = (minimum * h + f) / slope
        return BreakEven(rate, rate, _tell(rate))
    margin = q - h / slope
    if len(fleet.day) > 1 and margin > 0:
        return _over_a_day(slope, fleet)
    if margin <= 0 and minimum * margin < f / slope:
        full = price(h / q / 3600.0)
        return BreakEven(
            None,
            None,
            f"even a replica with all of its planned load costs {full} a request, the service {price(usd_per_request)}",
        )
    if margin <= 0:  # equal to the last digit at the end of every step, and nothing beside the replicas
        return BreakEven(minimum * q, None, "a full replica costs what the service does")
    winning = max(minimum, ceil(f / slope / margin - _ROUNDING))
    first = (winning * h + f) / slope
    losing = ceil((q + f / slope) / margin - _ROUNDING) - 1  # the last step at whose start the service wins
    always = (max(losing, winning) * h + f) / slope
    return BreakEven(first, always, _tell(always))


def _over_a_day(slope: float, fleet: ReplicaSet) -> BreakEven:
    """Step by step. Between two rates at which some hour needs one replica more the machines cost the same, so there they win
    from cost / slope on; n(x) <= minimum + x / q says where the last of the steps is that can lose."""
    h, q, minimum = fleet.usd_per_hour, fleet.requests_per_s, fleet.minimum
    bound = (minimum * h + fleet.fixed_usd_per_hour) / (slope - h / q)
    levels = [level for level, _ in fleet.levels if level > 0]
    last = max(bound, 1.0) if bound * max(levels) / q < _DAY_STEPS else _DAY_STEPS * q / max(levels)
    ends = [np.arange(minimum, last * level / q + 1.0) * (q / level) for level in levels]
    rates = np.unique(np.concatenate(ends))
    top = min(bound, last)
    edges = np.concatenate(([0.0], rates[(rates > 0) & (rates < top)], [top]))
    starts, stops = edges[:-1], edges[1:]
    crossings = fleet.costs((starts + stops) / 2) / slope
    wins, loses = np.flatnonzero(crossings <= stops), np.flatnonzero(crossings > starts)
    first = float(max(crossings[wins[0]], starts[wins[0]])) if len(wins) else None
    if top < bound:
        near = f"a full replica costs nearly what the service does: {price(h / q / 3600.0)} a request, "
        return BreakEven(first, None, f"{near}the service {price(slope / 3600.0)}")
    always = float(min(crossings[loses[-1]], stops[loses[-1]])) if len(loses) else None
    if first is None or always is None:
        first = always = bound
    return BreakEven(first, max(always, first), _tell(max(always, first)))


class _Crossing(NamedTuple):
    """Between two rates, above which machines for `usd` an hour cost less than the service."""

    left: float
    right: float
    usd: float


def by_curve(rented: Callable[[float], float], least_slope: float, fleet: ReplicaSet) -> BreakEven:
    """Looked for, where the cost by use is any curve: `rented(rate)` USD per hour.

    `least_slope` x rate is a lower bound of it, in USD/h for each request per second; it says where the search may end.
    """
    h, f, q, minimum = fleet.usd_per_hour, fleet.fixed_usd_per_hour, fleet.requests_per_s, fleet.minimum
    if least_slope <= 0:
        return BreakEven(None, None, "the service costs nothing")
    if len(fleet.day) > 1:
        return _curve_over_a_day(rented, least_slope, fleet)
    if q == inf:
        end = (minimum * h + f) / least_slope
        steps = [(0.0, end, minimum * h + f)]
        surely = end
    else:
        margin = q - h / least_slope
        last = floor((q + f / least_slope) / margin) + 1 if margin > 0 else _FIRST_STEPS + minimum
        surely = max(last, minimum) * q if margin > 0 and last <= _STEPS + minimum else inf
        top = max(min(last, _STEPS + minimum), minimum)
        steps = [(0.0 if n == minimum else (n - 1) * q, n * q, n * h + f) for n in range(minimum, top + 1)]
    first: float | _Crossing | None = None
    always: float | _Crossing | None = 0.0
    for start, end, usd in steps:
        rates = [start + (end - start) * i / _GRID for i in range(_GRID + 1)]
        rates[0] = start + (end - start) * 1e-9  # right above the step: the replica is there already
        wins = [least_slope * rate >= usd or rented(rate) >= usd for rate in rates]
        for left, right, before, after in zip(rates, rates[1:], wins, wins[1:], strict=False):
            if after and not before:
                always = _Crossing(left, right, usd)
                first = always if first is None else first
        if wins[0] and always is None:
            first, always = start if first is None else first, start
        if not wins[-1]:
            always = None
        if first is not None and surely == inf:
            break  # none lasts, and no later one is the first

    def rate_of(found: float | _Crossing) -> float:
        """Looked for closely only where it is the answer: a crossing is asked for dozens of times."""
        return _bisect(lambda rate: rented(rate) >= found.usd, *found[:2]) if isinstance(found, _Crossing) else found

    first_rate = None if first is None else rate_of(first)
    if always is None or surely == inf:
        return BreakEven(first_rate, None, _full(first is None, h, q))
    lasting = first_rate if first_rate is not None and always is first else rate_of(always)
    return BreakEven(lasting if first_rate is None else first_rate, lasting, _tell(lasting))


def _curve_over_a_day(rented: Callable[[float], float], least_slope: float, fleet: ReplicaSet) -> BreakEven:
    """On a grid of rates: replicas of a day step so often that each step is short. From the bound of `_over_a_day` on the
    machines cost less; where there is none, a first crossing is looked for."""
    h, q, minimum = fleet.usd_per_hour, fleet.requests_per_s, fleet.minimum
    margin = least_slope - h / q
    end = (minimum * h + fleet.fixed_usd_per_hour) / margin if margin > 0 else inf
    top = min(end, (_STEPS + minimum) * q) if margin > 0 else (_FIRST_STEPS + minimum) * q

    def wins(rate: float) -> bool:
        usd = fleet.cost(rate)
        return least_slope * rate >= usd or rented(rate) >= usd

    rates = [top * _LOWEST ** (1 - at / _DAY_GRID) for at in range(_DAY_GRID + 1)]
    won: list[bool] = []
    for rate in rates:
        won.append(wins(rate))
        if won[-1] and end > top:
            break  # none lasts, and no later one is the first
    rises = [pair for pair, (before, after) in zip(pairwise(rates), pairwise(won), strict=False) if after and not before]
    first = 0.0 if won[0] else _bisect(wins, *rises[0]) if rises else None
    if not won[-1] or end > top:
        return BreakEven(first, None, _full(first is None, h, q))
    always = _bisect(wins, *rises[-1]) if rises and (won[0] or rises[1:]) else first or 0.0
    return BreakEven(first, always, _tell(always))


def _full(never: bool, usd_per_hour: float, requests_per_s: float) -> str:
    often = "" if never else "cheaper at some rates only, and at no rate from which on it always is; "
    return f"{often}at its full load of {requests_per_s:.3g} requests/s a machine costs {price(usd_per_hour)} an hour"


def _bisect(holds: Callable[[float], bool], left: float, right: float) -> float:
    """The lowest rate of which `holds`, for it holds at `right` and not at `left`."""
    for _ in range(30):  # a thousand-millionth of a step of the grid
        middle = (left + right) / 2
        left, right = (left, middle) if holds(middle) else (middle, right)
    return right


def _tell(rate: float) -> str:
    return f"from {rate:.3g} requests/s ({rate * 86400:,.0f} a day) on the machines cost less"
