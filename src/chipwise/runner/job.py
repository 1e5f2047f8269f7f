"""What a job is: what was asked for, and where it stands. Values only; `events` says how one becomes the next.

An attempt is one stay of a job on machines. Its number grows by one each time and is never used again: whatever belongs to an
older number (a process, a pod, a checkpoint being written) has no say any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from chipwise.catalog.offer import Purchase


class Phase(StrEnum):
    QUEUED = "queued"
    STARTING = "starting"  # an attempt is decided on; its engine has not said yet that it runs
    RUNNING = "running"
    LEAVING = "leaving"  # asked to save and go
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def over(self) -> bool:
        return self in (Phase.DONE, Phase.FAILED, Phase.STOPPED)

    @property
    def placed(self) -> bool:
        """Whether it holds devices."""
        return self in (Phase.STARTING, Phase.RUNNING, Phase.LEAVING)


LIVE = frozenset(one for one in Phase if not one.over)
PLACED = frozenset(one for one in Phase if one.placed)


class Wish(StrEnum):
    """What its owner wants of it."""

    RUN = "run"
    STOP = "stop"  # save and exit, within its grace
    END = "end"  # at once, without any

    @property
    def stops(self) -> bool:
        return self is not Wish.RUN


class LeaveReason(StrEnum):
    """Why an attempt was asked to leave, which decides what becomes of the job."""

    WISH = "wish"  # requested by its owner
    END = "end"  # requested by its owner: there is no time to save
    NOTICE = "notice"  # its machine is being removed
    MOVE = "move"  # a policy wants it elsewhere
    OVERDUE = "overdue"  # longer than one attempt may take
    BUDGET = "budget"


class Lack(StrEnum):
    """What a job waits for, where something is decided by it; its reason says the same in words."""

    CHECK = "check"  # a service that runs does not answer its check yet
    PERMIT = "permit"  # its owner may not run it there, or not read a secret
    TURN = "turn"  # others are ahead of it, or hold the devices: as its controller sees it, who sees all of them
    PREDECESSOR = "predecessor"  # what comes before it cannot be read in the record


class Move(StrEnum):
    """What may be tried when an attempt was lost or found no machine, and what a job may be moved for."""

    SAME = "same"  # the same place once more
    ZONE = "zone"  # another zone of the region, or another kind of machine there
    REGION = "region"  # another region, or another provider
    PURCHASE = "purchase"  # the other purchase option, where the policy leaves it open
    FEWER = "fewer"  # workers than it had, down to the least that it can do with
    MORE = "more"  # workers again, up to what it wanted


# Nearest first: what was loaded and saved is near the place that was lost. Another purchase option costs more, fewer workers
# cost time, so they come when no other place is left.
RECOVER = (Move.SAME, Move.ZONE, Move.REGION, Move.PURCHASE, Move.FEWER, Move.MORE)


class Outcome(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    FAILED = "failed"  # by itself: its own exit code says so
    LOST = "lost"  # its machine, supervisor or pod went away
    LEFT = "left"  # it saved and went because it was told to, or said so by its exit code
    STOPPED = "stopped"  # its owner asked
    OVERDUE = "overdue"  # longer than it may run


MOST_PROCESSES = 1024  # of one job on each machine


@dataclass(frozen=True, slots=True)
class Needs:
    """What one attempt holds for itself, on each of its machines. With a least number it takes what is to be had between the
    two, and its program must be able to go on with another number of workers than the one that saved."""

    gpus: int = 0
    cpus: int = 1
    machines: int = 1
    processes: int = 1  # on each machine, each told its rank
    gpus_least: int | None = None  # None: exactly as many as wanted
    machines_least: int | None = None

    @property
    def fault(self) -> str:
        """What of it no engine can do; empty: nothing."""
        if 1 <= self.processes <= MOST_PROCESSES:
            return ""
        return f"{self.processes:,} processes were asked for, and 1 to {MOST_PROCESSES:,} can be started"

    @property
    def fewest_gpus(self) -> int:
        return self.gpus if self.gpus_least is None else max(min(self.gpus_least, self.gpus), 0)

    @property
    def fewest_machines(self) -> int:
        return self.machines if self.machines_least is None else max(min(self.machines_least, self.machines), 1)

    @property
    def elastic(self) -> bool:
        return self.fewest_gpus < self.gpus or self.fewest_machines < self.machines

    def processes_on(self, gpus: int) -> int:
        """Of one machine: as many for each GPU as were asked for, where they come out even; else as many as were asked for."""
        if self.fewest_gpus >= self.gpus or self.processes % self.gpus:
            return self.processes
        return max(self.processes // self.gpus * gpus, 1)


LEAST_WAIT_S = 1.0  # before a job is tried again that came no further


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a job is started again. Lost machines are nobody's fault, so they have a count of their own; so have kills, of
    which memory or another person is the cause."""

    failures: int = 2  # after which its own failures are final
    kills: int = 5  # after which it goes on from its checkpoint, each at another step
    same_step: int = 2  # failures in a row without a step of progress that show a bug
    losses: int = 100
    wait_s: float = 5.0  # before the second attempt; doubled each time
    longest_wait_s: float = 600.0
    no_machine_s: float = 600.0  # without its machines, after which another place or fewer of them are tried
    grow_after_s: float = 300.0  # on fewer workers than wanted, before it is moved for more: a move costs a restart


@dataclass(frozen=True, slots=True)
class MachinePlace:
    """A place where an attempt may run, best first."""

    purchase: Purchase = Purchase.OWNED
    provider: str = ""
    region: str = ""
    zone: str = ""
    machine: str = ""
    usd_per_hour: float | None = None  # of one machine


