"""Where jobs are recorded and what this machine has to give: settings, turned into the parts that run."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from chipwise.api.running.installed import DEFAULT, package, runs_here
from chipwise.runner.abilities import Machine, RunsHere
from chipwise.runner.engines_file import run_as
from chipwise.runner.queue import Rules
from chipwise.runner.queue_file import queue_rules

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.runner.abilities import OnThisMachine
    from chipwise.runner.job import Spec
    from chipwise.runner.record import Record, Row

URL = "CHIPWISE_RECORD"
GPUS, CPUS = "CHIPWISE_GPUS", "CHIPWISE_CPUS"
PLACES = "places"  # folder of those that are led beside this machine
DEVICES = "devices.json"  # beside the lock of the controller: what it gives out
LOOKED = "looked"  # beside the lock of a controller of elsewhere: its time is that of the last look that succeeded


def open_record(session: Session, *, only_reads: bool = False) -> Record:
    """The team's database where one is set, else a file of the user's own. Whoever only reads makes no such file."""
    from chipwise.adapters.stores.record import connect
    from chipwise.adapters.stores.record.address import File, read_address

    url = record_url(session)
    if only_reads:
        address = read_address(url)
        if isinstance(address, File) and not os.path.lexists(address.path):
            from chipwise.adapters.stores.memory_record import MemoryRecord

            return MemoryRecord()
    return connect(url)


def record_url(session: Session) -> str:
    """The same wherever a process stands: a relative path begins where it was read first."""
    from chipwise.adapters.stores.record.address import file_url

    typed = os.environ.get(URL)
    return _whole_url(typed) if typed else file_url(session.config.record)


@cache
def _whole_url(typed: str) -> str:
    from chipwise.adapters.stores.record.address import whole_url

    return whole_url(typed)


def engine_here(session: Session, name: str = DEFAULT, *, only_looks: bool = False) -> OnThisMachine:
    """An engine of this machine. Several share the folders of jobs and the devices; each has a controller of its own. Of one
    that only looks at jobs nobody asks which devices there are."""
    kind, config, site = package(name), session.config, this_place(session, name)
    assert isinstance(kind, RunsHere)
    gpus, cpus = devices(session) if not only_looks else ((), ())
    home, leads = home_of(session, site), "" if site == this_place(session) else site
    machine = Machine(
        root=config.run_dir / "jobs",
        place=site,
        gpus=gpus,
        cpus=cpus,
        secrets=config.secrets_dir,
        passing=passing_dir(session),
        controller={
            "lock": str(home / "controller.lock"),
            "log": str(home / "controller.log"),
            "command": controller_command(leads),
        },
        run_as=run_as(config.engines, name),
    )
    return cast("OnThisMachine", kind.connect(kind.on_machine(machine)))


def devices(session: Session) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """GPUs and CPUs that jobs may hold here: as this shell sets them, else as the controller that lives gives them out, else
    what the machine has."""
    from chipwise.adapters import this_machine

    published = given_out(session) or {}
    gpus, cpus = os.environ.get(GPUS), os.environ.get(CPUS)
    detected = tuple(published["gpus"]) if "gpus" in published else this_machine.gpus_here() if gpus is None else ()
    return (
        this_machine.devices(gpus, detected, GPUS),
        this_machine.devices(cpus, tuple(published.get("cpus") or _cpus_here()), CPUS),
    )


def unseen_gpus(session: Session, reserved: int) -> str:
    """For who asked for no GPU on a machine that has some: programs see only those that they hold. Empty: nothing to say."""
    gpus = 0 if reserved else len(devices(session)[0])
    return f"It sees no GPU of the {gpus} here: --gpus 1 reserves one." if gpus else ""


def usable_gpus(config: Any) -> tuple[int, ...]:
    """Of an engine's devices on this machine, those that are not drained."""
    from chipwise.adapters.engines.local import drained

    return drained.usable(config.root, config.gpus)


def given_out(session: Session) -> dict[str, list[int]] | None:
    """What the controller of this machine gives out; None where none lives, or where it does not say."""
    from chipwise.adapters import state_files, waking

    home = session.config.run_dir
    published = state_files.read(home, DEVICES) if waking.awake(home / "controller.lock") else None
    if published is None or not all(isinstance(published.get(name), list) for name in ("gpus", "cpus")):
        return None
    with suppress(OSError, ValueError):  # what the one before it left says nothing
        if int(state_files.regular_bytes(home / "controller.lock")) != published.get("pid"):
            return None
    return {name: [one for one in published[name] if isinstance(one, int)] for name in ("gpus", "cpus")}


def this_place(session: Session, engine: str = DEFAULT) -> str:
    """As jobs of this machine name it. Another data directory is another place, though it stands beside: what runs is known by
    what lies there, and who does not find it there would start it a second time."""
    return f"{engine}:{socket.gethostname()}:{session.config.data_dir.absolute()}"


def is_here(session: Session, job: Spec | Row) -> bool:
    """Whether it runs on this machine, and not on another or on a cluster."""
    return runs_here(job.engine) and job.place == this_place(session, job.engine)


def is_ours(session: Session) -> bool:
    """Whether the data directory is this system user's own, whose controllers then are, too."""
    try:
        return os.stat(session.config.data_dir).st_uid == os.geteuid()
    except OSError:
        return True  # it is made when it is needed


def home_of(session: Session, place: str) -> Path:
    """Of the lock of a place's controller and of what it prints. An empty place is this machine."""
    if place in ("", this_place(session)):
        return session.config.run_dir
    return session.config.run_dir / PLACES / sha256(place.encode()).hexdigest()[:16]


def controller_command(place: str = "") -> list[str]:
    """`place`: of another engine than this machine."""
    return [sys.executable, "-P", "-m", "chipwise", "control", *(("--place", place) if place else ())]


def passing_dir(session: Session) -> Path:
    """Where secrets of a submitter wait for their job: in memory where the system has such a place for the user, and else, or
    where the controller is another user, beside the folders of jobs."""
    from chipwise.adapters.state_files import is_shared

    if is_shared(session.config.data_dir):
        return session.config.run_dir / "passing"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        own = sha256(str(session.config.data_dir.absolute()).encode()).hexdigest()[:12]
        return Path(runtime) / "chipwise" / own
    return session.config.run_dir / "passing"


def _cpus_here() -> tuple[int, ...]:
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def rules(session: Session) -> Rules:
    return queue_rules(session.config.queue)
