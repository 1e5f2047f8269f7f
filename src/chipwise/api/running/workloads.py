"""A workload file as jobs: one, or one for each stage of a pipeline, each after those that it takes from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.catalog.check import check
from chipwise.api.running.installed import runs_here, traits
from chipwise.api.running.predicting import with_prediction
from chipwise.api.running.submitting import new_id
from chipwise.errors import BadInput
from chipwise.runner.job import Spec
from chipwise.runner.submission.predicted import work_of
from chipwise.workload.goals import Period
from chipwise.workload.kinds import Common
from chipwise.workload.pipeline import Pipeline
from chipwise.workload.program import Program

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

IMAGE = "CHIPWISE_IMAGE"  # how a rented machine is told in which container a command runs
SERVES = ("serve", "stream", "interactive")  # kinds that run until somebody stops them


def specs_of(
    session: Session,
    path: str,
    environment: str | None,
    request: Callable[[str], Spec],
    title: str = "",
    text: str | None = None,
) -> list[tuple[str, str, Spec]]:
    """By id, which those that come after it name, and by stage, which is empty where there is one job. `request`: what the
    command line says of a stage; the file says the rest, and how it is called unless `title` does. `text` stands for
    the file."""
    work = check(session, path, environment, text=text).workload
    if not isinstance(work, Pipeline):
        only = _predicted(session, path, work, _spec(work, _at_home(request(""), path), path))
        return [(new_id(title or work.name), "", replace(only, name=title or work.name))]
    specs: dict[str, tuple[str, str, Spec]] = {}
    stages = {stage.name: stage for stage in work.stages}
    for name in work.order:
        before = tuple(specs[giver][0] for giver, taker in work.edges if taker == name)
        stage_spec = request(name)
        if stage_spec.produces:
            files = ", ".join(stage_spec.produces[:5])
            raise BadInput(
                f"--produces does not say which stage of {path} makes {files}.",
                remedy=f"Name it in the stage that makes it: program: {{produces: [{files}]}}.",
            )
        spec = _predicted(session, path, stages[name], _spec(stages[name], _at_home(stage_spec, path), path))
        team, project = spec.team or work.labels.team or "", spec.project or work.labels.project or ""
        pipeline = title or work.name
        spec = replace(
            spec, name=f"{pipeline}-{name}", pipeline=pipeline, after=(*stage_spec.after, *before), team=team, project=project
        )
        specs[name] = (new_id(spec.name), name, spec)
    return list(specs.values())


def _predicted(session: Session, path: str, work: Common, spec: Spec) -> Spec:
    """On other engines the plan tells what it will take."""
    spec = replace(spec, work=work_of(work))
    return with_prediction(session, path, work, spec) if runs_here(spec.engine) else spec


def _at_home(spec: Spec, path: str) -> Spec:
    """On this machine a program runs where its workload file lies."""
    is_local = runs_here(spec.engine) and path != "-"
    return replace(spec, workload=path, folder=str(Path(path).absolute().parent) if is_local else spec.folder)


def _spec(work: Common, requested: Spec, path: str) -> Spec:
    program = work.program or Program()
    if program.command is None and runs_here(requested.engine):  # elsewhere the rendered deployment has one
        raise BadInput(
            f"{path}: {work.name} does not say what to run.", remedy="Add program: {command: [python, train.py]} to it."
        )
    goals, labels = work.goals, work.labels
    if program.health and not program.port and runs_here(requested.engine):  # nobody would ever ask it
        raise BadInput(
            f"{path}: {work.name} has a health page and no port.", remedy="Add the port to its program: {port: 8000}."
        )
    service = getattr(work, "kind", "") in SERVES
    deadline = None if goals.deadline is None else time.time() + goals.deadline
    if goals.finish_by is not None:
        deadline = goals.finish_by.timestamp()
    total = goals.budget.usd if goals.budget is not None and goals.budget.per is Period.TOTAL else None
    return replace(
        requested,
        command=program.command or (),
        name=work.name,
        service=service,
        env={
            **({IMAGE: program.image} if program.image and traits(requested.engine).rents else {}),
            **requested.env,
            **program.env,
        },
        secrets={**program.secrets, **requested.secrets},
        owner=labels.owner or requested.owner,
        team=requested.team or labels.team or "",
        project=requested.project or labels.project or "",
        labels={**(labels.model_extra or {}), **requested.labels},
        checkpoints=requested.checkpoints or program.checkpoints or "",
        health=f"http://127.0.0.1:{program.port}{program.health}" if service and program.port and program.health else "",
        produces=tuple(dict.fromkeys((*program.produces, *requested.produces))),
        deadline=deadline,
        budget_usd=requested.budget_usd if requested.budget_usd is not None else total,
    )
