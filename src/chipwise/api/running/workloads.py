"""A workload file as jobs: one, or one for each stage of a pipeline, each after those that it takes from."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.running.submitting import new_id
from chipwise.api.workloads import check
from chipwise.errors import BadInput
from chipwise.run.job import Spec
from chipwise.workload.goals import Period
from chipwise.workload.kinds import Common
from chipwise.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

SERVES = ("serve", "stream", "interactive")  # kinds that run until somebody stops them


def specs_of(session: Session, path: str, environment: str | None, asked: Spec) -> list[tuple[str, Spec]]:
    """By id, which those that come after it name. `asked` holds what the command line says; the file says the rest."""
    work = check(session, path, environment).workload
    folder = str(Path(path).absolute().parent) if path != "-" else asked.folder
    asked = replace(asked, workload=path, folder=folder)
    if not isinstance(work, Pipeline):
        return [(new_id(work.name), _spec(work, asked, path))]
    found: dict[str, tuple[str, Spec]] = {}
    stages = {stage.name: stage for stage in work.stages}
    for name in work.order:
        before = tuple(found[giver][0] for giver, taker in work.edges if taker == name)
        spec = _spec(stages[name], asked, path)
        team, project = spec.team or work.labels.team or "", spec.project or work.labels.project or ""
        spec = replace(spec, name=f"{work.name}-{name}", after=(*asked.after, *before), team=team, project=project)
        found[name] = (new_id(spec.name), spec)
    return list(found.values())


def _spec(work: Common, asked: Spec, path: str) -> Spec:
    program = work.program
    if program is None or program.command is None:
        raise BadInput(
            f"{path}: {work.name} does not say what to run.", remedy="Add program: {command: [python, train.py]} to it."
        )
    goals, labels = work.goals, work.labels
    service = getattr(work, "kind", "") in SERVES
    deadline = None if goals.deadline is None else time.time() + goals.deadline
    if goals.finish_by is not None:
        deadline = goals.finish_by.timestamp()
    total = goals.budget.usd if goals.budget is not None and goals.budget.per is Period.TOTAL else None
    return replace(
        asked,
        command=program.command,
        name=work.name,
        service=service,
        env={**asked.env, **program.env},
        secrets={**program.secrets, **asked.secrets},
        owner=labels.owner or asked.owner,
        team=asked.team or labels.team or "",
        project=asked.project or labels.project or "",
        labels={**(labels.model_extra or {}), **asked.labels},
        checkpoints=asked.checkpoints or program.checkpoints or "",
        health=f"http://127.0.0.1:{program.port}{program.health}" if service and program.port and program.health else "",
        produces=program.produces or asked.produces,
        deadline=deadline,
        budget_usd=asked.budget_usd if asked.budget_usd is not None else total,
    )
