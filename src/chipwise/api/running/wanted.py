"""What was asked for, as what a job is: the options of `run`, the file where one is named, and where it is to run."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.adapters.engines.simulated import NAME as PLAYED
from chipwise.api.quick import Constraints, over_file
from chipwise.api.running import ranges, submitting
from chipwise.api.running.installed import DEFAULT, runs_here, traits
from chipwise.api.running.place import host_name, is_ours, this_place
from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput, NotAllowed
from chipwise.runner.abilities import BringsFolders, HasQueues
from chipwise.runner.job import RECOVER, MachinePlace, Needs, Retry, Spec
from chipwise.text import elapsed, spent
from chipwise.workload.source import NamedText

if TYPE_CHECKING:
    from chipwise.api.running.engines import Reach
    from chipwise.api.running.held import Runtime
    from chipwise.api.session.wiring import Session
    from chipwise.runner.engine import Engine
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
    checkpoints: str | None = None
    after: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    environment: str | None = None
    constraints: Constraints = field(default_factory=Constraints)  # of the plan of a workload, over what its file says
    text: str | None = None  # of the workload within them; None: the file as it is
    played: bool = False  # by a virtual clock: nothing is run, so nobody needs to say what


def with_text(session: Session, request: RunRequest) -> RunRequest:
    """With the text that stands for the file where constraints are given. Without --machine, --spot of a workload is one."""
    if request.is_command or not request.words or request.machine:
        if request.constraints:
            raise BadInput(
                "--cloud, --region, --chip, --on-demand and --limit are for the plan of a workload file.",
                remedy="Name the machine of a command with --machine, such as g5.xlarge.",
            )
        return request
    constraints = replace(request.constraints, spot=request.spot)
    if constraints and (request.engine is None or runs_here(request.engine)) and not request.stages and not request.played:
        raise BadInput(
            "--cloud, --region, --chip, --on-demand, --spot and --limit say which machines to rent, and this runs here.",
            remedy="Name another engine with --engine, add --simulate, or leave them out.",
        )
    return replace(request, spot=False, constraints=constraints, text=over_file(session, request.words[0], constraints))


def named_specs(session: Session, request: RunRequest, runtime: Runtime) -> list[tuple[str, Spec]]:
    """Jobs by id."""
    if request.is_command:
        if request.stages:
            raise BadInput("A command has no stages.", remedy="Take --engine NAME.")
        spec = _priced(session, _of_command(request, runtime, _aim(session, request, runtime, request.engine)))
        _check_budget(request, spec)
        return [(submitting.new_id(spec.name), spec)]
    if len(request.words) > 1:
        raise BadInput(f"{' '.join(request.words)[:80]!r} is more than one workload.", remedy="Write -- before a command.")
    from chipwise.api.running.workloads import specs_of

    engines = _stages(request.stages)
    aims = {name: _aim(session, request, runtime, name) for name in {request.engine, *engines.values()}}
    path = request.words[0]

    def rest(stage: str) -> Spec:
        return _of_command(replace(request, words=("true",)), runtime, aims[engines.pop(stage, request.engine)])

    wanted = dict(engines)
    try:
        stages = specs_of(session, path, request.environment, rest, request.name or "", request.text)
    except BadInput as error:
        if isinstance(path, NamedText) or path == "-" or path.endswith((".yaml", ".yml")) or Path(path).exists():
            raise
        hint = f"Before a command write --: chipwise run -- {path[:60]}."
        raise BadInput(error.message, remedy=" ".join(filter(None, (error.remedy, hint)))) from None
    stages = [(id, stage, _of_team(runtime.record, spec)) for id, stage, spec in stages]
    for _, _, spec in stages:
        _check_deadline(path, spec, time.time())
    if engines:
        names = ", ".join(stage for _, stage, _ in stages if stage) or "none"
        raise BadInput(f"{path} has no stage {', '.join(engines)}.", remedy=f"Its stages: {names}.")
    if request.machines is not None and not request.played:
        _check_elsewhere(aims[wanted.get(stage, request.engine)][0] for _, stage, _ in stages)
    specs = []
    for id, stage, spec in stages:
        reach = aims[wanted.get(stage, request.engine)][0]
        spec = _with_code(runtime, request, reach, spec, path)
        if not reach.is_local and request.machine:  # named, instead of planned
            spec = _bare(runtime, request, reach, spec)
        elif not reach.is_local:
            from chipwise.api.running import elsewhere

            queues = _queues(runtime, spec.place)
            spec = elsewhere.planned(
                session, path, request.environment, stage or None, spec, reach, queues, request.image or "", request.text
            )
        spec = _priced(session, spec)
        _check_budget(request, spec)
        specs.append((id, _as_login(spec, runtime.record.login)))
    return specs


def _with_code(runtime: Runtime, request: RunRequest, reach: Reach, spec: Spec, path: str) -> Spec:
    """Where no image is named that may hold the code of a workload, its folder goes along to a rented machine."""
    from chipwise.api.running.workloads import IMAGE

    image = request.image or spec.env.get(IMAGE) or reach.setting("container")
    brings = isinstance(runtime.elsewhere.get(spec.place), BringsFolders)
    if not brings or spec.folder or image or not spec.command or path == "-":
        return spec
    folder = Path(path).absolute().parent
    if folder in (Path.home(), Path(folder.anchor)):
        raise BadInput(
            f"{path} is in {folder}, and all of that folder would be uploaded as its code.",
            remedy="Put it and its code into a separate folder, or name one with --folder.",
        )
    return replace(spec, folder=str(folder))


def _check_elsewhere(reaches: Iterable[Reach]) -> None:
    if all(reach.is_local for reach in reaches):
        raise BadInput("This machine is one.", remedy="Leave --machines out, or take another engine.")


def _check_deadline(path: str, spec: Spec, now: float) -> None:
    """Only of one that is not submitted yet: one that runs goes on when its time has come, since late is better than never."""
    if spec.deadline is not None and spec.deadline <= now:
        moment, ago = datetime.fromtimestamp(spec.deadline, UTC), elapsed(now - spec.deadline)
        raise BadInput(
            f"{path}: {spec.name} is to be finished by {moment:%Y-%m-%d %H:%M} UTC, which is {ago} ago.",
            remedy="Give goals.finish_by a time that is still to come, or leave it out.",
        )


def _priced(session: Session, spec: Spec) -> Spec:
    """With what this machine costs by the user's catalog, where a budget is to be held."""
    if spec.budget_usd is None or spec.places or not runs_here(spec.engine):
        return spec
    from chipwise.api.running.predicting import own_price

    price = own_price(session, spec.needs)
    return spec if price is None else replace(spec, places=(MachinePlace(Purchase.OWNED, usd_per_hour=price),))


