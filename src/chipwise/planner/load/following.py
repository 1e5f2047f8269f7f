"""What every candidate costs where the load changes with time: its machines follow it, and are paid for while they are up.

Machines are counted for the peak; of these an autoscaler has up what each hour needs, each a start-up time before it is needed.
What is promised for a term and what is owned is paid for in all hours. Emissions follow the machines that are up. Live video
and streams have as many machines while their schedule is on, ordered before each of its beginnings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.offer import PURCHASES
from chipwise.money.layering import MOST_MACHINES
from chipwise.planner.load.curve import Answering, hours_of, machines_of, steady
from chipwise.planner.load.machines import answering, starting_of
from chipwise.planner.load.plan import curve_of, told_apart
from chipwise.planner.pricing import HOURLY, Priced
from chipwise.planner.tails import BOOT_S
from chipwise.planner.values.load import Followed
from chipwise.workload.common import Common
from chipwise.workload.kinds import Interactive, Serve, Stream, Transcode

if TYPE_CHECKING:
    from chipwise.planner.case import Described, Following
    from chipwise.planner.fleet import Fleet
    from chipwise.predictor.known import Known

_FOLLOWS = np.array([one in HOURLY for one in PURCHASES])


def following_of(known: Known, work: Common, path: str) -> Following | None:
    """Rows with the cost of the hours in which their machines are up, and by way what that is; None where machines never
    change, or their load over time is not planned."""
    if isinstance(work, Transcode | Stream):
        curve = steady(1.0, work.schedule)
    elif isinstance(work, Serve | Interactive) and not getattr(work, "devices", None) and told_apart(work):
        curve = curve_of(known, work, path)
    else:
        return None
    if curve.flat and not curve.opens:
        return None

    def following(priced: Priced, fleet: Fleet, describe: Callable[[int], Described]) -> tuple[Priced, dict[int, Followed]]:
        ways, first = np.unique(priced.way, return_index=True)
        by_way: dict[int, Followed] = {}
        shares = np.ones(int(ways.max(initial=-1)) + 1)
        seen: dict[tuple[bytes, float], Followed] = {}
        starting_s = starting_of(known, work, path) if isinstance(work, Serve) else lambda _: BOOT_S
        for way, row in zip(ways.tolist(), first.tolist(), strict=True):
            described, machines = describe(way), int(priced.machines[row])
            able = Answering(curve.peak / machines, 1, 1)
            if isinstance(work, Serve | Interactive):
                chips = fleet.shapes[fleet.shape_of[priced.machine[row]]].chips
                replicas = described.replicas or machines
                able = answering(work, curve, described.split, chips, machines, replicas, described.planned, described.at_less)
            needed = machines_of(curve, able)
            if needed.max() > MOST_MACHINES:
                continue
            key = (needed.tobytes(), starting_s(described.precision))
            if key not in seen:
                hours = hours_of(curve, able, key[1])
                seen[key] = Followed(int(needed.min()), hours.autoscaled, hours.scheduled)
            by_way[way] = seen[key]
            shares[way] = seen[key].share
        share = np.where(_FOLLOWS[priced.purchase], shares[priced.way], 1.0)
        scaled = replace(
            priced,
            compute_usd=priced.compute_usd * share,
            restart_usd=priced.restart_usd * share,
            kg=priced.kg * shares[priced.way],
            making_kg=priced.making_kg * shares[priced.way],
            held_h=priced.held_h * share,
        )
        return scaled, by_way

    return following
