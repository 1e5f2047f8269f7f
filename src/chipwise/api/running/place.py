"""Where jobs are recorded and what this machine has to give: settings, turned into the parts that run."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import BadInput, InvalidFile, Problem
from chipwise.run.queue import Rules, Share

if TYPE_CHECKING:
    from chipwise.adapters.engines.local import Local
    from chipwise.api.wiring import Session
    from chipwise.run.record import Record

URL = "CHIPWISE_RECORD"


def open_record(session: Session) -> Record:
    """The team's database where one is set, else a file of the user's own."""
    from chipwise.adapters.stores.record import connect

    return connect(record_url(session))


def record_url(session: Session) -> str:
    return os.environ.get(URL) or f"sqlite:///{session.config.record}"


def local_engine(session: Session) -> Local:
    from chipwise.adapters.engines import local

    config = session.config
    found = local.gpus_here() if os.environ.get("CHIPWISE_GPUS") is None else ()
    return local.connect(
        local.Config(
            root=config.run_dir / "jobs",
            gpus=local.devices(os.environ.get("CHIPWISE_GPUS"), found, "CHIPWISE_GPUS"),
            cpus=local.devices(os.environ.get("CHIPWISE_CPUS"), _cpus_here(), "CHIPWISE_CPUS"),
            secrets=config.secrets_dir,
            passing=passing_dir(session),
            controller={
                "lock": str(config.run_dir / "controller.lock"),
                "log": str(config.run_dir / "controller.log"),
                "command": controller_command(),
            },
        )
    )


def controller_command(place: str = "") -> list[str]:
    """`place`: of another engine than this machine."""
    return [sys.executable, "-P", "-m", "chipwise", "control", *(("--place", place) if place else ())]


def passing_dir(session: Session) -> Path:
    """Where secrets of a submitter wait for their job: in memory where the system has such a place for the user."""
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
    """`queue.yaml` of the config directory: {patience: 1h, teams: {vision: {gpus: 8, cpus: 64, weight: 2}}}."""
    path = session.config.queue
    if not path.is_file():
        return Rules()
    import yaml

    from chipwise.units import parse_seconds

    try:
        data = yaml.safe_load(path.read_text()) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{path} cannot be read: {str(error).splitlines()[0]}", remedy="Mend it, or move it away.") from None
    problems: list[Problem] = []
    if not isinstance(data, dict):
        raise InvalidFile(str(path), [Problem("", "it is not a mapping", allowed="patience, teams, others")])
    problems += [
        Problem(str(name), "nothing is called so", allowed="patience, teams, others")
        for name in data.keys() - {"patience", "teams", "others"}
    ]
    teams = data.get("teams") or {}
    if not isinstance(teams, dict):
        problems.append(Problem("teams", "it is not a mapping", allowed="names of teams with gpus, cpus, weight"))
        teams = {}
    shares = {str(name): _share(f"teams.{name}", value, problems) for name, value in teams.items()}
    other = _share("others", data.get("others"), problems)
    patience = Rules().patience_s
    if "patience" in data:
        try:
            patience = parse_seconds(str(data["patience"]))
        except ValueError as error:
            problems.append(Problem("patience", str(error), allowed="a time such as 1h"))
    if problems:
        raise InvalidFile(str(path), problems)
    return Rules(shares, other, patience)


def _share(where: str, value: object, problems: list[Problem]) -> Share:
    if value is None:
        return Share()
    if not isinstance(value, dict):
        problems.append(Problem(where, "it is not a mapping", allowed="gpus, cpus, weight"))
        return Share()
    problems += [
        Problem(f"{where}.{key}", "nothing is called so", allowed="gpus, cpus, weight")
        for key in value.keys() - {"gpus", "cpus", "weight"}
    ]
    for key in ("gpus", "cpus"):
        held = value.get(key)
        if held is not None and (isinstance(held, bool) or not isinstance(held, int) or held < 0):
            problems.append(Problem(f"{where}.{key}", f"{held!r} is no number of devices", allowed="a whole number, 0 or more"))
    weight = value.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < 1e9:
        problems.append(Problem(f"{where}.weight", f"{weight!r} is no weight", allowed="a number above 0"))
        weight = 1.0
    if any(problem.field.startswith(where) for problem in problems):
        return Share()
    return Share(value.get("gpus"), value.get("cpus"), float(weight))
