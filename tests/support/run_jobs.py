"""Jobs in every standing, for tests of running, and the truth of a simulated world held against what must never be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf

from chipwise.adapters.engines.simulated.engine import Simulated
from chipwise.adapters.engines.simulated.stay import Stay
from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.catalog.offer import Purchase
from chipwise.runner.engine import Order, Seen
from chipwise.runner.events import Begun, Event, Leaving, Placed, Submitted, after, first
from chipwise.runner.job import Job, LeaveReason, MachinePlace, Needs, Spec
from chipwise.runner.record import Change, Lease, Stale

SPOT_A = MachinePlace(Purchase.SPOT, "aws", "eu-west-1", "eu-west-1a", "g6.xlarge", 0.3)
SPOT_B = MachinePlace(Purchase.SPOT, "aws", "eu-west-1", "eu-west-1b", "g6.xlarge", 0.4)
STAYS = MachinePlace(Purchase.ON_DEMAND, "aws", "eu-west-1", "eu-west-1a", "g6.xlarge", 1.0)


def spec(name: str = "train", **asked: object) -> Spec:
    return replace(Spec(("python", f"{name}.py"), name), **asked)  # type: ignore[arg-type]


def queued(id: str = "j1", wanted: Spec | None = None, at: float = 0.0) -> Job:
    return first(id, Submitted(wanted or spec()), at)


def added(job: Job, *events: Event, at: float = 0.0) -> Job:
    for event in events:
        job = after(job, event, at)
    return job


def starting(
    job: Job, where: MachinePlace | None = None, gpus: Sequence[int] = (), cpus: Sequence[int] = (), at: float = 0.0
) -> Job:
    return added(job, Placed(len(job.attempts) + 1, where or MachinePlace(), tuple(gpus), tuple(cpus)), at=at)


def running(
    job: Job, where: MachinePlace | None = None, gpus: Sequence[int] = (), cpus: Sequence[int] = (), at: float = 0.0
) -> Job:
    placed = starting(job, where, gpus, cpus, at)
    return added(placed, Begun(len(placed.attempts), "h"), at=at)


def leaving(job: Job, why: LeaveReason, by: float) -> Job:
    return added(job, Leaving(len(job.attempts), by, why))


def asking(id: str, gpus: int = 0, cpus: int = 1, at: float = 0.0, **asked: object) -> Job:
    return queued(id, spec(id, needs=Needs(gpus, cpus), **asked), at)


# What must never be


def _span(stay: Stay) -> tuple[float, float]:
    return stay.requested, stay.ended if stay.ended is not None else inf


def _meet(one: Stay, other: Stay) -> bool:
    (since, until), (later, end) = _span(one), _span(other)
    return since < end and later < until


def twice_at_once(stays: Iterable[Stay]) -> list[tuple[str, str]]:
    """Attempts of one job that were there at the same time."""
    return [(one.handle, other.handle) for one, other in combinations(stays, 2) if one.job == other.job and _meet(one, other)]


def shared_devices(stays: Iterable[Stay]) -> list[tuple[str, str]]:
    """Attempts that held one device at the same time."""
    return [
        (one.handle, other.handle)
        for one, other in combinations(stays, 2)
        if _meet(one, other)
        and (set(one.attempt.devices) & set(other.attempt.devices) or set(one.attempt.cpus) & set(other.attempt.cpus))
    ]


# Controllers that die, and orders that come late


class Died(Exception):
    """The controller is gone, wherever it was."""


@dataclass(slots=True)
class Fuse:
    """Counts the moments at which somebody can die, and lets it happen at the given ones."""

    deaths: frozenset[int] = frozenset()
    moments: int = 0

    def burn(self) -> None:
        self.moments += 1
        if self.moments in self.deaths:
            raise Died


@dataclass(slots=True)
class MortalRecord(MemoryRecord):
    fuse: Fuse = field(default_factory=Fuse)

    def write(self, changes: Sequence[Change], at: float, lease: Lease | None = None) -> list[Job | Stale]:
        self.fuse.burn()
        answers = MemoryRecord.write(self, changes, at, lease)
        self.fuse.burn()
        return answers


@dataclass(slots=True)
class MortalEngine(Simulated):
    """`late`: orders that a controller gave and that come when it wakes up again, long after others took over."""

    fuse: Fuse = field(default_factory=Fuse)
    delayed: bool = False
    late: list[Order] = field(default_factory=list)

    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        seen = Simulated.look(self, jobs, now)
        self.fuse.burn()
        return seen

    def do(self, order: Order) -> None:
        self.fuse.burn()
        if self.delayed:
            self.late.append(order)
            return
        Simulated.do(self, order)
        self.fuse.burn()

    def deliver(self) -> None:
        orders, self.late = self.late, []
        for order in orders:
            Simulated.do(self, order)
