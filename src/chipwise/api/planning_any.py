"""The verb `plan` for whatever a file holds: one workload, or a pipeline of them, whose code is loaded only then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chipwise.api.planning import TOP, plan_checked
from chipwise.api.workloads import Checked, check
from chipwise.errors import BadInput
from chipwise.plan.decision import Plan
from chipwise.workload.pipeline import Pipeline, Workload

if TYPE_CHECKING:
    from chipwise.api.wiring import Session
    from chipwise.plan.pipeline import PipelinePlan


def plan_any(
    session: Session,
    path: str,
    objective: str | None = None,
    top: int = TOP,
    environment: str | None = None,
    text: str | None = None,
) -> Plan | PipelinePlan:
    """What `plan` gives; of a pipeline its stages, planned together."""
    return plan_any_checked(session, path, check(session, path, environment, text=text), objective, top)


def plan_any_checked(
    session: Session, path: str, checked: Checked, objective: str | None = None, top: int = TOP, reported: bool = False
) -> Plan | PipelinePlan:
    """Of a file that was read already: whoever needs the workload besides its plan reads it once. `reported`: of a pipeline
    also what its report lists."""
    if isinstance(checked.workload, Pipeline):
        from chipwise.api.planning_pipelines import plan_pipeline

        return plan_pipeline(session, path, checked.workload, objective, checked.notes, reported)
    return plan_checked(session, path, checked, objective, top)


def refuse_pipeline(work: Workload, path: str, options: Sequence[str]) -> None:
    """Raises for a pipeline, before anything is planned: what was asked for is of one workload."""
    if isinstance(work, Pipeline):
        kinds = ", ".join(f"{stage.name} ({stage.kind})" for stage in work.stages)
        raise BadInput(
            f"{', '.join(options)} tells of one workload, and {path} is a pipeline.",
            remedy=f"Put one of its stages into a file of its own and ask for that: {kinds}.",
        )
