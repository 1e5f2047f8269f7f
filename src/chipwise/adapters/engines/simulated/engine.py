"""A world that is played on a virtual clock: what would happen, and every fault that a test wants to see.

The clock goes on when somebody looks; orders are carried out at the time of the latest look. What happens between two looks
happens in its order, at its time. An attempt that was started or ended once is remembered for ever, so that an order that comes
late, from whomever, does nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from math import inf
from random import Random

from chipwise.errors import NotAllowed, TryLater
from chipwise.runner.engine import Clear, End, Leave, Order, Room, Seen, Sight, Start, State
from chipwise.runner.job import Job, MachinePlace

from . import NAME
from .stay import KILLED, Stay
from .world import Fails, Loss, Pool, World


def connect(config: World) -> Simulated:
    return Simulated(config)


@dataclass(slots=True)
class Simulated:
    world: World
    name: str = NAME
    now: float = field(init=False)
    history: list[Stay] = field(default_factory=list)  # all that ever was started, for whoever wants to know the truth
    _stays: dict[tuple[str, int], Stay] = field(default_factory=dict)  # not cleared
    _waiting: dict[MachinePlace, list[Stay]] = field(default_factory=lambda: defaultdict(list))
    _used_machines: dict[MachinePlace, int] = field(default_factory=lambda: defaultdict(int))  # machines, by place
    _saved: dict[str, int] = field(default_factory=dict)  # steps, by job: what outlives every machine
    _latest: dict[str, int] = field(default_factory=dict)  # attempt that was ordered or ended, by job
    _next: list[tuple[float, int, Stay | Loss | Pool, int]] = field(default_factory=list)  # with the stay's stamp
    _count: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.now = self.world.begins
        for loss in self.world.losses:
            self._push(loss.moment, loss)
        for pool in self.world.pools:
            for _, until in pool.closed:
                self._push(until, pool)

    @property
    def place(self) -> str:
        return self.world.place

    def close(self) -> None:
        """Nothing is open: the world is a value of this process."""

    # Looking

    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        self.advance(now)
        self._outage(Fails.LOOK)
        keys = [(job.id, len(job.attempts)) for job in jobs]
        sights = {key: self._stays[key].sight(self.now) if key in self._stays else Sight(State.ABSENT) for key in keys}
        for key in [(job.id, len(job.attempts)) for job in jobs if not job.attempts[-1].cpus and not job.attempts[-1].devices]:
            if key in self._stays:
                attempt = self._stays[key].attempt
                sights[key] = replace(sights[key], holds=Room(attempt.devices, attempt.cpus))
        known = set(keys)
        strays = tuple(stay.handle for key, stay in self._stays.items() if key not in known)
        return Seen(
            moment=self.now,
            attempts=sights,
            room=self._room(),
            strays=strays,
            offers=self._offers() if self.world.tells_offers else None,
        )

    def _room(self) -> Room:
        gpus, cpus = self.world.gpus, self.world.cpus
        return Room(tuple(range(gpus)) if gpus is not None else None, tuple(range(cpus)) if cpus is not None else None)

    def _offers(self) -> list[MachinePlace]:
        return [pool.place for pool in self.world.pools if pool.open_at(self.now) and self._has(pool, 1)]

    # Doing

    def do(self, order: Order) -> None:
        self._outage(Fails.DO)
        match order:
            case Start(job):
                self._start(job)
            case Leave(job, _, _):
                if (stay := self._stays.get((job.id, len(job.attempts)))) is not None and stay.lives:
                    stay.leave(self.now)
                    self._settle(stay)
            case End(job):
                self._latest[job.id] = max(self._latest.get(job.id, 0), len(job.attempts))
                if (stay := self._stays.get((job.id, len(job.attempts)))) is not None:
                    self._end(stay)
            case Clear(handle):
                for stay in [one for one in self._stays.values() if one.handle == handle]:
                    self._end(stay)
                    del self._stays[stay.key]
        self._outage(Fails.ANSWER)

    def _start(self, job: Job) -> None:
        """An attempt with an older number than one that was here has no say any more."""
        if len(job.attempts) <= self._latest.get(job.id, 0):
            return
        if (reason := self.world.refuses.get(job.spec.name)) is not None:
            raise NotAllowed(reason)
        attempt = job.attempts[-1]
        self._latest[job.id] = attempt.number
        first, program = self._saved.get(job.id, 0), self.world.program(job.spec.name).at_share(job.share_of(attempt))
        stay = Stay(job.id, job.spec.name, attempt, self.world.pool(attempt.where), program, self.now, first)
        self.history.append(stay)
        self._stays[stay.key] = stay
        if not self._give(stay):
            self._waiting[stay.pool.place].append(stay)

    def _end(self, stay: Stay) -> None:
        if stay.lives:
            stay.end(self.now, State.EXITED, KILLED if stay.state is State.RUNNING else None, "ended")
            self._settle(stay)

    # The clock

    @property
    def next_at(self) -> float | None:
        """When something happens next, if nobody orders anything."""
        while self._next and self._stale(self._next[0]):
            heappop(self._next)
        return self._next[0][0] if self._next else None

    def advance(self, target: float) -> None:
        while (due := self.next_at) is not None and due <= target:
            _, _, item, _ = heappop(self._next)
            self.now = max(self.now, due)
            match item:
                case Stay():
                    item.pass_(self.now)
                    self._settle(item)
                case Loss():
                    self._lose(item)
                case Pool():
                    self._hand_out(item)
        self.now = max(self.now, target)

    @staticmethod
    def _stale(entry: tuple[float, int, Stay | Loss | Pool, int]) -> bool:
        _, _, what, stamp = entry
        return isinstance(what, Stay) and (not what.lives or what.stamp != stamp)

    def _push(self, at: float, what: Stay | Loss | Pool) -> None:
        if at < inf:
            heappush(self._next, (at, next(self._count), what, what.stamp if isinstance(what, Stay) else 0))

    def _settle(self, stay: Stay) -> None:
        """After a change: what it saved stays, what it held is free, and what comes next is noted."""
        if stay.lives:
            self._push(stay.next_at, stay)
            return
        self._saved[stay.job] = max(self._saved.get(stay.job, 0), stay.saved)
        if stay.arrived is None:
            self._waiting[stay.pool.place].remove(stay)
            return
        self._used_machines[stay.pool.place] -= stay.attempt.machines
        self._hand_out(stay.pool)

    # Machines

    def _has(self, pool: Pool, machines: int) -> bool:
        return pool.machines is None or self._used_machines[pool.place] + machines <= pool.machines

    def _give(self, stay: Stay) -> bool:
        """Machines, if there are enough: all that it needs or none."""
        pool, machines = stay.pool, stay.attempt.machines
        if not pool.open_at(self.now) or not self._has(pool, machines):
            return False
        self._used_machines[pool.place] += machines
        stay.arrived = self.now
        stay.begins = self.now + stay.program.starts_s.get(stay.attempt.number, pool.starts_s)
        if (rate := pool.interruptions_per_hour * machines / 3600.0) > 0:
            drawn = Random(f"{self.world.seed}/{stay.handle}").expovariate(rate)
            self._push(self.now + drawn, Loss(self.now + drawn, pool.notice_s, job=stay.handle))
        self._settle(stay)
        return True

    def _hand_out(self, pool: Pool) -> None:
        """To those that wait, in the order in which they came; the first that does not fit holds the others up."""
        waiting = self._waiting[pool.place]
        while waiting and self._give(waiting[0]):
            waiting.pop(0)

    def _lose(self, loss: Loss) -> None:
        for stay in list(self._stays.values()):
            if not stay.lives or stay.arrived is None or (loss.zone and stay.pool.place.zone != loss.zone):
                continue
            if loss.job and loss.job not in (stay.job, stay.name, stay.handle):
                continue
            if self.now + loss.notice_s < stay.lost:
                stay.lost, stay.notice, stay.announced = self.now + loss.notice_s, self.now, loss.announced
                stay.stamp += 1
                if not loss.announced:
                    stay.reason = "its supervisor is gone; its remaining processes are being killed"
                self._push(stay.next_at, stay)

    def _outage(self, operation: Fails) -> None:
        for outage in self.world.outages:
            if outage.affects is operation and outage.since <= self.now < outage.until:
                raise TryLater(f"The simulated engine does not answer until {outage.until:g} s.", remedy="It is tried again.")
