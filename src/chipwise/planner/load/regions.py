"""Regions for the traffic of a plan: where it comes from, which regions may be used, and how long the way may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.places import standing_for
from chipwise.planner.load.curve import LoadCurve
from chipwise.planner.load.machines import Kinds, first_of_each
from chipwise.planner.load.placing import FAR_SHARE, RELAXED, Origin, Site, Unit, place
from chipwise.planner.values.placement import Placement
from chipwise.planner.values.plan import Rows
from chipwise.workload.kinds import Common, Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

UNITS = 3  # kinds of machines that a region is placed with
NETWORK_SHARE = 0.2  # of the tightest of ttft and latency that the network may take, where traffic is given
NETWORK_MOST_S = 0.15  # a longer round trip is felt, whatever the goals are


def network_s(work: Common) -> float:
    """Seconds of a round trip that goals leave to the network; 0 where nothing is said of traffic."""
    if not work.traffic:
        return 0.0
    stated = [goal for goal in (work.goals.ttft, work.goals.latency) if goal is not None]
    tightest = min((limit for goal in stated for _, limit in goal.limits), default=np.inf)
    return float(min(NETWORK_SHARE * tightest, NETWORK_MOST_S))


def placed(known: Known, work: Serve, rows: Rows, curve: LoadCurve) -> Placement:
    """The regions to stand in, for the peak of the curve."""
    origins, unknown = _origins(known, work.traffic)
    limit = network_s(work)
    stated = work.goals.ttft is not None or work.goals.latency is not None
    basis = f"{NETWORK_SHARE:.0%} of the tightest of ttft and latency" if stated else "no goal of latency: a usual limit"
    if limit >= NETWORK_MOST_S:
        basis = "the most that is not felt, whatever the goals"
    sites, lost = _sites(known, work, rows, curve)
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


def _origins(known: Known, traffic: Mapping[str, float]) -> tuple[list[Origin], list[str]]:
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


def _sites(known: Known, work: Serve, rows: Rows, curve: LoadCurve) -> tuple[list[Site], int]:
    """Regions that have coordinates, or stand in a country that one point stands for, with their cheapest machines."""
    catalog, priced = rows.fleet.catalog, rows.priced
    kinds = Kinds(known, work, rows, curve)
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
