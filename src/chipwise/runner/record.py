"""What is remembered: the contract of every store of jobs.

Events are only ever added. Each write names the version of the job that it was decided on, and is refused when somebody else
was faster (`Stale`): then the writer looks again. Whoever acts for a place holds its lease; a lease has a number (`epoch`) that
grows with every change of holder, and a write under an old number is refused (`Deposed`), however late it comes.

A job whose row cannot be read is made again from its events. Where those cannot be read either it is `Damaged`: nothing is
decided about it, and what it may have running is left to itself, but all other jobs go on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from chipwise.errors import ChipwiseError, OutsideFailed
from chipwise.runner.events import Event
from chipwise.runner.job import Job, Phase, Spec
from chipwise.runner.permits import Permit

Mark = int | str  # of what was read of changes; 0: nothing


class Stale(ChipwiseError):
    """The job changed since it was read."""

    exit_code = 3


class Held(Stale):
    """Another session of the database holds the job, and may change it."""


class MarkLost(ChipwiseError):
    """Nobody knows any more what changed since a mark: whoever reads changes begins anew, from 0."""

    exit_code = 3


class Deposed(ChipwiseError):
    """Another controller leads this place now."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Damaged:
    """A job that the record holds and that nobody can read. What is left of it stands in `job`: its id, version, phase and
    number of attempts, enough to know its machines by and not enough to decide anything about it. It is never written back."""

    job: Job
    reason: str
    is_shared: bool = False  # in a record of several people, of whom not everybody may give it up

    @property
    def id(self) -> str:
        return self.job.id

    @property
    def version(self) -> int:
        return self.job.version

    @property
    def sentence(self) -> str:
        return f"The database row of {self.job.id} is damaged: {self.reason}."

    @property
    def remedy(self) -> str:
        waits = "" if self.job.phase.over else "; until then it is neither started nor stopped"
        who = f"the controller of {self.job.spec.place} or an admin of the database gives" if self.is_shared else "give"
        return (
            f"If a newer chipwise wrote it, use that version; otherwise restore a backup of the database, or {who} the job up "
            f"with `chipwise forget {self.job.id} --damaged`{waits}."
        )

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}"


class Unread(OutsideFailed):
    """The job that was asked for is damaged."""

    def __init__(self, damaged: Damaged) -> None:
        super().__init__(damaged.sentence, remedy=damaged.remedy)
        self.damaged = damaged


@dataclass(frozen=True, slots=True)
class Lease:
    place: str
    holder: str
    epoch: int
    until: float


@dataclass(frozen=True, slots=True)
class Happened:
    number: int  # grows over the whole record
    job: str
    moment: float
    event: Event


@dataclass(frozen=True, slots=True)
class Change:
    """Events of one job, decided on one version of it."""

    job: Job
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a list of jobs: what `ps` shows, without reading what is inside each."""

    id: str
    name: str
    phase: Phase
    engine: str
    place: str
    owner: str
    team: str
    project: str
    priority: int
    gpus: int  # that it has while it is placed, else that it wants
    cpus: int
    machines: int  # as the GPUs
    attempts: int
    submitted: float
    begun: float | None  # the latest attempt's
    ended: float | None
    reason: str  # why it is over, or why it waits


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs. Empty fields ask for nothing."""

    phases: frozenset[Phase] = frozenset()
    owner: str = ""
    team: str = ""
    project: str = ""
    engine: str = ""
    place: str = ""
    name: str = ""  # of the job, or the beginning of its id
    newest: int | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """Machine-hours of one attempt, for the ledger."""

    job: str
    owner: str
    team: str
    project: str
    engine: str
    purchase: str
    provider: str
    region: str
    machine: str
    machines: int
    gpus: int
    placed: float  # since when machines count: `Attempt.since`
    ended: float | None
    usd_per_hour: float | None


class Record(Protocol):
    @property
    def login(self) -> str:
        """As whom the record knows the one who asks, who can then submit as nobody else; empty: it does not ask."""
        ...

    def teams(self) -> frozenset[str] | None:
        """In which whoever asks can submit; None: in any."""
        ...

    def submit(self, specs: Sequence[tuple[str, Spec]], moment: float) -> list[Job]:
        """New jobs by id, all or none. An id that is there already is refused with `Stale`."""
        ...

    def write(self, changes: Sequence[Change], moment: float, lease: Lease | None = None) -> list[Job | Stale]:
        """Each change whole or not at all; the jobs after it. One that is stale is left out, the others stand."""
        ...

    def job(self, id: str) -> Job | None:
        """Raises `Unread` where it is there and damaged."""
        ...

    def named(self, ids: Collection[str]) -> dict[str, Job]:
        """Those of these that are there, are the asker's to see, and can be read."""
        ...

    def jobs(self, wanted: Wanted) -> list[Job]:
        """Without those that are damaged: whoever needs to know of everything that may run asks for those, too."""
        ...

    def damaged(self, wanted: Wanted) -> list[Damaged]: ...

    def give_up(self, damaged: Damaged, reason: str, moment: float) -> Job:
        """It is over as failed, with what is left of it; `Stale` where it changed meanwhile, or can be read again. Whoever
        asks has seen to it that nothing of it runs."""
        ...

    def rows(self, wanted: Wanted) -> list[Row]:
        """The newest first."""
        ...

    def changed(self, after: Mark, place: str, limit: int) -> tuple[list[Job | Damaged], Mark]:
        """Jobs of a place that changed after a mark, in order, and the mark to go on from. Jobs that were over
        when a reading from 0 began are not among them. A mark is handed back as it is; it says nothing by itself.
        Raises `MarkLost` where the server of the record may have lost what it did last, or another took over."""
        ...

    def events(self, id: str, after: int = 0) -> list[Happened]:
        """In their order. One that cannot be read is told as such in its place."""
        ...

    def uses(self, since: float, until: float) -> list[Use]:
        """Attempts that held machines between two times."""
        ...

    def permits(self, place: str, owners: Collection[str]) -> Mapping[str, Permit] | None:
        """What each may do at a place; None: the record belongs to one person, who may do everything."""
        ...

    def lead(self, place: str, holder: str, now: float, seconds: float) -> Lease | None:
        """Takes or renews the lease; None while somebody else holds it. Two processes never have the same name as holder."""
        ...

    def leader(self, place: str) -> Lease | None:
        """Who led it last, even where the lease has run out."""
        ...

    def resign(self, lease: Lease) -> None: ...

    def close(self) -> None: ...
