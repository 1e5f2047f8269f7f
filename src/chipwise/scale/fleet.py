"""Which machines a service runs on: machine types, spot or on-demand, and zones. How much capacity there should be is another
rule's (`scale/serving.py`).

Capacity counts in replicas of the first machine type. A rule is asked at every tick how many replicas each pool should have;
those that start are included. Spot machines of a zone can be had in any number, or not at all, and all are lost at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite

from chipwise.errors import BadInput

ON_DEMAND = ""  # the zone of what is always there
ROUNDING = 1e-9
_FEWEST_ZONES = 2  # that new machines are spread over


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaMachine:
    """A machine type as a replica of the service."""

    name: str
    per_s: float  # requests of mean work that it completes
    on_demand_usd: float  # an hour
    spot_usd: float | None = None

    def __post_init__(self) -> None:
        for title, value in {"speed": self.per_s, "price": self.on_demand_usd, "spot price": self.spot_usd}.items():
            if value is not None and not (isfinite(value) and value > 0.0):
                raise BadInput(f"The {title} of {self.name} must be above zero, not {value:g}.")


def machine_of(name: str, figures: Sequence[float]) -> ReplicaMachine:
    """`figures`: requests per second, USD an hour, and that of spot where there is one."""
    if len(figures) not in (2, 3):
        raise BadInput(f"{name} needs two or three numbers.", remedy="Give requests per second, USD an hour and that of spot.")
    return ReplicaMachine(
        name=name, per_s=figures[0], on_demand_usd=figures[1], spot_usd=figures[2] if len(figures) > 2 else None
    )


@dataclass(frozen=True, slots=True)
class ReplicaPool:
    machine: ReplicaMachine
    zone: str  # ON_DEMAND, or that of spot machines

    @property
    def is_spot(self) -> bool:
        return self.zone != ON_DEMAND

    @property
    def usd(self) -> float:
        """An hour of a replica."""
        return (self.machine.spot_usd or inf) if self.is_spot else self.machine.on_demand_usd

    @property
    def usd_per_work(self) -> float:
        return self.usd / self.machine.per_s


@dataclass(frozen=True, slots=True)
class FleetSetup:
    pools: tuple[ReplicaPool, ...]
    unit_per_s: float  # of a replica in which capacity counts

    def capacity(self, place: int) -> float:
        return self.pools[place].machine.per_s / self.unit_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetState:
    """What a rule may know: an entry per pool, but for the capacity."""

    now_s: float
    wanted: float  # capacity that there should be
    ready: Sequence[int]
    starting: Sequence[int]
    refused: frozenset[str]  # zones that took machines back, or had none, since the last tick


Buy = Callable[[FleetState], Sequence[int]]  # the replicas that each pool should have
BeginFleet = Callable[[FleetSetup], Buy]


def setup_of(machines: Sequence[ReplicaMachine], zones: Sequence[str]) -> FleetSetup:
    pools = [ReplicaPool(machine, ON_DEMAND) for machine in machines]
    pools += [ReplicaPool(machine, zone) for machine in machines if machine.spot_usd is not None for zone in zones]
    return FleetSetup(tuple(pools), machines[0].per_s)


def cheapest_cover(setup: FleetSetup, capacity: float) -> list[int]:
    """On-demand replicas for so much capacity: the type that is cheapest for its speed, and for what is left over the machine
    that is cheapest alone."""
    counts = [0] * len(setup.pools)
    places = [place for place, pool in enumerate(setup.pools) if not pool.is_spot]
    base = min(places, key=lambda place: setup.pools[place].usd_per_work)
    counts[base] = int((capacity + ROUNDING) / setup.capacity(base))
    rest = capacity - counts[base] * setup.capacity(base)
    if rest > ROUNDING:
        last = min(places, key=lambda place: setup.pools[place].usd * ceil(rest / setup.capacity(place) - ROUNDING))
        counts[last] += ceil(rest / setup.capacity(last) - ROUNDING)
    return counts


def spot_pools(setup: FleetSetup) -> dict[str, int]:
    """Of each zone the pool of spot machines that are cheapest for their speed."""
    best: dict[str, int] = {}
    for place, pool in enumerate(setup.pools):
        if pool.is_spot and (pool.zone not in best or pool.usd_per_work < setup.pools[best[pool.zone]].usd_per_work):
            best[pool.zone] = place
    return best


class LeftZones:
    """Zones that refused lately: they are left for the others, until fewer than two others remain."""

    def __init__(self, zones: Mapping[str, int]) -> None:
        self.zones, self.left = zones, set[str]()

    def after(self, refused: frozenset[str]) -> list[str]:
        """Those where new machines are tried."""
        self.left |= refused
        if len(self.zones) - len(self.left) < min(_FEWEST_ZONES, len(self.zones)):
            self.left = set(refused) if len(refused) < len(self.zones) else set()
        return [zone for zone in self.zones if zone not in self.left] or list(self.zones)


def spread(
    setup: FleetSetup,
    zones: Mapping[str, int],
    active: Sequence[str],
    state: FleetState,
    wanted: float,
    replicas: list[int],
) -> list[int]:
    """Replicas that are there stay while they are needed; new ones go where fewest are, the cheapest zones first."""
    counts = {zone: state.ready[place] + state.starting[place] for zone, place in zones.items()}
    price = {zone: setup.pools[place].usd_per_work for zone, place in zones.items()}
    capacity = {zone: setup.capacity(place) for zone, place in zones.items()}
    total = sum(counts[zone] * capacity[zone] for zone in zones)
    while total < wanted - ROUNDING:
        zone = min(active, key=lambda zone: (counts[zone] * capacity[zone], price[zone]))
        counts[zone] += 1
        total += capacity[zone]
    while (largest := max(zones, key=lambda zone: (counts[zone], price[zone]))) and (
        counts[largest] and total - capacity[largest] >= wanted - ROUNDING
    ):
        counts[largest] -= 1
        total -= capacity[largest]
    for zone, place in zones.items():
        replicas[place] = counts[zone]
    return replicas
