"""The verb `render`: a workload, its plan and a target give files. Nothing outside is asked; nothing is written but files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from chipwise.api.catalog.check import check
from chipwise.api.verbs import plan_any_checked
from chipwise.errors import BadInput, UnknownName
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.planner.values.plan import Plan
from chipwise.renderer.chosen import SERVERLESS, cheaper_lines, choice_of, nothing_to_render, sold_choice, stage_of
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.describing import describe
from chipwise.renderer.describing_pipelines import describe_pipeline
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.layouts.laying import LAYOUTS, lay_out
from chipwise.renderer.left_out import with_notes
from chipwise.renderer.named_targets import files as files
from chipwise.renderer.named_targets import fits as fits
from chipwise.renderer.named_targets import target as target
from chipwise.renderer.named_targets import target_names as target_names
from chipwise.spelling import nearest
from chipwise.workload.common import UNKNOWN_MODEL, Common
from chipwise.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.workload.model.registry import Model

SEARCHED_CHOICES = 50  # choices among which alternatives for a fleet are sought


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What to render: which of the plan's choices, which stage of a pipeline."""

    environment: str | None = None
    text: str | None = None  # stands for the file
    objective: str | None = None
    rank: int | None = None  # None: the plan's first, or a cheaper service where the target writes it
    stage: str | None = None
    out: Path | None = None  # where files are to go, which is looked at before anything is planned
    force: bool = False
    layout: str | None = None  # kustomize, helm: all environments of the file in one tree


def deployment_of(session: Session, path: str, request: RenderRequest | None = None) -> Deployment:
    """Plans the workload and says what is to be deployed."""
    request = request or RenderRequest()
    work, plan = _planned(session, path, request, ())
    return deployment_from(session, work, plan, request)


def _planned(session: Session, path: str, request: RenderRequest, names: Sequence[str]) -> tuple[Common, Plan | PipelinePlan]:
    checked = check(session, path, request.environment, text=request.text)
    if request.out is not None:
        check_out(request.out, names, checked.workload, request.force)
    return checked.workload, plan_any_checked(
        session, path, checked, request.objective, max(request.rank or 1, SEARCHED_CHOICES)
    )


def deployment_from(
    session: Session, work: Common, plan: Plan | PipelinePlan, request: RenderRequest | None = None, name: str = ""
) -> Deployment:
    """What a plan that is there already deploys, by the target of that name."""
    request = request or RenderRequest()
    if isinstance(plan, Plan):
        if request.stage is not None:
            raise BadInput(f"{work.name} is no pipeline, so it has no stage {request.stage!r}.", remedy="Leave --stage out.")
        sold = sold_choice(plan) if name == SERVERLESS and request.rank is None else None
        return describe(work, plan, session.catalog, _model(session, work), sold or choice_of(plan, request.rank or 1))
    if not plan.fits:
        raise nothing_to_render(plan.workload)
    assert isinstance(work, Pipeline)
    models = {stage.name: _model(session, stage) for stage in work.stages}
    deployment = describe_pipeline(work, plan, session.catalog, models)
    return deployment if request.stage is None else stage_of(deployment, request.stage)


def render(
    session: Session,
    path: str,
    names: Sequence[str],
    request: RenderRequest | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[str, list[File]]:
    """Files by target. Raises where one of them cannot express the plan: then no file is made. `tell` hears where
    something is cheaper than what is written."""
    modules = {name: target(name) for name in names}  # an unknown name is told before anything is planned
    request = request or RenderRequest()
    if request.layout is not None:
        return _laid_out(session, path, modules, request, request.layout)
    work, plan = _planned(session, path, request, names)
    if tell is not None and request.rank is None and isinstance(plan, Plan) and plan.service and plan.winner:
        for line in cheaper_lines(plan.service, plan.winner, names, plan.per):
            tell(line)
    return {name: files(name, module, deployment_from(session, work, plan, request, name)) for name, module in modules.items()}


def _laid_out(
    session: Session, path: str, modules: Mapping[str, ModuleType], request: RenderRequest, layout: str
) -> dict[str, list[File]]:
    """Every environment planned by itself; what is named as the request's own is what the others are laid over."""
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, nearest(layout, LAYOUTS), known=LAYOUTS)
    for name, module in modules.items():
        if not getattr(module, "MANIFESTS", False):
            able = [one for one in target_names() if getattr(target(one), "MANIFESTS", False)]
            raise CannotRender(
                f"{name} writes no manifests of a cluster, so there is nothing to lay out.",
                remedy=f"Leave --layout out, or use one of {', '.join(able)}.",
            )
    known = check(session, path, request.environment, text=request.text)
    environments_asked = dict.fromkeys((request.environment, *known.parsed.environments))
    planned = {name: _planned(session, path, replace(request, environment=name, out=None), ()) for name in environments_asked}
    by_target: dict[str, list[File]] = {}
    for name, module in modules.items():
        deployments = {one: deployment_from(session, *planned[one], request, name) for one in environments_asked}
        environments = {one: deployments[one] for one in known.parsed.environments}
        other_targets = [one for one in modules if one != name]
        defaults = deployments[request.environment]
        noted = partial(with_notes, expresses=getattr(module, "EXPRESSES", ()))
        by_target[name] = lay_out(layout, partial(files, name, module), defaults, environments, name, other_targets, noted)
    return by_target


def render_plan(session: Session, work: Common, found: Plan | PipelinePlan, names: Sequence[str]) -> dict[str, list[File]]:
    """As `render`, of a plan that is there already."""
    return {name: files(name, target(name), deployment_from(session, work, found, name=name)) for name in names}


def fitting(session: Session, path: str, request: RenderRequest | None = None) -> dict[str, list[File] | str]:
    """Every target: its files, or why it cannot express the plan."""
    try:
        deployment = deployment_of(session, path, request)
    except CannotRender as error:  # nothing that we know runs it there: all targets lack the same
        return {name: str(error) for name in target_names()}
    results: dict[str, list[File] | str] = {}
    for name in target_names():
        try:
            results[name] = files(name, target(name), deployment)
        except CannotRender as error:
            results[name] = str(error)
    return results


def check_out(folder: Path, names: Sequence[str], work: Common | None = None, force: bool = False) -> None:
    """Tells what stands in the way of writing there, as far as it is known before there is a plan: without the workload whether
    it can be written to, with it also which of the files are there that every target of these writes."""
    from chipwise.adapters.stores import whole_set

    whole_set.check(folder)
    if work is None or force or isinstance(work, Pipeline):
        return
    has_folders = len(set(names)) > 1
    sure = [f"{name}/{path}" if has_folders else path for name in names for path in getattr(target(name), "WRITES", ())]
    whole_set.refuse(folder, sure, force)


def write(folder: Path, rendered: dict[str, list[File]], force: bool = False) -> list[str]:
    """All files or none. Several targets get a directory each."""
    from chipwise.adapters.stores import whole_set

    has_folders = len(rendered) > 1
    outputs = [
        replace(file, path=f"{name}/{file.path}") if has_folders else file for name, made in rendered.items() for file in made
    ]
    whole_set.check(folder)
    whole_set.write(folder, [(file.path, file.text, file.executable) for file in outputs], force)
    return [file.path for file in outputs]


def _model(session: Session, work: Common) -> Model | None:
    """A model by name; one that is described inline has no name that could be fetched."""
    name = getattr(work, "model", None)
    return session.find_model(name) if isinstance(name, str) and name != UNKNOWN_MODEL else None
