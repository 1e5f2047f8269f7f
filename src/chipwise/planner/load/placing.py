"""Where to stand when users are spread over the world: the cheapest regions that reach everybody and outlive one of them.

Requests go to the nearest region that is up, as latency-based name services send them. Light in fibre takes 1 ms for 200 km,
and fibre is longer than the great circle, so the round trip over a distance d is assumed to be

    round trip = ACCESS_S + 2 x STRETCH x d / 200,000 km/s

A set of regions is good when all but `FAR_SHARE` of the traffic is answered within the time that the goals leave for the
network; when, with any one of its regions lost, the others reach all but that share within `RELAXED` times that time; and
when the machines of each region hold in every one of these cases (so many that the rest carries the whole peak). Its cost is
that of the machines, each region's from the kind that carries its part for the least money.

Every set of two and of three regions is tried: of at most `MOST_SITES`, the cheapest and for each origin the nearest ones. So
the answer is the best of these sets; more than three regions, and parts of one origin sent to several regions to fill machines,
are not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.planner.values.placement import Lost, Placement, Stand
from chipwise.text import round_trip
from chipwise.workload.trace import Floats

FIBRE_M_PER_S = 2e8
STRETCH = 1.4  # fibre over great circle: assumed, about what round trips between large cities come to
ACCESS_S = 0.005  # the last mile and the region's own network: assumed
FAR_SHARE = 0.05  # of the traffic that may be farther away: goals are percentiles
RELAXED = 2.0
MOST_SITES = 24
EARTH_M = 6.371e6
SIZES = (2, 3)


@dataclass(frozen=True, slots=True)
class Origin:
    """A point that a share of the traffic comes from."""

    name: str
    share: float
    latitude: float
    longitude: float


class Unit(NamedTuple):
    """A kind of machine in a region."""

    machine: str
    rate: float  # of one, within the goals
    usd: float  # of one, a month


@dataclass(frozen=True, slots=True)
class Site:
    provider: str
    region: str
    country: str | None
    latitude: float
    longitude: float
    units: tuple[Unit, ...]

    @property
    def name(self) -> str:
        return f"{self.provider} {self.region}"


def round_trip_s(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Between two points in degrees."""
    return float(_trips(np.array([one]), np.array([other]))[0, 0])


def _trips(sources: Floats, targets: Floats) -> Floats:
    """[source, target], of (latitude, longitude) in degrees."""
    lat1, lon1 = np.radians(sources[:, :1]), np.radians(sources[:, 1:])
    lat2, lon2 = np.radians(targets[:, 0])[None, :], np.radians(targets[:, 1])[None, :]
    arc = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    metres = 2 * EARTH_M * np.arcsin(np.sqrt(np.clip(arc, 0.0, 1.0)))
    return np.asarray(ACCESS_S + 2 * STRETCH * metres / FIBRE_M_PER_S, dtype=np.float64)


def place(origins: Sequence[Origin], sites: Sequence[Site], rate: float, limit_s: float, basis: str) -> Placement:
    """The cheapest set for the peak `rate`; where none does, `missing` says what the nearest lacks."""
    if not origins or not sites:
        none = "no allowed region has known coordinates" if origins else "the origin of the traffic is not known"
        return Placement(
            stands=(),
            usd=0.0,
            single_usd=None,
            limit_s=limit_s,
            basis=basis,
            losses=(),
            set_count=0,
            sites=len(sites),
            missing=none,
        )
    share = np.array([one.share for one in origins])
    share = share / share.sum()
    trips = _trips(
        np.array([(one.latitude, one.longitude) for one in sites]), np.array([(one.latitude, one.longitude) for one in origins])
    )
    picked = _likely(sites, trips, rate)
    candidates, trips = [sites[at] for at in picked], trips[picked]
    alone = _single(candidates, trips, share, rate, limit_s)
    best: tuple[float, tuple[int, ...]] | None = None
    count, nearest = 0, np.inf
    for size in SIZES:
        if len(candidates) < size:
            continue
        sets = np.array(list(combinations(range(len(candidates)), size)), dtype=np.intp)
        count += len(sets)
        judged = _judge(sets, candidates, trips, share, rate)
        fine = (judged.near <= limit_s) & (judged.after <= RELAXED * limit_s)
        nearest = min(nearest, float(np.maximum(judged.near, judged.after / RELAXED).min()))
        for index in np.flatnonzero(fine).tolist():
            if best is None or judged.usd[index] < best[0] - 1e-9:
                best = (float(judged.usd[index]), tuple(sets[index].tolist()))
    if best is None:
        return Placement(
            stands=(),
            usd=0.0,
            single_usd=alone,
            limit_s=limit_s,
            basis=basis,
            losses=(),
            set_count=count,
            sites=len(sites),
            missing=_lacking(len(candidates), nearest, limit_s),
        )
    stands, losses = _stands(best[1], candidates, trips, share, rate)
    return Placement(
        stands=stands,
        usd=best[0],
        single_usd=alone,
        limit_s=limit_s,
        basis=basis,
        losses=losses,
        set_count=count,
        sites=len(sites),
    )


