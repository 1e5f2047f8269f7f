"""A service on machines of several types, on-demand and spot, played on a load; what it costs is in dollars.

One rule says how much capacity there should be, another which machines that is. All replicas together serve as one fast server
(`pooled`), whose speed is the sum of theirs. At every tick spot machines of a zone that has none are lost, those that start
included, and orders there are refused; a machine is paid for from its order on. The series of zones repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.fleet import BeginFleet, Buy, FleetSetup, FleetState
from chipwise.scale.load import RequestLoad
from chipwise.scale.serving import BeginScaling, ScaledService, ServeSignals
from chipwise.scale.simulator.pooled import PooledQueue
from chipwise.scale.simulator.scaling import ROUNDING, ReplicaFleet, ScalingOutcome, bounded, first_replicas, replicas_of
from chipwise.scale.traces import Series

_FIRST_TRIES = 8  # of orders at the begin


@dataclass(frozen=True, slots=True)
class MixedOutcome:
    scaling: ScalingOutcome  # replicas in units of capacity
    usd: float
    lost: int  # spot replicas that were taken back while they answered


@dataclass(slots=True)
class _Capacity:
    """Of all pools together, as the queue counts it."""

    ready: float
    starting: float


class SpotZones:
    """Whether each zone has machines, at any time."""

    def __init__(self, series: Mapping[str, Series]) -> None:
        self.series = series

    def has(self, zone: str, now_s: float) -> bool:
        series = self.series.get(zone)
        return series is None or bool(series.available[int(now_s / 3600.0 / series.tick_h + ROUNDING) % len(series.available)])


def play_mixed(
    load: RequestLoad,
    service: ScaledService,
    begin: BeginScaling,
    setup: FleetSetup,
    begin_fleet: BeginFleet,
    zones: SpotZones,
    *,
    each_tick: Callable[[int], None] | None = None,
) -> MixedOutcome:
    """`service`: its replica is the unit of capacity."""
    decide, buy = begin(service), begin_fleet(setup)
    pools = len(setup.pools)
    first = first_replicas(load, service)
    fleets = [ReplicaFleet(service, 0) for _ in setup.pools]
    _begin(setup, fleets, buy, zones, first)
    queue = PooledQueue(load, service, _ready(setup, fleets))
    ticks = max(ceil(load.duration_s / service.tick_s - ROUNDING), 1)
    places = np.searchsorted(load.times_s, np.arange(ticks + 1) * service.tick_s, side="left")
    places[-1] = len(load.times_s)
    arrived = np.diff(np.concatenate([[0.0], np.cumsum(load.work)])[places]).tolist()
    paid_for, lost = np.empty(ticks), 0
    refused: frozenset[str] = frozenset()
    wanted = first
    for tick, place in enumerate(places[1:].tolist()):
        until_s, before = min((tick + 1) * service.tick_s, load.duration_s), _ready(setup, fleets)
        became = [
            (ready_s, count * setup.capacity(pool))
            for pool, fleet in enumerate(fleets)
            for ready_s, count in fleet.pass_to(until_s)
        ]
        seen = queue.pass_to(until_s, place, sorted(became))
        gone, ended = _lose(setup, fleets, zones, until_s)
        lost, refused = lost + ended, refused | gone
        signals = _signals(
            load,
            service,
            until_s,
            (_ready(setup, fleets), wanted, before),
            arrived[tick],
            seen.waiting,
            seen.utilisation,
        )
        wanted = bounded(service, replicas_of(decide(signals)))
        state = FleetState(
            now_s=until_s,
            wanted=wanted,
            ready=[fleet.ready for fleet in fleets],
            starting=[fleet.starting for fleet in fleets],
            refused=refused,
        )
        refused = _order(setup, fleets, _counts(buy(state), pools), zones, until_s)
        queue.end(queue.ready - _ready(setup, fleets))
        paid_for[tick] = _ready(setup, fleets) + _starting(setup, fleets)
        if each_tick is not None:
            each_tick(tick)
    begins_s, punctual = queue.begins_s(_Capacity(_ready(setup, fleets), _starting(setup, fleets)))
    hours = [fleet.paid_s / 3600.0 for fleet in fleets]
    outcome = ScalingOutcome(
        requests=load.requests,
        punctual=punctual,
        replica_hours=sum(hours),
        replicas=paid_for,
        waits_s=begins_s - load.times_s,
    )
    return MixedOutcome(
        outcome, sum(time_h * pool.usd for time_h, pool in zip(hours, setup.pools, strict=True) if time_h), lost
    )


def least_usd(clairvoyant: ScalingOutcome, service: ScaledService, setup: FleetSetup, zones: SpotZones) -> float:
    """The capacity of a plan that knows the whole load, at each tick on what was cheapest just then, in fractions of machines
    and with no time for changes."""
    usd = 0.0
    for tick, replicas in enumerate(clairvoyant.replicas.tolist()):
        now_s = (tick + 1) * service.tick_s
        price = min(pool.usd_per_work for pool in setup.pools if not pool.is_spot or zones.has(pool.zone, now_s))
        usd += replicas * price
    return usd * setup.unit_per_s * service.tick_s / 3600.0


def _begin(setup: FleetSetup, fleets: Sequence[ReplicaFleet], buy: Buy, zones: SpotZones, wanted: float) -> None:
    """What is there at the begin is ready; where zones refuse, others are tried first."""
    refused: frozenset[str] = frozenset()
    for _ in range(_FIRST_TRIES):
        ready = [fleet.starting for fleet in fleets]
        state = FleetState(now_s=0.0, wanted=wanted, ready=ready, starting=[0] * len(fleets), refused=refused)
        refused = _order(setup, fleets, _counts(buy(state), len(fleets)), zones, 0.0)
    for fleet in fleets:
        fleet.ready = fleet.starting
        fleet.starts.clear()


def _ready(setup: FleetSetup, fleets: Sequence[ReplicaFleet]) -> float:
    return sum(fleet.ready * setup.capacity(pool) for pool, fleet in enumerate(fleets))


def _starting(setup: FleetSetup, fleets: Sequence[ReplicaFleet]) -> float:
    return sum(fleet.starting * setup.capacity(pool) for pool, fleet in enumerate(fleets))


def _lose(setup: FleetSetup, fleets: Sequence[ReplicaFleet], zones: SpotZones, now_s: float) -> tuple[frozenset[str], int]:
    """Zones that took machines back, and how many of them had answered."""
    gone, ended = set(), 0
    for pool, fleet in zip(setup.pools, fleets, strict=True):
        if pool.is_spot and (fleet.ready or fleet.starts) and not zones.has(pool.zone, now_s):
            ended += fleet.want(0)
            gone.add(pool.zone)
    return frozenset(gone), ended


def _order(
    setup: FleetSetup, fleets: Sequence[ReplicaFleet], counts: Sequence[int], zones: SpotZones, now_s: float
) -> frozenset[str]:
    """Zones that refused."""
    refused = set()
    for pool, fleet, count in zip(setup.pools, fleets, counts, strict=True):
        if pool.is_spot and count > fleet.ready + fleet.starting and not zones.has(pool.zone, now_s):
            refused.add(pool.zone)
            continue
        fleet.want(count)
    return frozenset(refused)


def _signals(
    load: RequestLoad,
    service: ScaledService,
    now_s: float,
    capacity: tuple[float, float, float],
    arrived: float,
    waiting: float,
    utilisation: float,
) -> ServeSignals:
    """`capacity`: ready, wanted at the last tick, and ready when the tick began. A scaling rule sees the fleet as it asked for
    it: what is to spare, or bridges a gap, neither counts as replicas nor dilutes the utilisation."""
    ready, wanted, before = capacity
    speed = ready * service.replica_per_s
    return ServeSignals(
        now_s=now_s,
        clock_s=load.clock_s + now_s,
        ready=round(min(ready, wanted)),
        starting=round(max(wanted - ready, 0.0)),
        arrived=arrived,
        waiting=waiting,
        in_flight=waiting + utilisation * service.concurrency * max(ready, before),
        utilisation=min(utilisation * max(before / wanted, 1.0), 1.0),
        wait_s=waiting / speed if speed > 0.0 else (service.cold_start_s if waiting else 0.0),
    )


def _counts(counts: Sequence[int], pools: int) -> list[int]:
    if len(counts) == pools and all(isinstance(count, int) and count >= 0 for count in counts):
        return list(counts)
    raise BadInput(
        f"The policy answered {str(counts)[:60]!r} for {pools} pools.", remedy="Return a number of replicas for each."
    )
