"""What was asked for, as what a job is: the options of `run`, the file where one is named, and where it is to run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.adapters.engines.simulated import NAME as PLAYED
from chipwise.api.running import submitting
from chipwise.api.running.installed import DEFAULT, package, runs_here, traits
from chipwise.api.running.place import is_ours, this_place
from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput
from chipwise.files.source import NamedText
from chipwise.planner.options import over_file
from chipwise.runner.abilities import AppliesObjects, BringsFolders, HasQueues
from chipwise.runner.job import RECOVER, MachinePlace, Retry, Spec
from chipwise.runner.submission import ranges
from chipwise.runner.submission.request import RunRequest as RunRequest
from chipwise.runner.submission.request import (
    as_login,
    check_budget,
    check_deadline,
    checked_text,
    job_name,
    labels_of,
    needs_of,
    of_team,
    produces_of,
    stage_engines,
)
from chipwise.runner.submission.workload import IMAGE

if TYPE_CHECKING:
    from chipwise.api.running.engines import Reach
    from chipwise.api.running.held import Runtime
    from chipwise.api.session.wiring import Session
    from chipwise.runner.engine import Engine


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
    return replace(request, spot=False, constraints=constraints, text=over_file(session.names, request.words[0], constraints))


def named_specs(session: Session, request: RunRequest, runtime: Runtime) -> list[tuple[str, Spec]]:
    """Jobs by id."""
    if request.is_command:
        if request.stages:
            raise BadInput("A command has no stages.", remedy="Use --engine NAME.")
        spec = _priced(session, _of_command(request, runtime, _aim(session, request, runtime, request.engine)))
        _check_budget(request, spec)
        return [(submitting.new_id(spec.name), spec)]
    if len(request.words) > 1:
        raise BadInput(f"{' '.join(request.words)[:80]!r} is more than one workload.", remedy="Write -- before a command.")
    from chipwise.api.running.workloads import specs_of

    engines = stage_engines(request.stages)
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
    stages = [(id, stage, of_team(runtime.record, spec)) for id, stage, spec in stages]
    for _, _, spec in stages:
        check_deadline(path, spec, time.time())
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
        specs.append((id, as_login(spec, runtime.record.login)))
    return specs


def _check_budget(request: RunRequest, spec: Spec) -> None:
    from chipwise.adapters.this_machine import host_name

    check_budget(request, spec, holds_budget=traits(spec.engine).holds_budget, host=host_name())


def _with_code(runtime: Runtime, request: RunRequest, reach: Reach, spec: Spec, path: str) -> Spec:
    """Where no image is named that may hold the code of a workload, its folder goes along to a rented machine."""
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


def _priced(session: Session, spec: Spec) -> Spec:
    """With what this machine costs by the user's catalog, where a budget is to be held."""
    if spec.budget_usd is None or spec.places or not runs_here(spec.engine):
        return spec
    from chipwise.api.running.predicting import own_price

    price = own_price(session, spec.needs)
    return spec if price is None else replace(spec, places=(MachinePlace(Purchase.OWNED, usd_per_hour=price),))


def _policy(name: str | None) -> str:
    """Its name, if there is such a spot policy. The controller looks it up, so a file of one's own would not do."""
    if name is None:
        return ""
    from chipwise.scale.policy_files import spot_policy

    if name.endswith(".py"):
        raise BadInput(f"--policy {name}: run takes policies by name.", remedy="chipwise policies lists them.")
    spot_policy(name)
    return name


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
        name=checked_text("--name", request.name) or job_name(request.words),
        engine=PLAYED if request.played else reach.kind,
        place=site,
        folder=folder,
        # What is set on this machine means nothing on another.
        env=submitting.environment(request.settings, inherit=reach.is_local, same_user=is_ours(runtime.session)),
        secrets=submitting.secrets_of(request.secrets, is_local=reach.is_local),
        needs=needs_of(request, reach.kind, is_local=reach.is_local),
        owner=runtime.record.login or submitting.submitter(),
        team=checked_text("--team", request.team),
        project=checked_text("--project", request.project),
        labels=labels_of(request.labels),
        priority=request.priority,
        retry=retry,
        recover=ranges.moves(request.recover) if request.recover else RECOVER,
        grace_s=request.grace if request.grace is not None else 30.0,
        longest_s=request.longest,
        expected_s=request.expected,
        budget_usd=request.budget,
        policy=_policy(request.policy),
        checkpoints=request.checkpoints or "",
        after=tuple(_known(runtime, one) for one in request.after),
        produces=produces_of(request.produces),
    )
    if not request.is_command:
        return spec
    spec = of_team(runtime.record, spec)
    return spec if reach.is_local else _bare(runtime, request, reach, spec)


def _folder(request: RunRequest, engine: Engine) -> str:
    """Of an image: as it is there. For rented machines: of this one, and sent to them, or of S3."""
    folder = str(request.folder or "")
    if not folder or not isinstance(engine, BringsFolders) or folder.startswith("s3:/"):
        return folder
    if not Path(folder).is_dir():
        raise BadInput(f"The folder {folder} does not exist.", remedy="Give an existing one with --folder.")
    return str(Path(folder).absolute())


def _bare(runtime: Runtime, request: RunRequest, reach: Reach, spec: Spec) -> Spec:
    """A command without a workload: nobody planned it, so whoever asks says on what."""
    if traits(reach.kind).rents:
        from chipwise.api.running.elsewhere import market_of
        from chipwise.runner.submission.machines_by_name import on_rented

        return on_rented(runtime.session.known, spec, request.machine, request.spot, request.image or "", market_of(reach))
    if request.machine or request.spot:
        raise BadInput("A cluster runs jobs on its own nodes.", remedy="Leave --machine and --spot out.")
    queue = _queues(runtime, spec.place)(spec.team, reach.setting("queue"))
    kind, image = package(reach.kind), request.image or reach.setting("image")
    return replace(spec, objects=tuple(kind.plain_objects(spec, image, queue))) if isinstance(kind, AppliesObjects) else spec


def _queues(held: Runtime, where: str) -> Callable[[str, str], str]:
    engine = held.elsewhere[where]
    return engine.queue_for if isinstance(engine, HasQueues) else lambda team, asked: asked


def _known(runtime: Runtime, text: str) -> str:
    from chipwise.api.running import jobs

    return jobs.find(runtime.record, text).id


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
