"""The options of `run`, and what the api is asked with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from chipwise.errors import BadInput
from chipwise.files.source import NamedText, read_yaml
from chipwise.public.plans import NoPlan, Plan
from chipwise.public.workloads import LimitOptions, Names, constraints, is_file, is_text, read_workload, stated

if TYPE_CHECKING:
    pass


class RunOptions(TypedDict, total=False):
    """How a job runs, as the options of `chipwise run` say it. Durations are seconds or texts such as 2h."""

    name: str
    engine: str
    stage_engines: Mapping[str, str]
    context: str
    namespace: str
    queue: str
    image: str
    machine: str
    cloud: Names
    region: Names
    country: Names
    chip: Names
    on_demand: bool
    spot: bool
    market: str
    commit: str
    max_price_age: str
    large: bool
    limits: Mapping[str, Any]
    gpus: int | str
    machines: int | str
    cpus: int
    processes: int
    team: str
    project: str
    labels: Mapping[str, str]
    priority: int
    env: Mapping[str, str]
    secrets: Mapping[str, str]
    folder: str | Path
    longest: str | float
    expected: str | float
    retries: int
    patience: str | float
    recover: str
    grace: str | float
    budget: float
    policy: str
    checkpoints: str
    after: Names
    produces: Names
    environment: str


_DURATIONS = ("longest", "expected", "patience", "grace")
_PAIRS = {"labels": "labels", "env": "settings", "secrets": "secrets", "stage_engines": "stages"}


def _refuse_without_program(source: NamedText) -> None:
    """A workload that a program wrote is changed there, not in a file."""
    data = read_yaml(source.text, source).data
    kind = data.get("kind")
    if kind == "pipeline" or data.get("program") is not None or not isinstance(kind, str):
        return
    if kind == "serve":
        remedy = 'cw.serve(model) serves it on this machine, and cw.serve(workload, engine="kubernetes") in a cluster.'
        raise BadInput(f"{data.get('name')} does not say what to run.", remedy=remedy)
    command = '["python", "train.py"]'
    raise BadInput(
        f"{data.get('name')} does not say what to run.",
        remedy=f'Give cw.{kind.capitalize()}(..., program={{"command": {command}}}), or the command itself: cw.run({command}).',
    )


def run_request(work: Any, options: RunOptions) -> Any:
    from chipwise.api.running.asking import RunRequest
    from chipwise.api.running.installed import runs_here
    from chipwise.units import parse_seconds

    is_command = isinstance(work, list | tuple)
    if isinstance(work, str) and not isinstance(work, NamedText) and not is_text(work) and not is_file(work):
        command = ", ".join(f'"{word}"' for word in work.split())
        raise BadInput(f"{work!r} is not a workload file.", remedy=f"Give a command as a list of words: cw.run([{command}])")
    words = tuple(map(str, work)) if is_command else (read_workload(work),)
    settings = stated(options)
    is_here = "engine" not in settings or runs_here(settings["engine"])
    if is_here and not is_command and not isinstance(work, str | Path):
        _refuse_without_program(read_workload(work))
    limits = {name: settings.pop(name) for name in LimitOptions.__annotations__ if name in settings and name != "spot"}
    settings["constraints"] = constraints(cast(LimitOptions, limits))
    settings |= {name: parse_seconds(settings[name]) for name in _DURATIONS if name in settings}
    for name, field_name in _PAIRS.items():
        if name in settings:
            pairs = tuple(f"{key}={value}" if value else str(key) for key, value in settings.pop(name).items())
            settings[field_name] = pairs
    for name in ("after", "produces"):
        if name in settings:
            settings[name] = (settings[name],) if isinstance(settings[name], str) else tuple(map(str, settings[name]))
    if "folder" in settings:
        settings["folder"] = Path(settings["folder"])
    if isinstance(work, Plan | NoPlan) and "environment" not in settings:
        settings["environment"] = work.request.environment
    return RunRequest(words=words, is_command=is_command, **settings)
