"""What an engine says of itself and can do beyond looking and doing; whoever wants it asks for the ability, not for a name.

An engine's package (`adapters/engines/NAME/`) has `connect(config) -> Engine` and `TRAITS`. What else it defines, of the
functions below, it can do: `isinstance(package, Prepares)` tells. The abilities of an engine that is connected are asked in the
same way of the engine itself. A process that watches over a job reads this too, so it imports nothing but types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from chipwise.runner.engine import Engine, Order, Seen, Sight
    from chipwise.runner.job import Job, Spec


@dataclass(frozen=True, slots=True)
class Traits:
    """What holds of an engine wherever it leads to, and can be told without a connection."""

    page: str = "docs/running/engines.md"  # where its settings are explained
    plays: bool = False  # nothing really runs: a virtual clock
    rents: bool = False  # machines of a cloud by their type, on demand or spot; each is told its container by CHIPWISE_IMAGE
    holds_budget: bool = False  # refuses itself what has a budget and no price
    looks_at: tuple[str, ...] = ()  # beginnings of URLs at which its machines look for what a job made, with their own rights
    turn_s: float = 0.5  # between two looks of its controller
    detail: str = ""  # the option of `run` that DETAIL gives in `bench --on NAME:DETAIL`; empty: none


@dataclass(frozen=True, slots=True)
class Home:
    """What an engine may know of the record that its jobs are in."""

    folder: Path  # below which it may keep files
    record: str  # names this record among others that use the same cluster or account


@dataclass(frozen=True, slots=True)
class Machine:
    """What an engine of this machine is given of it."""

    place: str
    root: Path  # where folders of attempts are
    gpus: tuple[int, ...]
    cpus: tuple[int, ...]
    secrets: Path  # files by name/key, readable by their owner only
    passing: Path  # secrets of submitters, in memory where there is such a file system
    controller: Mapping[str, object]  # how a supervisor wakes one
    run_as: Mapping[str, str]  # by owner, the system user of their programs ("": of others); empty: that of the controller


@dataclass(frozen=True, slots=True)
class Market:
    """What of the catalog an engine can get; empty: any."""

    clouds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()  # the first is where it is at home


@dataclass(frozen=True, slots=True)
class Prepared:
    parts: tuple[tuple[str, str, str], ...]  # state, kind, name
    fields: Mapping[str, Any]  # of the engine, with what was made: what engines.yaml should say
    policy: Mapping[str, Any]  # of whoever starts jobs
    complete: bool
    reason: str = ""  # of a field that nobody set
    warnings: tuple[str, ...] = ()  # of what was there before, and is left as it is


@dataclass(frozen=True, slots=True)
class Leftover:
    """What belongs to no attempt that is under way, and was ended, or would be."""

    kind: str  # machine, launch template, objects
    name: str
    job: str = ""  # empty: nobody knows
    attempt: int = 0
    type: str = ""
    region: str = ""


# Of an engine's package.


class Connects(Protocol):
    TRAITS: Traits

    def connect(self, config: Any) -> Engine: ...


@runtime_checkable
class RunsHere(Protocol):
    """Jobs run on the machine where they are submitted: folders, devices by id, output in files."""

    def on_machine(self, machine: Machine) -> Any:
        """What `connect` takes; the engine is an `OnThisMachine`."""
        ...


@runtime_checkable
class Configurable(Protocol):
    """Can be reached by its name, and by other names that engines.yaml gives it."""

    def settings_model(self) -> type[Any]:
        """A model (pydantic) of its fields there."""
        ...

    def configured(self, settings: Any, home: Home) -> Any:
        """What `connect` takes."""
        ...


@runtime_checkable
class Sells(Protocol):
    def market(self, settings: Any) -> Market: ...


@runtime_checkable
class AppliesObjects(Protocol):
    """Jobs are objects of a cluster: rendered from a plan, or made of a plain command."""

    def plain_objects(self, spec: Spec, image: str, queue: str) -> Sequence[Mapping[str, Any]]: ...

    def cpus_of(self, objects: Sequence[Mapping[str, Any]]) -> int:
        """Of each pod."""
        ...


@runtime_checkable
class ServesInside(Protocol):
    def serves_at(self, job: Job, port: int) -> str:
        """How a service is called from inside, and how one gets there from here."""
        ...


@runtime_checkable
class LosesFiles(Protocol):
    def passing(self, spec: Spec) -> Sequence[str]:
        """Files that nobody will find when the job is done."""
        ...


@runtime_checkable
class NumbersRanks(Protocol):
    def check_rank(self, job: Job, number: int | None, rank: int) -> None:
        """Raises where no machine of the attempt has that rank."""
        ...


@runtime_checkable
class Prepares(Protocol):
    def prepare(self, settings: Any, *, dry_run: bool) -> Prepared:
        """Makes what must be there before the first job."""
        ...


# Of an engine that is connected.


class OnThisMachine(Protocol):
    name: str
    config: Any  # with root, gpus and cpus of `Machine`

    @property
    def place(self) -> str: ...

    def look(self, jobs: Sequence[Job], now: float) -> Seen: ...

    def do(self, order: Order) -> None: ...

    def close(self) -> None: ...

    def ready(self, owner: str | None = None) -> None:
        """Raises where no job could be started as the place is set up, or none of this owner."""
        ...

    def folder(self, id: str, number: int) -> Path:
        """Of an attempt."""
        ...

    def processes_of(self, id: str, number: int) -> list[Any]:
        """Of psutil."""
        ...

    def supervisor_of(self, id: str, number: int) -> int | None: ...


@runtime_checkable
class Glances(Protocol):
    def glance(self, jobs: Sequence[Job], now: float) -> Mapping[tuple[str, int], Sight]:
        """What `look` sees of these attempts, for whoever does not lead: quickly, and without touching anything."""
        ...


@runtime_checkable
class ListsLiving(Protocol):
    def living(self) -> Sequence[tuple[str, int]]:
        """Ids and numbers of attempts of which something runs here, whosever they are."""
        ...


@runtime_checkable
class TellsLogs(Protocol):
    def logs(self, job: Job, number: int, *, follow: bool, rank: int | None) -> Iterator[bytes]:
        """With `follow`, an empty piece says that nothing was added since."""
        ...


@runtime_checkable
class Checks(Protocol):
    def check(self, job: Job) -> None:
        """Raises what stands in the way of starting it, as far as can be told; leaves nothing behind."""
        ...


@runtime_checkable
class HasQueues(Protocol):
    def queue_for(self, team: str, asked: str = "") -> str:
        """The queue in which work of a team waits; empty where there is none."""
        ...


@runtime_checkable
class BringsFolders(Protocol):
    def bring(self, folder: Path, tell: Callable[[int], object]) -> str:
        """A folder of this machine for jobs: what `Spec.folder` must say. `tell`: how many bytes are about to go."""
        ...


@runtime_checkable
class Reaps(Protocol):
    def reap(self, live: Callable[[], Iterable[tuple[str, int]]], *, dry_run: bool = False) -> Sequence[Leftover]:
        """Ends what belongs to none of the live attempts."""
        ...
