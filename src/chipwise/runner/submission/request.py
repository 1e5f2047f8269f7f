"""What `chipwise run` is asked for, and what of it is refused before anything is submitted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import BadInput, NotAllowed
from chipwise.planner.options import Constraints
from chipwise.runner.job import Needs, Spec
from chipwise.runner.submission import ranges
from chipwise.text import elapsed, spent

if TYPE_CHECKING:
    from chipwise.runner.record import Record

LONGEST = 200  # characters of a name, team, project or label


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Options of `chipwise run`. None: not given."""

    words: tuple[str, ...]
    is_command: bool = True
    name: str | None = None
    engine: str | None = None  # a name; `local` unless given
    stages: tuple[str, ...] = ()  # STAGE=ENGINE, of stages that have another
    context: str | None = None  # of the kubeconfig
    namespace: str | None = None
    queue: str | None = None
    image: str | None = None
    machine: str | None = None  # that a plain command takes from a cloud
    spot: bool = False
    gpus: str | int | None = None  # 4, or the least and the most: 2-4
    machines: str | int | None = None
    cpus: int | None = None
    processes: int = 1
    team: str | None = None
    project: str | None = None
    labels: tuple[str, ...] = ()
    priority: int = 0
    settings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    folder: Path | None = None
    longest: float | None = None
    expected: float | None = None
    retries: int | None = None
    patience: float | None = None  # seconds without its machines
    recover: str | None = None  # moves after a loss, in the order in which they are tried
    grace: float | None = None
    budget: float | None = None
    policy: str | None = None  # of spot machines
    checkpoints: str | None = None
    after: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    environment: str | None = None
    constraints: Constraints = field(default_factory=Constraints)  # of the plan of a workload, over what its file says
    text: str | None = None  # of the workload within them; None: the file as it is
    played: bool = False  # by a virtual clock: nothing is run, so nobody needs to say what


def check_deadline(path: str, spec: Spec, now: float) -> None:
    """Only of one that is not submitted yet: one that runs goes on when its time has come, since late is better than never."""
    if spec.deadline is not None and spec.deadline <= now:
        moment, ago = datetime.fromtimestamp(spec.deadline, UTC), elapsed(now - spec.deadline)
        raise BadInput(
            f"{path}: {spec.name} should finish by {moment:%Y-%m-%d %H:%M} UTC, which is {ago} ago.",
            remedy="Give goals.finish_by a time in the future, or leave it out.",
        )


def check_budget(request: RunRequest, spec: Spec, *, holds_budget: bool, host: str) -> None:
    """`holds_budget`: its engine holds one itself; `host`: what this machine is called."""
    prices = [one.usd_per_hour for one in spec.places if one.usd_per_hour]
    if request.budget is not None and not holds_budget and not prices:
        raise BadInput(
            f"The price of an hour of {spec.place} is not known, so --budget cannot be enforced.",
            remedy=f"Add this machine to the catalog by its name, {host}, with its price (docs/adding/own-catalog.md); "
            "or use --longest.",
        )
    if spec.budget_usd is None or not prices:
        return
    hourly = min(prices) * spec.needs.fewest_machines
    leaving = hourly * spec.grace_s / 3600.0
    if leaving >= spec.budget_usd:  # it would be asked to leave before it does anything
        raise BadInput(
            f"{spec.name} may spend {spent(spec.budget_usd)}, and at {spent(hourly)} an hour the {spec.grace_s:g} s that it "
            f"has to save and exit cost {spent(leaving)} alone.",
            remedy=f"Raise the budget well above {spent(leaving)}, or give it less time to leave with --grace.",
        )


def as_login(spec: Spec, login: str) -> Spec:
    """In a team's record nobody submits as somebody else; whom the file names is kept as a label."""
    if not login or spec.owner == login:
        return spec
    return replace(spec, owner=login, labels={"owner": spec.owner, **spec.labels})


def of_team(record: Record, spec: Spec) -> Spec:
    """In a team's record a job belongs to a team of its owner, where there is one: else its lead would not see it."""
    teams = record.teams()
    if teams is None or spec.team in teams or not (teams or spec.team):
        return spec
    listed = ", ".join(sorted(teams))
    if spec.team:
        yours = f"Yours: {listed}; an" if teams else "An"
        add = f"chipwise members add {record.login} --team {shlex.quote(spec.team)}"
        raise NotAllowed(
            f"{record.login} is not in team {spec.team}.", remedy=f"{yours} admin of the database adds people with `{add}`."
        )
    if len(teams) > 1:
        raise BadInput(f"{record.login} is in several teams: {listed}.", remedy="Choose one with --team.")
    return replace(spec, team=listed)


def stage_engines(texts: Sequence[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in texts]
    for stage, equals, engine in pairs:
        if not (stage and equals and engine):
            raise BadInput(f"{stage[:60]!r} names no engine.", remedy="Write --stage-engine STAGE=ENGINE.")
    return {stage: engine for stage, _, engine in pairs}


def produces_of(paths: tuple[str, ...]) -> tuple[str, ...]:
    """As a workload may say it."""
    if paths:
        from chipwise.workload.program import wrong_files

        if wrong := wrong_files(paths):
            raise BadInput(f"--produces: {wrong[0]}.", remedy=f"Give {wrong[1]}.")
    return paths


def needs_of(request: RunRequest, engine: str, *, is_local: bool) -> Needs:
    gpus, gpus_least = ranges.workers(str(request.gpus), "--gpus") if request.gpus is not None else (0, None)
    machines: int = 1
    machines_least: int | None = None
    if request.machines is not None:
        text = str(request.machines)
        counts = ranges.workers(text, "--machines") if request.is_command else (1, ranges.minimum_workers(text, "--machines"))
        machines, machines_least = counts
    if machines < 1 or machines_least == 0:
        raise BadInput("A job needs a machine.", remedy="Write --machines 1 or more.")
    if is_local and not request.is_command and not request.played:
        machines_least = None  # of a pipeline: this stage is on one machine, others may be on several
    if gpus_least is not None and not is_local:
        raise BadInput(
            f"{engine} cannot split the GPUs of a machine.", remedy="Give a range of machines instead: --machines 2-4."
        )
    cpus = request.cpus if request.cpus is not None else 1
    return Needs(
        gpus=gpus,
        cpus=cpus,
        machines=machines,
        processes=request.processes,
        gpus_least=gpus_least,
        machines_least=machines_least,
    )


def _program(words: Sequence[str]) -> str:
    """What a person would call it: the script rather than its interpreter."""
    for word in words[1:]:
        if word.endswith((".py", ".sh", ".jl", ".R")):
            return word
    return words[0]


def labels_of(texts: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{text[:60]!r} is no label.", remedy="Write --label NAME=VALUE.")
        labels[checked_text("--label", name.strip())] = checked_text(f"--label {name.strip()}", value)
    return labels


def checked_text(option: str, text: str | None) -> str:
    """What stands in lists and in the labels of machines: one line that people can read."""
    text = text or ""
    if len(text) > LONGEST or not text.isprintable():
        raise BadInput(
            f"{option} is {text[:40]!r}{'...' if len(text) > 40 else ''}.",
            remedy=f"Write at most {LONGEST} characters on one line, without control characters.",
        )
    return text


def job_name(words: Sequence[str]) -> str:
    stem = Path(_program(words)).stem[:LONGEST]
    return stem if stem and stem.isprintable() else "job"
