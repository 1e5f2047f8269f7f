"""The cheapest layering of a load: how much of it on owned, reserved, on-demand and spot machines, solved exactly.

The load says how many equal machines run in each hour. An option is either paid by the hour used (on-demand, spot, machines
that are owned anyway and cost power), or committed: each machine is paid for every hour of the horizon (reserved, or
bought), plus `running_usd_per_hour` for hours it works. Options have a capacity, and the options of a usable share of s or
less may together carry at most the share s of the load at any moment, rounded down (the part of the load that stands
interruption). Committed options carry any load.

Why it is exact. Let b be the price of a used hour, H the horizon, n_t the load of step t, w_t its hours.

1. Hourly options only. At each step a cheapest choice under nested limits is found by taking options in the order of b,
   each as far as its capacity and the limits allow: the feasible sets are independent sets of a laminar matroid, where
   greed is optimal for every number of units at once. So step t has a ladder of prices, ladder_t[1] <= ladder_t[2] <= ...,
   and its r cheapest units cost the sum of the first r rungs.
2. With k committed machines, b_1 <= ... <= b_k, step t takes the n_t cheapest of those and the rungs: the p-th committed
   machine works if it is cheaper than the rung it replaces, so position p costs min(b_p, ladder_t[n_t - p + 1]). That
   depends on p and on the option in place p, on no other choice. The total is therefore a sum over positions p <= k of
   H x committed price + sum_t w_t min(b_p, ladder_t[n_t - p + 1]), and over p > k of the rungs alone.
3. Options stand in the order of b, so each holds a contiguous block of positions, at most its capacity long. The best ends of
   the blocks follow by dynamic programming: best_i(k) = total_i(k) + min over j in [k - capacity_i, k] of
   (best_{i-1}(j) - total_i(j)), with total_i the running sums of option i's costs. Every combination is covered, so the
   least is the optimum.

Each step is an array operation over positions (the largest load) or over the loads that occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import InvalidSettings, NoResult, Problem
from chipwise.money.cost import Cost, Line

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

MOST_MACHINES = 200_000  # positions held at once; a larger load is counted in racks or dozens


@dataclass(frozen=True, slots=True)
class Load:
    """The duration curve: how many hours each number of machines is needed."""

    machines: Counts  # different numbers, ascending
    hours: Floats

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[float, float]]) -> Load:
        """(machines, hours); hours without load are (0, hours), for commitments are paid then too."""
        table = np.asarray(tuple(pairs), dtype=float).reshape(-1, 2)
        return cls._from_columns(table[:, 0], table[:, 1])

    @classmethod
    def _from_columns(cls, counts: Floats, hours: Floats) -> Load:
        problems = []
        if not counts.size or not (np.isfinite(counts) & (counts >= 0)).all():
            problems.append(Problem("machines", "is empty, negative, or no number", allowed="0 or more for each step"))
        elif counts.max() > MOST_MACHINES:
            excess = f"{counts.max():,.0f} at once are too many to tell apart"
            problems.append(Problem("machines", excess, allowed=f"up to {MOST_MACHINES:,}; count in larger units"))
        if not (np.isfinite(hours) & (hours > 0)).all():
            problems.append(Problem("hours", "is not positive", allowed="more than 0 for each step"))
        if problems:
            raise InvalidSettings(*problems)
        levels, place = np.unique(np.ceil(counts - 1e-9).astype(np.int64), return_inverse=True)
        return cls(levels, np.bincount(place.ravel(), weights=hours, minlength=len(levels)).astype(float))

    @property
    def horizon_hours(self) -> float:
        return float(self.hours.sum())

    @property
    def machine_hours(self) -> float:
        return float(self.machines @ self.hours)

    @property
    def peak(self) -> int:
        return int(self.machines[-1])


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    usd_per_hour: float  # of one machine; spot with its lost work and restarts reckoned in
    committed: bool = False  # paid for every hour of the horizon, used or not
    capacity: int | None = None  # machines; None: as many as wanted
    usable_share: float = 1.0  # of the load at any moment, together with all options of as small a share
    running_usd_per_hour: float = 0.0  # a used hour costs this on top: power of bought machines
    term_years: float = 0.0  # for which a rented machine is promised; 0: no contract


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    machines: int  # committed, or at once at the most
    hours_used: float  # machine-hours
    hours_paid: float
    usd: float
    committed: bool = False  # bought for a term
    owned: str = ""  # machines of one's own: which and where; empty: rented
    term_years: float = 0.0  # of the contract; 0: none

    @property
    def utilisation(self) -> float:
        return self.hours_used / self.hours_paid if self.hours_paid else 0.0


@dataclass(frozen=True, slots=True)
class Alone:
    """The whole load on one option; `usd` is None where it cannot carry it, and `why` says so."""

    name: str
    usd: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Layering:
    layers: tuple[Layer, ...]  # from the base up; options that are not used are left out
    cost: Cost
    alone: tuple[Alone, ...]

    @property
    def usd(self) -> float:
        return self.cost.usd


class _Ladder(NamedTuple):
    """For each hourly option (by price) and each load that occurs: from which to which unit it serves, alone."""

    options: tuple[Option, ...]
    below: Counts  # [option, load]: units of cheaper options
    upto: Counts
    hours: Floats  # [option + 1, position]: hours in which the option's unit stands there; last row: nobody's
    missing: int  # positions that only a committed machine can fill


def layer(load: Load, options: Sequence[Option]) -> Layering:
    """The cheapest way to carry the load. NoResult where the capacities cannot."""
    _check(options)
    committed = sorted((one for one in options if one.committed), key=lambda one: one.running_usd_per_hour)
    ladder = _ladder(load, [one for one in options if not one.committed])
    ends = _best_blocks(load, committed, ladder)
    layers = (*_committed_layers(load, committed, ends, ladder), *_hourly_layers(load, committed, ends, ladder))
    used = tuple(one for one in layers if one.machines)
    lines = [
        Line(one.name, one.usd, f"{one.machines} machines, {one.hours_used:,.6g} of {one.hours_paid:,.6g} h") for one in used
    ]
    return Layering(used, Cost.of(lines), tuple(_alone(load, one) for one in options))


def _hourly_usd(option: Option) -> float:
    return option.running_usd_per_hour + (0.0 if option.committed else option.usd_per_hour)


def _ladder(load: Load, options: Sequence[Option]) -> _Ladder:
    ordered = tuple(sorted(options, key=_hourly_usd))
    loads, positions = load.machines, load.peak
    limits = {one.usable_share: np.floor(one.usable_share * loads + 1e-9).astype(np.int64) for one in ordered}
    carried = {share: np.zeros_like(loads) for share in limits}
    served = np.zeros_like(loads)
    below, upto = [], []
    for option in ordered:
        room = loads - served
        if option.capacity is not None:
            room = np.minimum(room, option.capacity)
        wider = [share for share in limits if share >= option.usable_share]
        for share in wider:
            room = np.minimum(room, limits[share] - carried[share])
        for share in wider:
            carried[share] = carried[share] + room
        below.append(served)
        served = served + room
        upto.append(served)
    shape = (len(ordered), len(loads))
    # Unit r of load n stands at position n - r + 1: ranges of positions, added up by their ends.
    starts = np.vstack([*(loads - top for top in upto), np.zeros_like(loads)])
    stops = np.vstack([*(loads - low for low in below), loads - served])
    hours = np.zeros((len(ordered) + 1, positions))
    for row in range(len(ordered) + 1):
        change = np.bincount(starts[row], weights=load.hours, minlength=positions + 1)
        change = change - np.bincount(stops[row], weights=load.hours, minlength=positions + 1)
        hours[row] = np.cumsum(change)[:positions]
    # Sums of differences leave dust where nothing stands: far less than any step lasts.
    hours[hours < 1e-6 * load.hours.min()] = 0.0
    low, top = (np.array(edge, dtype=np.int64).reshape(shape) for edge in (below, upto))
    return _Ladder(options=ordered, below=low, upto=top, hours=hours, missing=int((loads - served).max()))


def _best_blocks(load: Load, committed: Sequence[Option], ladder: _Ladder) -> list[int]:
    """Where each committed option's block of positions ends."""
    positions = load.peak
    rungs = np.array([_hourly_usd(one) for one in ladder.options] + [np.inf])
    above = rungs[:-1] @ ladder.hours[:-1]
    best = np.full(positions + 1, np.inf)
    best[0] = 0.0
    befores, totals = [], []
    for option in committed:
        work = np.minimum(option.running_usd_per_hour, rungs) @ ladder.hours
        total = np.concatenate(([0.0], np.cumsum(option.usd_per_hour * load.horizon_hours + work)))
        befores.append(best)
        totals.append(total)
        best = total + _window_least(best - total, positions if option.capacity is None else min(option.capacity, positions))
    rest = np.concatenate((np.cumsum(above[::-1])[::-1], [0.0]))
    totals_usd = best + rest
    totals_usd[: ladder.missing] = np.inf
    end = int(np.argmin(totals_usd))
    if not np.isfinite(totals_usd[end]):
        raise NoResult(
            f"The options carry too little: {ladder.missing:,} of at most {positions:,} machines have no option.",
            remedy="Raise a capacity or a usable share, or add on-demand without a limit.",
        )
    ends = [end]
    for option, before, total in zip(reversed(committed), reversed(befores), reversed(totals), strict=True):
        low = 0 if option.capacity is None else max(0, ends[0] - option.capacity)
        ends.insert(0, low + int(np.argmin((before - total)[low : ends[0] + 1])))
    return ends[1:]