def _check_budget(request: RunRequest, spec: Spec) -> None:
    prices = [one.usd_per_hour for one in spec.places if one.usd_per_hour]
    if request.budget is not None and not traits(spec.engine).holds_budget and not prices:
        raise BadInput(
            f"The price of an hour of {spec.place} is not known, so --budget cannot be enforced.",
            remedy=f"Add this machine to the catalog by its name, {host_name()}, with its price (docs/adding/own-catalog.md); "
            "or use --longest.",
        )
    if spec.budget_usd is None or not prices:
        return
    hourly = min(prices) * spec.needs.fewest_machines
    leaving = hourly * spec.grace_s / 3600.0
    if leaving >= spec.budget_usd:  # it would be asked to leave before it does anything
        raise BadInput(
            f"{spec.name} may spend {spent(spec.budget_usd)}, and at {spent(hourly)} an hour the {spec.grace_s:g} s that it "
            f"has to save and leave cost {spent(leaving)} alone.",
            remedy=f"Raise the budget well above {spent(leaving)}, or give it less time to leave with --grace.",
        )


def _as_login(spec: Spec, login: str) -> Spec:
    """In a team's record nobody submits as somebody else; whom the file names is kept as a label."""
    if not login or spec.owner == login:
        return spec
    return replace(spec, owner=login, labels={"owner": spec.owner, **spec.labels})


