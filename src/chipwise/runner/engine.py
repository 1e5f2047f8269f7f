"""What carries jobs out: the contract of every engine, and what one says it sees.

An engine is asked to look, and to do. Doing is idempotent: each order names job and attempt, and an order for an attempt that
was started, or is over, does nothing. An engine never decides; what it cannot do it raises as one of our errors. What only some
engines can do is in `abilities.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from chipwise.observe.health.decide import Cordon
from chipwise.runner.job import Job, Lack, MachinePlace


class State(StrEnum):
    ABSENT = "absent"  # the engine has nothing of it
    PENDING = "pending"  # accepted, and waiting for machines, images or admission
    RUNNING = "running"
    EXITED = "exited"  # by itself; nothing of it runs any more
    LOST = "lost"  # its machines or its supervisor are gone; nothing of it runs any more


@dataclass(frozen=True, slots=True)
class Room:
    """Devices of the place, by id. None: the engine places by itself, and has what it needs or waits."""

    gpus: tuple[int, ...] | None = None
    cpus: tuple[int, ...] | None = None

    def without(self, gpus: Collection[int], cpus: Collection[int]) -> Room:
        return Room(
            None if self.gpus is None else tuple(one for one in self.gpus if one not in gpus),
            None if self.cpus is None else tuple(one for one in self.cpus if one not in cpus),
        )


@dataclass(frozen=True, slots=True)
class Sight:
    """What an engine sees of one attempt."""

    state: State
    code: int | None = None
    reason: str = ""
    since: float | None = None  # begun
    until: float | None = None  # ended
    step: int | None = None
    handle: str = ""
    leave_by: float | None = None  # its machine is being removed: a notice came
    place: MachinePlace | None = None  # the machine that it really got
    saved: int | None = None  # the step from which another attempt would go on, where it is known
    resumed: int | None = None  # the step of the checkpoint that its program loaded, where it tells; 0: it found none
    held_since: float | None = None  # since when its machines are there and paid for, also while it is PENDING
    rate: float | None = None  # steps per second since it was warm, where it tells
    machines_arrived: int | None = (
        None  # of its machines, while it is PENDING for the others; None: none came, or nobody counts
    )
    ended: bool = False  # RUNNING, but only in that what it made is still looked for: there is nothing to leave or to move
    holds: Room = Room()  # devices of the place that it was given, where the job that is asked about does not say
    lack: Lack | None = None  # what the reason is about, where something is decided by it
    lasted_s: float | None = None  # since it began, by a clock that nobody sets; None: times of day are all that is known
    watched: Mapping[str, object] = field(default_factory=dict)  # of one that ended: what its devices did, drew and cost
    overstays: bool | None = None  # whether its time to leave is over, by such a clock; None: nobody asked it to, or as above


@dataclass(frozen=True, slots=True)
class Seen:
    moment: float
    attempts: Mapping[tuple[str, int], Sight] = field(default_factory=dict)
    room: Room = Room()
    strays: tuple[str, ...] = ()  # handles of what belongs to no attempt that is under way
    offers: Sequence[MachinePlace] | None = None  # what can be had now; None: the engine does not know
    cordons: tuple[Cordon, ...] = ()  # machines that are sick and may still be given something new


# What a controller may ask of an engine.


@dataclass(frozen=True, slots=True)
class Start:
    job: Job  # as recorded with the attempt in it

    @property
    def key(self) -> tuple[str, int]:
        return (self.job.id, len(self.job.attempts))


@dataclass(frozen=True, slots=True)
class Leave:
    """Save and go: what a notice of interruption, an owner or a scheduler asks for."""

    job: Job
    deadline: float
    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """Now, whatever it is doing. Afterwards nothing of the attempt runs."""

    job: Job


@dataclass(frozen=True, slots=True)
class Clear:
    """What is left of an attempt that is over, and costs or confuses: objects of a cluster, machines, folders."""

    handle: str
    goes_on: bool = False  # its job starts again: what the next attempt needs stays


Order = Start | Leave | End | Clear | Cordon  # the last is of a machine, of whatever jobs it has


class Engine(Protocol):
    name: str

    @property
    def place(self) -> str:
        """What one controller leads at a time: a machine, a cluster, an account in a region."""
        ...

    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        """Of these jobs, which are placed, and of what is there beside them. Raises TryLater where it cannot see."""
        ...

    def do(self, order: Order) -> None: ...

    def close(self) -> None:
        """Lets go of connections and threads; jobs do not notice. It may be called twice, and nothing is asked afterwards."""
        ...