def _likely(sites: Sequence[Site], trips: Floats, rate: float) -> list[int]:
    """The cheapest regions for half of the load, and for each origin the nearest two."""
    usd = np.array([_cost(one, np.array([rate / 2]))[0] for one in sites])
    nearest = dict.fromkeys(at for column in np.argsort(trips, axis=0, kind="stable")[:2].T.tolist() for at in column)
    first = list(nearest)[: MOST_SITES // 2]
    cheap = [at for at in np.argsort(usd, kind="stable").tolist() if at not in first]
    return sorted([*first, *cheap[: MOST_SITES - len(first)]])


def _cost(site: Site, rates: Floats) -> Floats:
    """USD a month of the machines for each rate; nothing for none."""
    costs = [np.ceil(rates / unit.rate - 1e-9) * unit.usd for unit in site.units]
    return np.asarray(np.min(np.stack(costs), axis=0), dtype=np.float64)


class _Judged(NamedTuple):
    near: Floats  # round trip that all but FAR_SHARE of the traffic stays within
    after: Floats  # the same with any one region lost
    need: Floats  # [set, region]: most of the traffic that it ever carries
    usd: Floats


def _judge(sets: NDArray[np.intp], sites: Sequence[Site], trips: Floats, share: Floats, rate: float) -> _Judged:
    reach = trips[sets]  # [set, region, origin]
    size = sets.shape[1]
    need = np.zeros(sets.shape)
    near = after = np.zeros(len(sets))
    for lost in (None, *range(size)) if size > 1 else (None,):
        reachable = reach.copy()
        if lost is not None:
            reachable[:, lost] = np.inf
        chosen = reachable.argmin(axis=1)
        trip = _common_trip(reachable.min(axis=1), share)
        need = np.maximum(need, np.stack([np.where(chosen == at, share, 0.0).sum(axis=1) for at in range(size)], axis=1))
        near, after = (trip, after) if lost is None else (near, np.maximum(after, trip))
    usd = np.zeros(len(sets))
    for index in range(len(sites)):
        mask = sets == index
        if mask.any():
            rows = mask.any(axis=1)
            usd[rows] += _cost(sites[index], need[mask] * rate)
    return _Judged(near, after, need, usd)


def _common_trip(trips: Floats, share: Floats) -> Floats:
    """Of each row the round trip that all but FAR_SHARE of the traffic stays within."""
    order = np.argsort(trips, axis=1, kind="stable")
    below = np.cumsum(share[order], axis=1)
    position = np.argmax(below >= 1.0 - FAR_SHARE - 1e-9, axis=1)
    rows = np.arange(len(trips))
    return np.asarray(trips[rows, order[rows, position]], dtype=np.float64)


def common_trip_s(origins: Sequence[Origin], points: Sequence[tuple[float, float]]) -> list[float]:
    """Of each point, in degrees, the round trip that all but FAR_SHARE of the traffic stays within; infinite without any."""
    if not origins:
        return [float("inf")] * len(points)
    share = np.array([one.share for one in origins])
    trips = _trips(np.array(points), np.array([(one.latitude, one.longitude) for one in origins]))
    common: list[float] = _common_trip(trips, share / share.sum()).tolist()
    return common


def _single(sites: Sequence[Site], trips: Floats, share: Floats, rate: float, limit_s: float) -> float | None:
    near = _common_trip(trips, share)
    costs = [float(_cost(site, np.array([rate]))[0]) for site, far in zip(sites, near, strict=True) if far <= limit_s]
    return min(costs, default=None)


def _stands(
    chosen: tuple[int, ...], sites: Sequence[Site], trips: Floats, share: Floats, rate: float
) -> tuple[tuple[Stand, ...], tuple[Lost, ...]]:
    reach = trips[list(chosen)]
    serves = reach.argmin(axis=0)
    need = _judge(np.array([chosen], dtype=np.intp), sites, trips, share, rate).need[0]
    stands = []
    for index, number in enumerate(chosen):
        site = sites[number]
        wanted = need[index] * rate
        unit = min(site.units, key=lambda one: np.ceil(wanted / one.rate - 1e-9) * one.usd)
        count = int(np.ceil(wanted / unit.rate - 1e-9))
        mask = serves == index
        stands.append(
            Stand(
                provider=site.provider,
                region=site.region,
                country=site.country,
                machine=unit.machine,
                machines=count,
                rate=count * unit.rate,
                share=float(share[mask].sum()),
                usd=count * unit.usd,
                farthest_s=float(reach[index][mask].max(initial=0.0)),
            )
        )
    losses = []
    for index, stand in enumerate(stands):
        left = np.delete(reach, index, axis=0)
        carried = sum(one.rate for other, one in enumerate(stands) if other != index)
        losses.append(
            Lost(f"{stand.provider} {stand.region}", float(_common_trip(left.min(axis=0)[None, :], share)[0]), carried / rate)
        )
    order = sorted(range(len(stands)), key=lambda at: -stands[at].share)
    return tuple(stands[at] for at in order), tuple(losses[at] for at in order)


def _lacking(sites: int, nearest: float, limit_s: float) -> str:
    if sites < 2:
        return "one region is allowed, and its loss is an outage: allow a second (limits.regions, countries, clouds)"
    return (
        f"no two or three of {sites} regions are near enough: the best set has a round trip of {round_trip(nearest)} where "
        f"the goals leave {round_trip(limit_s)}; allow more regions, or a looser ttft or latency"
    )
