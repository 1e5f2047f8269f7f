"""A rule for several zones played on one scenario, tick by tick, with whole ticks billed, as the published comparison bills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from chipwise.errors import BadInput
from chipwise.scale.spot import ROUNDING_H
from chipwise.scale.zones import LOOK_H, BeginZones, Zone, ZonesJob, ZonesState

ON_DEMAND = "on-demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonesOutcome:
    usd: float
    looks_usd: float  # of it, for looks that found nothing
    moves_usd: float  # of it, for checkpoints that moved
    is_late: bool
    starts: int
    on_demand_h: float


def play_zones(zones: Sequence[Zone], job: ZonesJob, begin: BeginZones) -> ZonesOutcome:
    if not zones or any(len(zone.available) < job.ticks or len(zone.spot_usd) < job.ticks for zone in zones):
        raise BadInput("Every zone needs a trace as long as the deadline.")
    return _Course(zones, job, begin).run()


class _Course:
    def __init__(self, zones: Sequence[Zone], job: ZonesJob, begin: BeginZones) -> None:
        self.zones, self.job, self.decide = {zone.name: zone for zone in zones}, job, begin(job)
        self.regions = {zone.name: zone.region for zone in zones}
        self.usd = self.looks_usd = self.moves_usd = self.on_demand_h = self.pending_h = 0.0
        self.work_h, self.mode, self.region = job.work_h, "", ""
        self.starts = self.waited = 0
        self.looked: dict[str, int] = {}

    def run(self) -> ZonesOutcome:
        for tick in range(self.job.ticks):
            self._choose(tick)
            self._work(tick)
            if self.work_h <= ROUNDING_H:
                break
        return ZonesOutcome(
            usd=self.usd,
            looks_usd=self.looks_usd,
            moves_usd=self.moves_usd,
            is_late=self.work_h > ROUNDING_H,
            starts=self.starts,
            on_demand_h=self.on_demand_h,
        )

    def _choose(self, tick: int) -> None:
        if self.mode == ON_DEMAND:
            return  # nothing is left to gain so late
        if self.mode and not self.zones[self.mode].available[tick]:
            self.mode, self.waited = "", 0
            self.looked = {}
        if not self._may_start(tick):
            if not self.mode or not self._may_stay(tick):
                self._order()
            return
        state = ZonesState(
            job=self.job,
            tick=tick,
            work_left_h=self.work_h,
            zone=self.mode,
            region=self.region,
            spot_usd={name: float(zone.spot_usd[tick]) for name, zone in self.zones.items()},
            regions=self.regions,
            looked=self.looked,
            waited=self.waited,
        )
        for name in self.decide(state):
            if name == self.mode:
                return
            zone = self.zones[name]
            if zone.available[tick]:
                self._start(name, zone.region)
                return
            self.looked[name] = tick
            price_usd = float(zone.spot_usd[tick]) * LOOK_H
            self.usd, self.looks_usd = self.usd + price_usd, self.looks_usd + price_usd

    def _may_start(self, tick: int) -> bool:
        """Whether on-demand machines, ordered at the next tick, would still be in time if this one brought nothing."""
        return self._in_time(tick, self.work_h)

    def _may_stay(self, tick: int) -> bool:
        """The same where it works on in its zone."""
        in_tick_h = max(self.job.tick_h - self.pending_h, 0.0)
        return self.work_h - in_tick_h <= ROUNDING_H or self._in_time(tick, self.work_h - in_tick_h)

    def _in_time(self, tick: int, work_h: float) -> bool:
        needed = ceil((work_h + self.job.restart_h - ROUNDING_H) / self.job.tick_h)
        return needed <= self.job.ticks - tick - 1

    def _order(self) -> None:
        """On demand, where the rest costs least."""
        hours = self.work_h + self.job.restart_h
        name = min(
            self.zones,
            key=lambda name: self.zones[name].on_demand_usd * hours + self.job.move_usd(self.region, self.regions[name]),
        )
        self._start(ON_DEMAND, self.regions[name])
        self.on_demand_usd = self.zones[name].on_demand_usd

    def _start(self, mode: str, region: str) -> None:
        self.pending_h = self.job.restart_h if self.starts else 0.0
        move_usd = self.job.move_usd(self.region, region)
        self.usd, self.moves_usd = self.usd + move_usd, self.moves_usd + move_usd
        self.mode, self.region, self.waited = mode, region, 0
        self.starts += 1
        self.looked = {}

    def _work(self, tick: int) -> None:
        tick_h = self.job.tick_h
        if not self.mode:
            self.waited += 1
            return
        price = self.on_demand_usd if self.mode == ON_DEMAND else float(self.zones[self.mode].spot_usd[tick])
        self.usd += price * tick_h
        self.on_demand_h += tick_h if self.mode == ON_DEMAND else 0.0
        self.work_h -= max(tick_h - self.pending_h, 0.0)
        self.pending_h = max(self.pending_h - tick_h, 0.0)
