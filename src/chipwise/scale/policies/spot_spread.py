"""Spot machines spread over zones, and on-demand machines only where no zone gives any.

A spot machine that starts is as near as an on-demand one that would be ordered now, so that it counts as capacity (SpotHedge
counts it as missing). On-demand machines are ordered for what is still missing when other zones were tried, and stay until
spot machines answer in their place.
"""

from __future__ import annotations

from chipwise.errors import BadInput
from chipwise.scale.fleet import ROUNDING, Buy, FleetSetup, FleetState, LeftZones, cheapest_cover, spot_pools, spread

KIND = "fleet"
SUMMARY = "Spot machines over several zones, on-demand machines where none has any; spot-spread:10 spares 10%."
NEEDS = "prices and speeds of machine types, losses by zone"
RENDERS = (
    "Karpenter: a NodePool with capacity-type spot and on-demand, with a topology spread over zones; Auto Scaling Group: "
    "OnDemandPercentageAboveBaseCapacity 0 with capacity rebalancing, and a controller for the fallback."
)
SETTING = 0.0
_TRIES = 2  # ticks in which other zones are tried first


def begin(setup: FleetSetup, target: float = SETTING) -> Buy:
    zones = spot_pools(setup)
    if not zones:
        raise BadInput("spot-spread needs spot machines.", remedy="Add --spot, and a spot price to --machine.")
    left, places = LeftZones(zones), [place for place, pool in enumerate(setup.pools) if not pool.is_spot]
    before, short = 0.0, 0  # what was wanted at the last tick, and for how many ticks less than that is there

    def buy(state: FleetState) -> list[int]:
        nonlocal before, short
        wanted = state.wanted * (1.0 + target / 100.0)
        ready = sum(state.ready[place] * setup.capacity(place) for place in zones.values())
        coming = sum(state.starting[place] * setup.capacity(place) for place in zones.values())
        missing = max(min(before, state.wanted) - ready - coming, 0.0)
        before, short = state.wanted, short + 1 if missing > ROUNDING else 0
        bought = sum((state.ready[place] + state.starting[place]) * setup.capacity(place) for place in places)
        on_demand = max(min(bought, state.wanted - ready), missing if short >= _TRIES else 0.0, 0.0)
        counts = cheapest_cover(setup, on_demand)
        return spread(setup, zones, left.after(state.refused), state, wanted, counts)

    return buy