def _window_least(values: Floats, back: int) -> Floats:
    """The least of each value and the `back` values before it, by running minima from both ends of blocks."""
    if back >= len(values) - 1:
        return np.minimum.accumulate(values)
    width = back + 1
    blocks = np.full((-(-(len(values) + back) // width), width), np.inf)
    blocks.ravel()[back : back + len(values)] = values
    forward = np.minimum.accumulate(blocks, axis=1).ravel()
    backward = np.minimum.accumulate(blocks[:, ::-1], axis=1)[:, ::-1].ravel()
    return np.minimum(backward[: len(values)], forward[back : back + len(values)])


def _committed_layers(load: Load, committed: Sequence[Option], ends: Sequence[int], ladder: _Ladder) -> list[Layer]:
    rungs = np.array([_hourly_usd(one) for one in ladder.options] + [np.inf])
    layers, start = [], 0
    for option, end in zip(committed, ends, strict=True):
        replaces = rungs >= option.running_usd_per_hour
        used = float(ladder.hours[replaces, start:end].sum())
        paid = (end - start) * load.horizon_hours
        layers.append(
            Layer(
                name=option.name,
                machines=end - start,
                hours_used=used,
                hours_paid=paid,
                usd=paid * option.usd_per_hour + used * option.running_usd_per_hour,
                committed=True,
                term_years=option.term_years,
            )
        )
        start = end
    return layers


def _hourly_layers(load: Load, committed: Sequence[Option], ends: Sequence[int], ladder: _Ladder) -> list[Layer]:
    layers = []
    for option, below, upto in zip(ladder.options, ladder.below, ladder.upto, strict=True):
        # Committed machines that run no dearer than this option stand before it.
        before = max(
            (end for mine, end in zip(committed, ends, strict=True) if mine.running_usd_per_hour <= _hourly_usd(option)),
            default=0,
        )
        at_once = np.maximum(load.machines - below - np.maximum(load.machines - upto, before), 0)
        used = float(at_once @ load.hours)
        layers.append(
            Layer(
                name=option.name,
                machines=int(at_once.max(initial=0)),
                hours_used=used,
                hours_paid=used,
                usd=used * _hourly_usd(option),
            )
        )
    return layers


def _alone(load: Load, option: Option) -> Alone:
    if option.capacity is not None and option.capacity < load.peak:
        return Alone(option.name, None, f"has {option.capacity:,} machines, the load needs {load.peak:,}")
    carries = np.floor(option.usable_share * load.machines + 1e-9)
    if (carries < load.machines).any():
        return Alone(option.name, None, f"may carry {option.usable_share:.0%} of the load")
    paid = option.usd_per_hour * load.peak * load.horizon_hours if option.committed else 0.0
    return Alone(option.name, paid + _hourly_usd(option) * load.machine_hours)


def _check(options: Sequence[Option]) -> None:
    problems = []
    names = [one.name for one in options]
    if not options:
        problems.append(Problem("options", "is empty", allowed="at least one way to run a machine"))
    if len(set(names)) < len(names):
        problems.append(Problem("options", "names one option twice", allowed="a different name for each"))
    for option in options:
        for field in ("usd_per_hour", "running_usd_per_hour"):
            price = getattr(option, field)
            if not (np.isfinite(price) and price >= 0):
                problems.append(Problem(f"{option.name}.{field}", f"{price} is no price", allowed="0 or more"))
        if option.capacity is not None and option.capacity < 0:
            problems.append(Problem(f"{option.name}.capacity", f"{option.capacity} is negative", allowed="0 or more, or none"))
        if not 0 <= option.usable_share <= 1:
            problems.append(Problem(f"{option.name}.usable_share", f"{option.usable_share} is no share", allowed="0 to 1"))
        elif option.committed and option.usable_share < 1:
            problems.append(Problem(f"{option.name}.usable_share", "a committed option carries any load", allowed="1"))
    if problems:
        raise InvalidSettings(*problems)
