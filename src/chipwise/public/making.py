"""What a plan is made from, and what is made from it: the plan itself, deployment files, the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import BadInput, UnknownName
from chipwise.files.source import NamedText
from chipwise.public.calling import spoken
from chipwise.public.files import Files, RenderedFile
from chipwise.public.opened import Opened
from chipwise.public.records import Why, with_plain_names
from chipwise.public.workloads import Names
from chipwise.spelling import objective_hint

if TYPE_CHECKING:
    from chipwise.api.catalog.check import Checked
    from chipwise.planner.values.pipeline import PipelinePlan
    from chipwise.planner.values.plan import Plan as FullPlan


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked: planning it again gives the same plan."""

    path: str
    text: str
    environment: str | None = None
    objective: str | None = None
    top: int = 5
    mix: bool = False

    @property
    def source(self) -> NamedText:
        return NamedText(self.path, self.text)


def planned(session: Opened, request: Request) -> tuple[Checked, FullPlan | PipelinePlan]:
    """The plan with all of its candidates: remembered for a while, else made again."""
    from chipwise.api import verbs
    from chipwise.api.catalog.check import check
    from chipwise.planner.plan import refuse_pipeline
    from chipwise.planner.values.plan import Plan as FullPlan

    if (remembered := session.remembered(request)) is not None:
        answer: tuple[Checked, FullPlan | PipelinePlan] = remembered
        return answer
    if request.objective not in (None, "cost", "time", "carbon", "balanced"):
        hint = objective_hint(request.objective)
        raise BadInput(f"There is no objective {request.objective!r}.{hint}", remedy="Use cost, time, carbon or balanced.")
    if request.top < 1:
        raise BadInput(f"top={request.top} shows no choice.", remedy="Use 1 or more, or None for all.")
    api, source = session.api, request.source
    checked = check(api, source, request.environment)
    if request.mix:
        refuse_pipeline(checked.workload, source, ["mix"])
    full_plan = verbs.plan_any_checked(api, source, checked, request.objective, request.top)
    if request.mix and isinstance(full_plan, FullPlan):
        full_plan = replace(full_plan, mix=verbs.mix(api, source, request.environment))
    session.remember(request, (checked, full_plan))
    return checked, full_plan


def plan_view(full_plan: FullPlan | PipelinePlan) -> dict[str, Any]:
    """What `chipwise plan --json` prints."""
    from chipwise.planner.values.plan import Plan as FullPlan
    from chipwise.views.mix import mixed_view
    from chipwise.views.pipeline import pipeline_view
    from chipwise.views.plan import plan_view as view_of

    return view_of(full_plan) | mixed_view(full_plan) if isinstance(full_plan, FullPlan) else pipeline_view(full_plan)


def why_view(session: Opened, request: Request, name: Names) -> Why:
    """What `chipwise plan --why NAME --json` has under `why`; of several names those under `whys`, with the text of all."""
    names = [name] if isinstance(name, str) else list(name)
    if not names:
        raise BadInput("No name is given.", remedy='For example: plan.why("h100")')
    try:
        whys = [_reason(session, request, one) for one in names]
    except UnknownName:
        if not isinstance(name, str) or "," not in name:
            raise
        whys = [_reason(session, request, part.strip()) for part in name.split(",") if part.strip()]
    if len(whys) == 1:
        return whys[0]
    return Why({**whys[0], "text": [line for one in whys for line in one["text"]], "whys": whys})


def _reason(session: Opened, request: Request, name: str) -> Why:
    from chipwise.api import verbs
    from chipwise.planner.plan import refuse_pipeline
    from chipwise.planner.values.plan import Plan as FullPlan
    from chipwise.views.plan import why_view as view_of

    checked, full_plan = planned(session, request)
    if not isinstance(full_plan, FullPlan):
        refuse_pipeline(checked.workload, request.source, ["why"])
        raise AssertionError("a plan of several stages is of a pipeline")
    return Why(spoken(with_plain_names(view_of(verbs.why(session.api, full_plan, name), full_plan.per))))


def write_report(session: Opened, request: Request, path: Path, force: bool) -> Path:
    """One HTML page, of as many choices as it can filter."""
    from chipwise.api import report, verbs
    from chipwise.api.catalog.check import check
    from chipwise.planner.values.plan import Plan as FullPlan

    api, source = session.api, request.source
    report.check(path, source, force)
    checked = check(api, source, request.environment)
    full_plan = verbs.plan_any_checked(api, source, checked, request.objective, max(request.top, report.TOP), reported=True)
    if isinstance(full_plan, FullPlan):
        report.write(api, checked.workload, full_plan, path, force)
    else:
        report.write_pipeline(full_plan, path, api.today, force)
    return path


def rendered(
    session: Opened,
    source: NamedText,
    targets: Sequence[str],
    *,
    environment: str | None = None,
    objective: str | None = None,
    choice: int | None = None,
    stage: str | None = None,
    layout: str | None = None,
) -> Files:
    """Files of the workload's plan; several targets get a folder each."""
    from chipwise.api import render as rendering

    if not targets:
        raise BadInput("No target is named.", remedy=f"Use one of {', '.join(rendering.target_names())}.")
    notes: list[str] = []
    request = rendering.RenderRequest(environment=environment, objective=objective, rank=choice, stage=stage, layout=layout)
    files_by_target = rendering.render(session.api, source, tuple(dict.fromkeys(targets)), request, notes.append)
    files = [
        RenderedFile(target, f"{target}/{file.path}" if len(files_by_target) > 1 else file.path, file.text, file.executable)
        for target, files_of_target in files_by_target.items()
        for file in files_of_target
    ]
    return Files(tuple(files), tuple(notes))
