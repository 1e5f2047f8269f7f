"""SpotHedge (SkyServe, EuroSys'25): spot machines spread over zones with a few to spare, and on-demand machines for what of
them is missing at the moment.

A zone that takes machines back or has none is left for the others; when fewer than two remain, all are tried again. On-demand
machines are ordered for capacity that no spot machine serves yet, those that start counted as missing, and end when it does.
"""

from __future__ import annotations

from chipwise.errors import BadInput
from chipwise.scale.fleet import Buy, FleetSetup, FleetState, LeftZones, cheapest_cover, spot_pools, spread

KIND = "fleet"
SUMMARY = (
    "Spot machines over several zones with 10% to spare, on-demand machines for what is missing; spot-hedge:20 spares 20%."
)
NEEDS = "prices and speeds of machine types, losses by zone"
RENDERS = (
    "Karpenter: a NodePool with capacity-type spot and on-demand and a topology spread over zones, which falls back to "
    "on-demand; the spare replicas and the return to spot need the scale subresource, set by a controller."
)
SETTING = 10.0


def begin(setup: FleetSetup, target: float = SETTING) -> Buy:
    zones = spot_pools(setup)
    if not zones:
        raise BadInput("spot-hedge needs spot machines.", remedy="Add --spot, and a spot price to --machine.")
    left = LeftZones(zones)

    def buy(state: FleetState) -> list[int]:
        wanted = state.wanted * (1.0 + target / 100.0)
        served = sum(state.ready[place] * setup.capacity(place) for place in zones.values())
        counts = cheapest_cover(setup, min(max(wanted - served, 0.0), state.wanted))
        return spread(setup, zones, left.after(state.refused), state, wanted, counts)

    return buy
