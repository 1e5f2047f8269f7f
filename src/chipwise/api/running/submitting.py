"""From a command line to jobs in the record. What cannot run here is refused before anything is written."""

from __future__ import annotations

import getpass
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.adapters import environment as environment_of
from chipwise.adapters.passed_secrets import lay
from chipwise.api.running.installed import runs_here
from chipwise.errors import BadInput, NotFound
from chipwise.runner.abilities import Checks
from chipwise.runner.finding import beginning
from chipwise.runner.job import Attempt, Job, MachinePlace, Spec
from chipwise.runner.queue import Rules
from chipwise.text import plural

if TYPE_CHECKING:
    from chipwise.runner.abilities import OnThisMachine
    from chipwise.runner.engine import Engine
    from chipwise.runner.record import Record

_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STORED_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that look alike


def new_id(name: str) -> str:
    return f"{beginning(name) or 'job'}-{''.join(secrets.choice(_LETTERS) for _ in range(7))}"


def submitter() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        return str(os.getuid())


def environment(
    settings: Sequence[str], environ: Mapping[str, str] | None = None, *, inherit: bool = True, same_user: bool = True
) -> dict[str, str]:
    """What goes along by itself, and what was asked for: NAME=VALUE, or NAME as it is now. `same_user`: whether the program is
    to run as the system user who submits it."""
    env = dict(os.environ) if environ is None else dict(environ)
    values = environment_of.inherited(env, same_user=same_user) if inherit else {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not _SETTING.fullmatch(name):
            raise BadInput(f"{setting[:60]!r} is not a variable.", remedy="Write NAME=VALUE, or NAME to pass on its value.")
        if not equals and name not in env:
            raise BadInput(f"{name} is not set here.", remedy=f"Write --env {name}=VALUE, or set it.")
        values[name] = value if equals else env[name]
    if any("\0" in value for value in values.values()):
        raise BadInput("A variable contains the character NUL.", remedy="Give text without it.")
    return values


def secrets_of(texts: Sequence[str], *, is_local: bool) -> dict[str, str]:
    """By setting, where each is kept. On this machine both become names of files, so neither may lead elsewhere; what a
    cluster or a cloud calls its secrets, their engines know."""
    keys: dict[str, str] = {}
    for text in texts:
        name, equals, key = text.partition("=")
        if not _SETTING.fullmatch(name):
            raise BadInput(f"{name[:60]!r} is not a variable.", remedy="Write --secret NAME, or --secret NAME=STORED/KEY.")
        if equals and not (_STORED_NAME.fullmatch(key) if is_local else key and key.isprintable()):
            raise BadInput(
                f"The secret {name} cannot be stored under {key[:60]!r}.",
                remedy="Write names with a slash between: STORED/KEY.",
            )
        keys[name] = key
    return keys


def checked(spec: Spec, engine: OnThisMachine, rules: Rules) -> Spec:
    """The same, if this machine could ever run it."""
    needs, config = spec.needs, engine.config
    engine.ready(spec.owner)
    if needs.machines > 1:
        raise BadInput(
            f"{spec.name} needs {needs.machines} machines, and this machine is one.", remedy="Use --engine kubernetes."
        )
    fewest_gpus = needs.fewest_gpus  # with more it starts when there are more
    for device, wanted, available, setting in (
        ("GPU", fewest_gpus, config.gpus, "gpus"),
        ("CPU", needs.cpus, config.cpus, "cpus"),
    ):
        if wanted > len(available):
            raise BadInput(
                f"{spec.name} needs {plural(wanted, device)}, and this machine has {len(available)}.",
                remedy=f"Ask for fewer with --{setting}, or take another engine.",
            )
        limit = getattr(rules.share(spec.team), setting)
        if limit is not None and wanted > limit:
            team = f"team {spec.team}" if spec.team else "a job without a team"
            raise BadInput(
                f"{spec.name} needs {plural(wanted, device)}, and {team} may use {limit}.", remedy="Raise it in queue.yaml."
            )
    if spec.folder and not Path(spec.folder).is_dir():
        raise BadInput(f"The folder {spec.folder} does not exist.", remedy="Give an existing one with --folder.")
    if os.path.isabs(spec.checkpoints) or "://" in spec.checkpoints:  # another path lies below a folder
        from chipwise.job.opening import directory

        if (path := directory(spec.checkpoints)) is not None and path.exists() and not path.is_dir():
            raise BadInput(f"{path} is no folder, and cannot keep checkpoints.", remedy="Give a folder with --checkpoints.")
    if (program := _missing(spec)) is not None:
        raise NotFound(f"The command {program!r} was not found.", remedy="Give its path, or fix PATH.")
    return spec


def checked_elsewhere(id: str, spec: Spec, engine: Engine) -> None:
    """As its first attempt would be, so that what cannot run is told to whoever asks, and is recorded nowhere."""
    for name, key in spec.secrets.items():
        if not key:
            raise BadInput(
                f"The secret {name} is stored on this machine, and {spec.engine} cannot read it.",
                remedy=f"Store it there, and write --secret {name}=NAME/KEY.",
            )
    if not isinstance(engine, Checks):
        return
    now = time.time()
    job = Job(id, spec, now)
    first_place = spec.places[0] if spec.places else MachinePlace()
    engine.check(replace(job, attempts=(Attempt(1, first_place, machines=spec.needs.machines, placed=now),)))


def _missing(spec: Spec) -> str | None:
    program = spec.command[0]
    if os.sep in program:
        path = Path(spec.folder or ".") / program
        return None if path.is_file() and os.access(path, os.X_OK) else program
    return None if shutil.which(program, path=spec.env.get("PATH", os.defpath)) else program


def submit(
    record: Record, specs: Sequence[tuple[str, Spec]], passing: Path | None = None, values: Mapping[str, str] | None = None
) -> list[Job]:
    """Recorded by id, with the secrets of the submitter laid where only the engine of this machine looks."""
    try:
        if values and passing is not None:
            for id, spec in specs:
                lay(passing / id, {name: value for name, value in values.items() if name in spec.secrets})
        return record.submit(specs, time.time())
    except BaseException:
        if values and passing is not None:
            for id, _ in specs:
                shutil.rmtree(passing / id, ignore_errors=True)
        raise


def laid_again(job: Job, passing: Path) -> None:
    """They went when the job was over; whoever starts it again has them, or is told that they are missing."""
    names = [name for name, kept in job.spec.secrets.items() if not kept and name in os.environ]
    if names and runs_here(job.spec.engine) and job.phase.over:
        lay(passing / job.id, {name: os.environ[name] for name in names})
