"""Spot with a deadline in several zones: what is decided, and what a rule may know.

Whether a zone has a spot machine is known only by looking: an attempt to start one there. Where none is, the look costs a
minute at the zone's spot price; where one is, the job starts on it. A start costs `restart_h` without progress, except the
first, and a checkpoint that lies in another region is paid for by its size. The law of `scale/spot.py` holds: on-demand
machines, ordered at the next tick at the latest, would still finish in time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chipwise.errors import BadInput
from chipwise.scale.spot import Flags, Hours

LOOK_H = 1.0 / 60.0  # that a look which finds nothing costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """Of a trace: one entry per tick."""

    name: str
    region: str
    available: Flags
    spot_usd: Hours  # an hour
    on_demand_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonesJob:
    work_h: float
    deadline_h: float
    restart_h: float
    tick_h: float
    checkpoint_gb: float = 0.0
    egress_usd: Mapping[tuple[str, str], float] | None = None  # a GB, by the regions that it leaves and reaches; None: nothing

    def __post_init__(self) -> None:
        if min(self.work_h, self.deadline_h, self.tick_h) <= 0.0 or min(self.restart_h, self.checkpoint_gb) < 0.0:
            raise BadInput("Work, deadline and tick must be above zero; restart and checkpoint must not be below.")
        if self.work_h + self.restart_h > self.deadline_h:
            raise BadInput(
                f"{self.work_h + self.restart_h:g} hours of work and start do not fit into {self.deadline_h:g} hours."
            )

    @property
    def ticks(self) -> int:
        return int(self.deadline_h / self.tick_h + 1e-6)

    def move_usd(self, origin: str, destination: str) -> float:
        """Of the checkpoint, between regions."""
        if not origin or origin == destination or self.egress_usd is None:
            return 0.0
        return self.checkpoint_gb * self.egress_usd.get((origin, destination), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonesState:
    job: ZonesJob
    tick: int
    work_left_h: float
    zone: str  # where it runs on spot; empty: nowhere
    region: str  # where its checkpoint lies; empty: it has none yet
    spot_usd: Mapping[str, float]  # of each zone, an hour, now
    regions: Mapping[str, str]
    looked: Mapping[str, int]  # the tick of the last look at each zone that found nothing, since the job last ran
    waited: int  # ticks since it last ran

    @property
    def time_left_h(self) -> float:
        return (self.job.ticks - self.tick) * self.job.tick_h

    def finish_usd(self, zone: str) -> float:
        """To the end of the work in a zone, if it were not lost there."""
        starts_h = 0.0 if zone == self.zone or not self.region else self.job.restart_h
        moves_usd = self.job.move_usd(self.region, self.regions[zone])
        return self.spot_usd[zone] * (self.work_left_h + starts_h) + moves_usd


ZonesDecide = Callable[[ZonesState], tuple[str, ...]]  # zones to look at, in this order; the one that it runs in: stay
BeginZones = Callable[[ZonesJob], ZonesDecide]
