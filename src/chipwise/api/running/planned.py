"""Jobs on the machines of their plan, for who plays them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chipwise.api.catalog.check import check
from chipwise.api.verbs import plan_any_checked
from chipwise.errors import BadInput
from chipwise.planner.values.plan import Plan
from chipwise.runner.job import Spec
from chipwise.runner.submission.machines_of_plan import Planned as Planned
from chipwise.runner.submission.machines_of_plan import jobs_placed, stages_placed
from chipwise.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

SEARCHED_CHOICES = 50


def with_plan(session: Session, path: str, environment: str | None, spec: Spec, now: float) -> Spec:
    """Of one workload, which is no pipeline."""
    if isinstance(check(session, path, environment).workload, Pipeline):
        raise BadInput(f"{path} is a pipeline, whose stages are planned together.", remedy="Give one stage as a workload.")
    return with_plans(session, path, environment, [("", spec)], now).specs[0][1]


def with_plans(
    session: Session,
    path: str,
    environment: str | None,
    specs: Sequence[tuple[str, Spec]],
    now: float,
    text: str | None = None,
) -> Planned:
    """Each job on the first choice of its plan, then on others that do the same, spot and not. The stages of a pipeline are
    planned together, and each runs on its own machines. `text` stands for the file."""
    checked = check(session, path, environment, text=text)
    plan = plan_any_checked(session, path, checked, None, SEARCHED_CHOICES)
    if not isinstance(plan, Plan):
        return stages_placed(plan, path, specs)
    goals = checked.workload.goals
    deadline = now + goals.deadline if goals.deadline is not None else None
    return jobs_placed(plan, path, specs, goals.finish_by.timestamp() if goals.finish_by is not None else deadline)
