"""A workload, or one stage of a pipeline, as a job."""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import BadInput
from chipwise.runner.job import Spec
from chipwise.workload.common import Common
from chipwise.workload.goals import Period
from chipwise.workload.program import Program

IMAGE = "CHIPWISE_IMAGE"  # how a rented machine is told in which container a command runs
SERVES = ("serve", "stream", "interactive")  # kinds that run until somebody stops them


def spec_of(work: Common, requested: Spec, path: str, *, is_local: bool, rents: bool, now: float) -> Spec:
    """What the file says over what the command line did. `rents`: its engine rents machines, and gets the image by its name."""
    program = work.program or Program()
    if program.command is None and is_local:  # elsewhere the rendered deployment has one
        remedy = "Add program: {command: [python, train.py]} to it."
        if getattr(work, "kind", "") == "serve":
            remedy = f"`chipwise serve {path}` serves its model here, and `chipwise render {path}` writes its deployment."
        raise BadInput(f"{path}: {work.name} does not say what to run.", remedy=remedy)
    goals, labels = work.goals, work.labels
    if program.health and not program.port and is_local:  # nobody would ever ask it
        raise BadInput(
            f"{path}: {work.name} has a health page and no port.", remedy="Add the port to its program: {port: 8000}."
        )
    service = getattr(work, "kind", "") in SERVES
    deadline = None if goals.deadline is None else now + goals.deadline
    if goals.finish_by is not None:
        deadline = goals.finish_by.timestamp()
    total = goals.budget.usd if goals.budget is not None and goals.budget.per is Period.TOTAL else None
    return replace(
        requested,
        command=program.command or (),
        name=work.name,
        service=service,
        env={
            **({IMAGE: program.image} if program.image and rents else {}),
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
