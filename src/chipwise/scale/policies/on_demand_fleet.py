"""On-demand machines alone, of the types that are cheapest for the capacity."""

from __future__ import annotations

from chipwise.scale.fleet import Buy, FleetSetup, FleetState, cheapest_cover

KIND = "fleet"
SUMMARY = "Replicas on on-demand machines alone, of the types that are cheapest for the load."
NEEDS = "prices and speeds of machine types"
RENDERS = "Karpenter: a NodePool with capacity-type on-demand; Auto Scaling Group: OnDemandPercentageAboveBaseCapacity 100."


def begin(setup: FleetSetup) -> Buy:
    def buy(state: FleetState) -> list[int]:
        return cheapest_cover(setup, state.wanted)

    return buy
