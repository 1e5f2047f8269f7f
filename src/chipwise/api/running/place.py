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

from chipwise.api.running.engines_file import run_as
from chipwise.api.running.installed import DEFAULT, package, runs_here
from chipwise.errors import BadInput, InvalidFile, Problem
from chipwise.runner.abilities import Machine, RunsHere
from chipwise.runner.job import Job
from chipwise.runner.queue import Rules, Share

if TYPE_CHECKING:
    from collections.abc import Callable

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
        run_as=run_as(session, name),
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
    """`queue.yaml` of the config directory: {patience: 1h, policy: backfill, teams: {vision: {gpus: 8, cpus: 64}}}."""
    path = session.config.queue
    if not path.is_file():
        return Rules()
    from chipwise.files.source import FileKind, read_text, read_yaml
    from chipwise.units import parse_seconds

    kind = FileKind("queue", "Allowed keys are patience, policy, teams and others.", 100_000)
    text = read_text(path, kind)
    if all(line.lstrip().startswith("#") for line in text.splitlines() if line.strip()):
        return Rules()
    document = read_yaml(text, str(path), kind)
    data, problems = document.data, list(document.problems)
    problems += [
        Problem(str(name), "there is no such key", allowed="patience, policy, teams, others")
        for name in data.keys() - {"patience", "policy", "teams", "others"}
    ]
    teams = data.get("teams") or {}
    if not isinstance(teams, dict):
        problems.append(Problem("teams", "it is not a mapping", allowed="names of teams with gpus, cpus, weight"))
        teams = {}
    shares = {str(name): _share(f"teams.{name}", value, problems) for name, value in teams.items()}
    default_share = _share("others", data.get("others"), problems)
    patience = Rules().patience_s
    if "patience" in data:
        try:
            patience = parse_seconds(str(data["patience"])[:100])
        except BadInput as error:
            problems.append(Problem("patience", error.message, allowed="a time such as 1h"))
        if patience < 0:
            problems.append(Problem("patience", "it is below zero", allowed="a time such as 1h"))
    order, is_strict = _order(data.get("policy"), problems)
    if problems:
        raise InvalidFile(str(path), problems)
    return Rules(teams=shares, default_share=default_share, patience_s=patience, order=order, is_strict=is_strict)


FAIR_SHARE = "fair-share"  # the order of our own queue where no other is named


def _order(name: object, problems: list[Problem]) -> tuple[Callable[[Job, float], float] | None, bool]:
    """Of the queue policy of that name."""
    if name is None or name == FAIR_SHARE:
        return None, False
    from chipwise.runner.queue_order import order
    from chipwise.scale.policy_files import queue_policy

    try:
        return order(queue_policy(str(name)[:100]))
    except BadInput as error:
        problems.append(Problem("policy", error.message, allowed="a queue policy of chipwise policies"))
        return None, False


def _share(field: str, value: object, problems: list[Problem]) -> Share:
    if value is None:
        return Share()
    if not isinstance(value, dict):
        problems.append(Problem(field, "it is not a mapping", allowed="gpus, cpus, weight"))
        return Share()
    problems += [
        Problem(f"{field}.{key}", "there is no such key", allowed="gpus, cpus, weight")
        for key in value.keys() - {"gpus", "cpus", "weight"}
    ]
    for key in ("gpus", "cpus"):
        count = value.get(key)
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            problems.append(
                Problem(f"{field}.{key}", f"{count!r:.60} is not a number of devices", allowed="a whole number, 0 or more")
            )
    weight = value.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < 1e9:
        problems.append(Problem(f"{field}.weight", f"{weight!r:.60} is not a weight", allowed="a number above 0"))
        weight = 1.0
    if any(problem.field.startswith(field) for problem in problems):
        return Share()
    return Share(value.get("gpus"), value.get("cpus"), float(weight))
