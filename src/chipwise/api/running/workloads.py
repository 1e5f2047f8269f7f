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
from chipwise.runner.submission.workload import spec_of
from chipwise.workload.common import Common
from chipwise.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


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
        only = _predicted(session, path, work, _spec(work, request(""), path))
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
        spec = _predicted(session, path, stages[name], _spec(stages[name], stage_spec, path))
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


def _spec(work: Common, requested: Spec, path: str) -> Spec:
    """On this machine a program runs where its workload file lies."""
    is_local, rents = runs_here(requested.engine), traits(requested.engine).rents
    folder = str(Path(path).absolute().parent) if is_local and path != "-" else requested.folder
    at_home = replace(requested, workload=path, folder=folder)
    return spec_of(work, at_home, path, is_local=is_local, rents=rents, now=time.time())
