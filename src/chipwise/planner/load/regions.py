"""Regions for the traffic of a plan: where it comes from, which regions may be used, and how long the way may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.places import standing_for
from chipwise.catalog.region import Region
from chipwise.countries import place_name
from chipwise.planner.limits import Rules
from chipwise.planner.load.curve import LoadCurve
from chipwise.planner.load.machines import Kinds, first_of_each
from chipwise.planner.load.placing import FAR_SHARE, RELAXED, Origin, Site, Unit, common_trip_s, place
from chipwise.planner.values.placement import FARTHER, Placement, Reach
from chipwise.planner.values.plan import Plan, Rows
from chipwise.text import round_trip
from chipwise.workload.common import Common
from chipwise.workload.kinds import Interactive, Serve, Transcode

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

_SERVICES = (Serve, Interactive, Transcode)  # a stream of messages is as near to its source as it can be, whoever reads it
UNITS = 3  # kinds of machines that a region is placed with
NETWORK_SHARE = 0.2  # of the tightest of ttft and latency that the network may take, where traffic is given
NETWORK_MOST_S = 0.15  # a longer round trip is felt, whatever the goals are
NETWORK_MOST_SHARE = 0.5  # of that goal, where nothing is near enough to take less
NEAR_S = 0.06  # users of one part of the world are within it: about 4,000 km


def network_s(work: Common) -> float:
    """Seconds of a round trip that goals leave to the network; 0 where nothing is said of traffic."""
    if not work.traffic or not isinstance(work, _SERVICES) or getattr(work, "devices", None):
        return 0.0
    if work.limits.round_trip is not None:
        return float(work.limits.round_trip)
    return min(_share_s(work), NETWORK_MOST_S)


def _share_s(work: Common) -> float:
    stated = [goal for goal in (work.goals.ttft, work.goals.latency) if goal is not None]
    return float(NETWORK_SHARE * min((limit for goal in stated for _, limit in goal.limits), default=np.inf))


def nearer_first(known: Known, work: Common, rules: Rules) -> list[Common]:
    """The same workload with machines near its users, then as near as a region is allowed, then farther away, then anywhere: a
    plan is that of the first which fits. One that states how far they may be, or nothing of traffic, stands alone."""
    if work.limits.round_trip is not None or network_s(work) <= 0:
        return [work]
    nearest = _nearest_s(known, work, rules)
    most = min(NETWORK_MOST_S, _share_s(work) / NETWORK_SHARE * NETWORK_MOST_SHARE)
    wanted = min(NEAR_S, _share_s(work))
    trips = sorted({wanted, min(max(wanted, FARTHER * nearest), most), most})
    near: list[Common] = [
        work.model_copy(update={"limits": work.limits.model_copy(update={"round_trip": trip})})
        for trip in trips
        if trip >= nearest
    ]
    return [*near, work]


def _nearest_s(known: Known, work: Common, rules: Rules) -> float:
    """Of the regions that rules on providers and places leave."""
    reach = reach_of(known, work, known.catalog)
    assert reach is not None
    return min(
        (
            float(seconds)
            for region, seconds in zip(known.catalog.regions, reach.seconds, strict=True)
            if (rules.providers is None or region.provider in rules.providers)
            and region.provider not in rules.avoided_providers
            and (rules.regions is None or region.key in rules.regions)
            and region.key not in rules.avoided_regions
            and rules.permits(region)
        ),
        default=float("inf"),
    )


def reach_of(known: Known, work: Common, catalog: Catalog) -> Reach | None:
    """How far every region is from the users; None where nothing is said of traffic."""
    if network_s(work) <= 0:
        return None
    origins, _ = origins_of(known, work.traffic)
    points = [_points(region, catalog.data) for region in catalog.regions]
    trips = iter(common_trip_s(origins, [point for some in points for point in some]))
    farthest = [max((next(trips) for _ in some), default=float("inf")) for some in points]
    seconds = np.array([0.0 if one.on_site else trip for one, trip in zip(catalog.regions, farthest, strict=True)])
    names = [place_name(one) for one in work.traffic]
    users = " and ".join(names) if len(names) <= 2 else "the users"
    return Reach(seconds=seconds, users=users, limit_s=work.limits.round_trip or np.inf, allowance_s=network_s(work))


def _points(region: Region, data: Path) -> list[tuple[float, float]]:
    """Where it may be: its coordinates; else the points of its country, of which the farthest away counts."""
    if region.latitude is not None and region.longitude is not None:
        return [(region.latitude, region.longitude)]
    standing = standing_for(data, region.country) if region.country else ()
    return [(one.latitude, one.longitude) for one in standing if one.latitude is not None and one.longitude is not None]


def distance_notes(work: Common, plan: Plan) -> tuple[str, ...]:
    """Why a service stands farther from its users than it should."""
    winner, allowance = plan.winner, network_s(work)
    if winner is None or not winner.users:
        return ()
    if winner.network_s is None:
        return (f"How far this is from {winner.users} is not known; nothing that is known to be near fits.",)
    if winner.network_s <= min(NEAR_S, allowance):
        return ()
    trip = f"the network to {winner.users} takes {round_trip(winner.network_s)} from here"
    if winner.network_s <= allowance:
        return (f"Nothing nearer fits: {trip}.",) if work.limits.round_trip else ()
    return (f"Nothing fits near enough: {trip}, and the goals leave {round_trip(allowance)}, so that some users wait longer.",)


def placed(known: Known, work: Serve, rows: Rows, curve: LoadCurve, path: str) -> Placement:
    """The regions to stand in, for the peak of the curve."""
    origins, unknown = origins_of(known, work.traffic)
    limit = network_s(work)
    stated = work.goals.ttft is not None or work.goals.latency is not None
    basis = f"{NETWORK_SHARE:.0%} of the tightest of ttft and latency" if stated else "no goal of latency: a usual limit"
    if limit == NEAR_S:
        basis = "users and machines in one part of the world"
    elif limit == NETWORK_MOST_S:
        basis = "the most that is not felt, whatever the goals"
    elif work.limits.round_trip not in (None, _share_s(work)):
        basis = "as near as something fits, or limits.round_trip"
    sites, lost = _sites(known, work, rows, curve, path)
    placement = place(origins, sites, curve.peak, limit, basis)
    assumed = [
        "round trip = 5 ms + 2 x 1.4 x distance / 200 km per ms; requests go to the nearest region that is up",
        f"{FAR_SHARE:.0%} of the traffic may be farther; after a loss the round trip may be {RELAXED:g} times as long",
        "machines for the peak while the schedule is on, in every region enough for the loss of another",
    ]
    if unknown:
        assumed.append(f"left out, because its place is not known: traffic from {', '.join(unknown)}")
    if lost:
        assumed.append(f"{lost} regions are left out, because their coordinates are not known")
    return replace(placement, assumed=tuple(assumed))


def origins_of(known: Known, traffic: Mapping[str, float]) -> tuple[list[Origin], list[str]]:
    origins, unknown = [], []
    for name, share in traffic.items():
        points = standing_for(known.catalog.data, name)
        people = sum(one.people_millions or 0.0 for one in points)
        if not points or people <= 0:
            unknown.append(name)
            continue
        origins += [
            Origin(
                f"{name} ({point.place})",
                share * (point.people_millions or 0.0) / people,
                point.latitude or 0.0,
                point.longitude or 0.0,
            )
            for point in points
        ]
    return origins, unknown


def _sites(known: Known, work: Serve, rows: Rows, curve: LoadCurve, path: str) -> tuple[list[Site], int]:
    """Regions that have coordinates, or stand in a country that one point stands for, with their cheapest machines."""
    catalog, priced = rows.fleet.catalog, rows.priced
    kinds = Kinds(known=known, work=work, rows=rows, curve=curve, path=path)
    best: dict[int, list[int]] = {}
    for row in first_of_each(rows).tolist():
        best.setdefault(int(priced.region[row]), []).append(row)
    sites, lost = [], 0
    for number, cheapest in best.items():
        region = catalog.regions[number]
        point = (region.latitude, region.longitude)
        if point[0] is None or point[1] is None:
            points = standing_for(catalog.data, region.country) if region.country else ()
            point = (points[0].latitude, points[0].longitude) if len(points) == 1 else (None, None)
        if point[0] is None or point[1] is None:
            lost += 1
            continue
        units = tuple(
            Unit(
                catalog.machines[priced.machine[row]].name,
                kinds.close(row).per_machine,
                float(priced.usd[row]) / float(priced.machines[row]),
            )
            for row in cheapest[:UNITS]
        )
        sites.append(
            Site(
                provider=region.provider,
                region=region.name,
                country=region.country,
                latitude=point[0],
                longitude=point[1],
                units=units,
            )
        )
    return sites, lost