@dataclass(frozen=True, slots=True)
class Work:
    """What its steps add up to, where the workload says: speeds are told in its unit."""

    unit: str = ""  # tokens, samples, frames, steps, ...
    amount: float | None = None  # of the whole job
    per_step: float | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """What was asked for. It never changes; secrets are names of settings, never values."""

    command: tuple[str, ...]
    name: str
    engine: str = "local"
    place: str = ""  # what of the engine: this machine, a cluster, an account in a region
    service: bool = False  # runs until it is stopped: an exit is a failure
    folder: str = ""  # in which the command runs
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)  # setting, and where its value is kept: never the value
    needs: Needs = Needs()
    owner: str = ""
    team: str = ""
    project: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0  # among the jobs of its owner: the higher, the sooner
    retry: Retry = Retry()
    recover: tuple[Move, ...] = RECOVER  # what may be tried after a loss, in this order
    grace_s: float = 30.0  # to save and exit
    longest_s: float | None = None  # that one attempt may take
    expected_s: float | None = None  # what was predicted: for backfill and for comparing
    deadline: float | None = None  # as a time
    budget_usd: float | None = None
    policy: str = ""  # of spot machines, by name; empty: the plain rule
    places: tuple[MachinePlace, ...] = ()  # empty: the engine's own
    checkpoints: str = ""
    interruptions_per_hour: float | None = None
    health: str = ""  # URL or path that a service answers when it is well
    after: tuple[str, ...] = ()  # jobs that must be done before: the stages of a pipeline
    produces: tuple[str, ...] = ()  # files that must be there, and not be empty, when it is done: the hand-off
    objects: tuple[Mapping[str, object], ...] = ()  # rendered, where the engine applies objects
    workload: str = ""  # the file that it came from
    pipeline: str = ""  # whose stage it is; stages of one run were submitted at the same time
    predicted: Mapping[str, object] = field(default_factory=dict)
    work: Work = Work()


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    where: MachinePlace
    devices: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    machines: int = 1
    placed: float = 0.0
    held: float | None = None  # since when machines that its engine found are there, and paid for
    begun: float | None = None
    ended: float | None = None
    outcome: Outcome | None = None
    code: int | None = None
    reason: str = ""
    step: int | None = None  # reached, as far as it told
    saved: int | None = None  # the step from which the next attempt goes on, where it is known
    resumed: int | None = None  # the step of the checkpoint that it loaded, where it told; 0: it found none
    handle: str = ""  # how its engine calls it
    came: int | None = None  # of its machines, where others did not

    @property
    def since(self) -> float | None:
        """From when on machines count: ours when they are given out, others when they come; None: none came."""
        if self.devices or self.cpus:
            return self.placed
        return self.held if self.held is not None else self.begun

    def hours(self, now: float) -> float:
        """Machine-hours. Waiting for a machine that never comes is free."""
        if self.since is None:
            return 0.0
        return max((self.ended if self.ended is not None else now) - self.since, 0.0) / 3600.0 * self.machines

    def usd(self, now: float) -> float:
        return self.hours(now) * (self.where.usd_per_hour or 0.0)


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    spec: Spec
    submitted: float
    version: int = 0  # grows with every event; a writer with an old one is refused
    wish: Wish = Wish.RUN
    phase: Phase = Phase.QUEUED
    attempts: tuple[Attempt, ...] = ()
    not_before: float = 0.0
    waiting: str = ""  # why it does not run yet, in words
    lack: Lack | None = None  # what of it decisions depend on
    leave_by: float | None = None  # while leaving: when it is ended
    leaving: LeaveReason | None = None
    forgiven: int = 0  # attempts that no longer count, since its owner asked for a retry
    ended: float | None = None
    reason: str = ""

    @property
    def attempt(self) -> Attempt | None:
        """The one that holds devices now, or held them last."""
        return self.attempts[-1] if self.attempts else None

    def ready_at(self, now: float) -> float:
        """When it may be tried again. No wait is longer than the longest between its tries: a time beyond that was written by
        a clock that was set back since, and holds nothing up."""
        longest_s = max(self.spec.retry.longest_wait_s, LEAST_WAIT_S)
        return self.not_before if self.not_before <= now + longest_s else now

    @property
    def machines(self) -> int:
        """That its attempt has, or that it asks for: they differ where it takes fewer."""
        count = self.attempts[-1].machines if self.attempts and self.spec.needs.elastic else self.spec.needs.machines
        return max(count, 1)

    def gpus_of(self, attempt: Attempt) -> int:
        """On each machine of an attempt. Where devices are ours it may hold fewer than were wanted."""
        needs = self.spec.needs
        return len(attempt.devices) if needs.fewest_gpus < needs.gpus and (attempt.devices or attempt.cpus) else needs.gpus

    def share_of(self, attempt: Attempt) -> float:
        """Of the workers that were wanted, how many an attempt has."""
        needs = self.spec.needs
        if not needs.elastic:
            return 1.0
        gpus = self.gpus_of(attempt) / needs.gpus if needs.gpus else 1.0
        machines = attempt.machines / needs.machines if needs.fewest_machines < needs.machines else 1.0
        return min(gpus * machines, 1.0)

    @property
    def counted(self) -> tuple[Attempt, ...]:
        return self.attempts[self.forgiven :]

    def usd(self, now: float) -> float:
        return sum(one.usd(now) for one in self.attempts)

    def runtime_s(self, now: float) -> float:
        """Of attempts that began: what was held by one that never did, nothing ran on."""
        return sum(one.hours(now) * 3600.0 / max(one.machines, 1) for one in self.attempts if one.begun is not None)
