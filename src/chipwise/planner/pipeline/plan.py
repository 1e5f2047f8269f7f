"""The verb `plan` for pipelines: every stage's candidates, chosen together with what moves between them.

Each stage is planned by itself under its own goals and the limits of both; all of its priced candidates then compete in
`plan/joint`. Jobs are paid once and services by the month. The whole takes as long as the longest way through its jobs; a
service ends its way when it is up. Where one number of USD or CO2e is needed, one month of the services is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.errors import BadInput
from chipwise.planner.ground import check_moment, running_s
from chipwise.planner.pipeline.case import Case, assumptions
from chipwise.planner.pipeline.hand_offs import flows_of
from chipwise.planner.pipeline.joint import Wanted, single_region, solve
from chipwise.planner.pipeline.limits import joined_limits
from chipwise.planner.pipeline.services import services_of
from chipwise.planner.single import plan_work
from chipwise.planner.values.pipeline import Excluded, Lack, PipelinePlan
from chipwise.planner.values.plan import Plan
from chipwise.workload.common import Common
from chipwise.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from chipwise.catalog.feed import Report
    from chipwise.predictor.known import Known


def plan_pipeline(
    known: Known,
    path: str,
    work: Pipeline,
    objective: str | None = None,
    notes: Sequence[str] = (),
    reported: bool = False,
    progress: Report | None = None,
) -> PipelinePlan:
    """A workload that was checked. Nothing fits is a result: `lacks` says of which stage, or that it is the whole. `reported`:
    with what a report lists besides, which takes a few searches more. `progress` is told of each stage that was planned."""
    check_moment(known, work)
    aim = objective or str(work.goals.objective)
    order = _stages(known, work)
    flows = flows_of(work, order)
    plans: list[Plan] = []
    for stage in order:
        plans.append(_planned(known, path, stage))
        if progress is not None:
            progress(len(plans), len(order), stage.name)
    considered = sum(one.counts.considered for one in plans)
    remarks = (*assumptions(work, order, plans, flows), *notes)
    offered = services_of(known, path, order, flows, plans, aim)
    lacks = [
        Lack(stage.name, missing)
        for stage, plan, services in zip(order, plans, offered, strict=True)
        if (plan.rows is None or not plan.rows.kept) and not services
        for missing in plan.missing
    ]
    budget = work.goals.budget
    wanted = Wanted(aim, running_s(known, work), None if budget is None else budget.usd)
    case = None if lacks else Case.of(known, work, plans, order, flows, offered, wanted, complete=reported)
    free = None if case is None else case.settled(solve, replace(case.wanted, quotas=()))
    crowded = case.excess(free) if case is not None and free is not None else None
    joint = case.settled(solve) if case is not None and crowded else free
    if case is None or joint is None:
        return PipelinePlan(
            workload=work.name,
            objective=aim,
            stages=(),
            hand_offs=(),
            totals=None,
            alone=None,
            one_region=None,
            lacks=tuple(lacks if case is None else case.lacks()),
            considered=considered,
            notes=remarks,
        )
    alone, together = case.each_alone(), case.settled(single_region)
    single = None if together is None else case.alternative(together)
    joint, near_ties = case.preferred(joint)
    refused = (Excluded(case.summary(free), crowded),) if crowded is not None and free is not None else ()
    case = case.wide()
    remarks += tuple(f"{one.name}: {', '.join(one.assumed)}." for one in case.placed(joint, alone) if one.assumed)
    answer = PipelinePlan(
        workload=work.name,
        objective=aim,
        stages=case.placed(joint, alone),
        hand_offs=case.moved(joint),
        totals=case.totals(joint),
        alone=case.alternative(alone),
        one_region=single,
        lacks=(),
        considered=considered,
        notes=remarks,
        refused=refused,
        near_ties=near_ties,
    )
    if reported:
        from chipwise.planner.pipeline.rivals import with_rivals

        return with_rivals(case, joint, answer)
    return answer


def _stages(known: Known, work: Pipeline) -> list[Common]:
    """In the order of hand-offs, under the limits of both and as sure as the whole. What takes from nobody reads the pipeline's
    data, if any."""
    by_name = {stage.name: stage for stage in work.stages}
    taking = {taker for _, taker in work.edges}
    stages: list[Common] = []
    for name in work.order:
        stage: Common = by_name[name]
        changed: dict[str, Any] = {"limits": joined_limits(known, work.limits, stage.limits, name)}
        if work.goals.confidence is not None and stage.goals.confidence is None:
            changed["goals"] = stage.goals.model_copy(update={"confidence": work.goals.confidence})
        if work.data is not None and stage.data is None and name not in taking:
            changed["data"] = work.data
        stages.append(stage.model_copy(update=changed))
    return stages


def _planned(known: Known, path: str, stage: Common) -> Plan:
    """All candidates of a stage. By "balanced", because a plan by cost leaves out numbers of machines that are only faster."""
    try:
        return plan_work(known, path, stage, "balanced", 1, per_use=False)
    except BadInput as error:
        raise BadInput(f"Stage {stage.name}: {error.message}", remedy=error.remedy) from error
