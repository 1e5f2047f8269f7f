"""Spot machines alone, where they are cheapest: what a single node pool for spot machines does, without a fallback."""

from __future__ import annotations

from math import ceil

from chipwise.errors import BadInput
from chipwise.scale.fleet import ROUNDING, Buy, FleetSetup, FleetState, spot_pools

KIND = "fleet"
SUMMARY = "Replicas on spot machines alone, in the cheapest zone that has not just refused."
NEEDS = "prices and speeds of machine types, losses by zone"
RENDERS = "Karpenter: a NodePool with capacity-type spot; Auto Scaling Group: OnDemandPercentageAboveBaseCapacity 0."


def begin(setup: FleetSetup) -> Buy:
    zones = spot_pools(setup)
    if not zones:
        raise BadInput("spot-fleet needs spot machines.", remedy="Add --spot, and a spot price to --machine.")
    order = sorted(zones, key=lambda zone: setup.pools[zones[zone]].usd_per_work)

    def buy(state: FleetState) -> list[int]:
        counts = [0] * len(setup.pools)
        if order[0] in state.refused and len(order) > 1:
            order.append(order.pop(0))
        place = zones[order[0]]
        counts[place] = ceil(state.wanted / setup.capacity(place) - ROUNDING)
        return counts

    return buy