def _of_team(record: Record, spec: Spec) -> Spec:
    """In a team's record a job belongs to a team of its owner, where there is one: else its lead would not see it."""
    teams = record.teams()
    if teams is None or spec.team in teams or not (teams or spec.team):
        return spec
    listed = ", ".join(sorted(teams))
    if spec.team:
        yours = f"Yours: {listed}; an" if teams else "An"
        add = f"chipwise members add {record.login} --team {shlex.quote(spec.team)}"
        raise NotAllowed(
            f"{record.login} is not in team {spec.team}.", remedy=f"{yours} admin of the record adds people with `{add}`."
        )
    if len(teams) > 1:
        raise BadInput(f"{record.login} is in several teams: {listed}.", remedy="Say for which it runs, with --team.")
    return replace(spec, team=listed)


def _stages(texts: Sequence[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in texts]
    for stage, equals, engine in pairs:
        if not (stage and equals and engine):
            raise BadInput(f"{stage[:60]!r} names no engine.", remedy="Write --stage-engine STAGE=ENGINE.")
    return {stage: engine for stage, _, engine in pairs}


def _aim(session: Session, request: RunRequest, runtime: Runtime, name: str | None) -> tuple[Reach, str]:
    """The engine that a name means, and its place."""
    from chipwise.api.running import engines

    options = {"context": request.context, "namespace": request.namespace, "queue": request.queue}
    overrides = {key: value for key, value in options.items() if value}
    kind = DEFAULT if name is None else engines.kind_of(session, name)
    if runs_here(kind):
        elsewhere = [*overrides, *(one for one in ("image", "machine", "spot") if getattr(request, one))]
        if elsewhere and not request.stages:
            raise BadInput(
                f"--{', --'.join(elsewhere)} does not apply to this machine.",
                remedy="Name another with --engine, or leave it out.",
            )
        own, site = engines.Reach(kind), this_place(session, kind)
        if site != runtime.engine.place:
            runtime.reaches[site] = own
        return own, site
    remote = engines.reach(session, name, overrides)
    engine = engines.connect(session, remote)
    runtime.elsewhere[engine.place], runtime.reaches[engine.place] = engine, remote
    return remote, engine.place


def _of_command(request: RunRequest, runtime: Runtime, aim: tuple[Reach, str]) -> Spec:
    reach, site = aim
    # What a person types at a terminal fails at once, so that they can mend it; a lost machine is made good all the same.
    retry = Retry(failures=0) if request.is_command else Retry()
    if request.retries is not None:
        retry = replace(retry, failures=request.retries, kills=request.retries)
    retry = replace(retry, no_machine_s=request.patience if request.patience is not None else retry.no_machine_s)
    folder = str((request.folder or Path.cwd()).absolute()) if reach.is_local else _folder(request, runtime.elsewhere[site])
    spec = Spec(
        command=request.words,
        name=_checked_text("--name", request.name) or _job_name(request.words),
        engine=PLAYED if request.played else reach.kind,
        place=site,
        folder=folder,
        # What is set on this machine means nothing on another.
        env=submitting.environment(request.settings, inherit=reach.is_local, same_user=is_ours(runtime.session)),
        secrets=submitting.secrets_of(request.secrets, is_local=reach.is_local),
        needs=_needs(request, reach),
        owner=runtime.record.login or submitting.submitter(),
        team=_checked_text("--team", request.team),
        project=_checked_text("--project", request.project),
        labels=_labels(request.labels),
        priority=request.priority,
        retry=retry,
        recover=ranges.moves(request.recover) if request.recover else RECOVER,
        grace_s=request.grace if request.grace is not None else 30.0,
        longest_s=request.longest,
        expected_s=request.expected,
        budget_usd=request.budget,
        checkpoints=request.checkpoints or "",
        after=tuple(_known(runtime, one) for one in request.after),
        produces=_produces(request.produces),
    )
    if not request.is_command:
        return spec
    spec = _of_team(runtime.record, spec)
    return spec if reach.is_local else _bare(runtime, request, reach, spec)


def _produces(paths: tuple[str, ...]) -> tuple[str, ...]:
    """As a workload may say it."""
    if paths:
        from chipwise.workload.program import wrong_files

        if wrong := wrong_files(paths):
            raise BadInput(f"--produces: {wrong[0]}.", remedy=f"Give {wrong[1]}.")
    return paths


def _folder(request: RunRequest, engine: Engine) -> str:
    """Of an image: as it is there. For rented machines: of this one, and sent to them, or of S3."""
    folder = str(request.folder or "")
    if not folder or not isinstance(engine, BringsFolders) or folder.startswith("s3:/"):
        return folder
    if not Path(folder).is_dir():
        raise BadInput(f"The folder {folder} is not there.", remedy="Give one that is with --folder.")
    return str(Path(folder).absolute())


def _needs(request: RunRequest, reach: Reach) -> Needs:
    gpus, gpus_least = ranges.workers(str(request.gpus), "--gpus") if request.gpus is not None else (0, None)
    machines: int = 1
    machines_least: int | None = None
    if request.machines is not None:
        text = str(request.machines)
        counts = ranges.workers(text, "--machines") if request.is_command else (1, ranges.minimum_workers(text, "--machines"))
        machines, machines_least = counts
    if machines < 1 or machines_least == 0:
        raise BadInput("A job needs a machine.", remedy="Write --machines 1 or more.")
    if reach.is_local and not request.is_command and not request.played:
        machines_least = None  # of a pipeline: this stage is on one machine, others may be on several
    if gpus_least is not None and not reach.is_local:
        raise BadInput(
            f"{reach.kind} gives each machine its GPUs whole.", remedy="Give a range of machines instead: --machines 2-4."
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


def _bare(runtime: Runtime, request: RunRequest, reach: Reach, spec: Spec) -> Spec:
    """A command without a workload: nobody planned it, so whoever asks says on what."""
    from chipwise.api.running import bare

    if traits(reach.kind).rents:
        from chipwise.api.running.elsewhere import market_of

        return bare.on_rented(runtime.session, spec, request.machine, request.spot, request.image or "", market_of(reach))
    if request.machine or request.spot:
        raise BadInput("Which machines a cluster has, its nodes say.", remedy="Leave --machine and --spot out.")
    queue = _queues(runtime, spec.place)(spec.team, reach.setting("queue"))
    return bare.on_cluster(spec, request.image or reach.setting("image"), queue, reach)


def _queues(held: Runtime, where: str) -> Callable[[str, str], str]:
    engine = held.elsewhere[where]
    return engine.queue_for if isinstance(engine, HasQueues) else lambda team, asked: asked


def _known(runtime: Runtime, text: str) -> str:
    from chipwise.api.running import jobs

    return jobs.find(runtime.record, text).id


def _program(words: Sequence[str]) -> str:
    """What a person would call it: the script rather than its interpreter."""
    for word in words[1:]:
        if word.endswith((".py", ".sh", ".jl", ".R")):
            return word
    return words[0]


def _labels(texts: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{text[:60]!r} is no label.", remedy="Write --label NAME=VALUE.")
        labels[_checked_text("--label", name.strip())] = _checked_text(f"--label {name.strip()}", value)
    return labels


def _checked_text(option: str, text: str | None) -> str:
    """What stands in lists and in the labels of machines: one line that people can read."""
    text = text or ""
    if len(text) > LONGEST or not text.isprintable():
        raise BadInput(
            f"{option} is {text[:40]!r}{'...' if len(text) > 40 else ''}.",
            remedy=f"Write at most {LONGEST} characters on one line, without control characters.",
        )
    return text


def _job_name(words: Sequence[str]) -> str:
    stem = Path(_program(words)).stem[:LONGEST]
    return stem if stem and stem.isprintable() else "job"


def values(secrets: Sequence[str]) -> dict[str, str]:
    """Secrets that are in the environment now and are kept nowhere else."""
    from chipwise.adapters.engines.local.logfile import refuse_short

    secret_values: dict[str, str] = {}
    for secret in secrets:
        name, equals, _ = secret.partition("=")
        if equals:
            continue
        if name not in os.environ:
            raise BadInput(
                f"The secret {name} is not set here.", remedy=f"Set it, or write --secret {name}=NAME/KEY of a stored one."
            )
        refuse_short(name, os.environ[name])
        secret_values[name] = os.environ[name]
    return secret_values
