"""Plans whatever a file holds: one workload, or a pipeline of them, whose code is loaded only then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.planner.defaults import TOP
from chipwise.planner.single import plan_work
from chipwise.planner.values.plan import Plan
from chipwise.workload.pipeline import Pipeline, Workload

if TYPE_CHECKING:
    from chipwise.catalog.feed import Report
    from chipwise.planner.values.pipeline import PipelinePlan
    from chipwise.predictor.known import Known


def plan_workload(
    known: Known,
    path: str,
    work: Workload,
    objective: str | None = None,
    top: int = TOP,
    notes: Sequence[str] = (),
    reported: bool = False,
    progress: Report | None = None,
) -> Plan | PipelinePlan:
    """`objective` over the file's own; `notes` are what reading the file showed; `reported`: of a pipeline also what its report
    lists; `progress` is told of its stages. `path` is what messages call the workload, and where relative names in it start."""
    if isinstance(work, Pipeline):
        from chipwise.planner.pipeline.plan import plan_pipeline

        return plan_pipeline(known, path, work, objective, notes, reported, progress)
    plan = plan_work(known, path, work, objective, top)
    return replace(plan, notes=(*plan.notes, *notes))


def refuse_pipeline(work: Workload, path: str, options: Sequence[str]) -> None:
    """Raises for a pipeline, before anything is planned: what was asked for is of one workload."""
    if isinstance(work, Pipeline):
        kinds = ", ".join(f"{stage.name} ({stage.kind})" for stage in work.stages)
        raise BadInput(
            f"{', '.join(options)} is for a single workload, and {path} is a pipeline.",
            remedy=f"Put one of its stages into a separate file and plan that: {kinds}.",
        )
