"""What is to be deployed of a pipeline: each of its stages as it would be alone, and what they hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.catalog.catalog import Catalog
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.renderer.deployment import Deployment, Form, HandOff
from chipwise.renderer.describing import describe, labels_of
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.handing import arrives_at
from chipwise.renderer.launch.weights import handed_repository, repository_note
from chipwise.renderer.paying_stages import own_machine, stage_notes, stage_service
from chipwise.renderer.quoting import dns_name
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Learning, Serve
from chipwise.workload.model.registry import Model as Known
from chipwise.workload.pipeline import Pipeline


def describe_pipeline(work: Pipeline, plan: PipelinePlan, catalog: Catalog, models: Mapping[str, Known | None]) -> Deployment:
    """Its own node is that of the stage that costs most; each stage has its own."""
    assert plan.totals is not None
    _named_apart(work)
    stages = {stage.name: stage for stage in work.stages}
    deployments = []
    for placed in plan.stages:
        stage = stages[placed.name]
        inherited = stage.model_copy(
            update={"labels": stage.labels if stage.labels.model_dump(exclude_none=True) else work.labels}
        )
        name = dns_name(f"{work.name}-{placed.name}", 50)
        choice = own_machine(placed) if placed.per_use else placed.choice
        described = describe(inherited, placed.plan, catalog, models.get(placed.name), choice, name, _teacher(work, stage))
        described = _handed(described, [giver for giver, taker in work.edges if taker == stage.name])
        used = stage_service(placed) if placed.per_use else None
        deployments.append(replace(described, title=placed.name, namespace=dns_name(work.name), service=used))
    dearest = max(deployments, key=lambda one: one.predicted.usd)
    formats = {(one.source, one.to): one.format or "" for one in work.hand_offs}
    return replace(
        dearest,
        name=dns_name(work.name),
        title=work.name,
        kind="pipeline",
        form=Form.PIPELINE,
        labels=labels_of(work),
        description=work.description or "",
        stages=tuple(deployments),
        scaling=None,
        volumes=(),
        notes=(*plan.notes, *stage_notes(deployments)),
        layers=(),
        services=(),
        service=None,
        hand_offs=tuple(
            HandOff(one.source, one.to, one.size_bytes, formats.get((one.source, one.to), "")) for one in plan.hand_offs
        ),
        predicted=replace(
            dearest.predicted,
            seconds=plan.totals.seconds,
            low_s=plan.totals.seconds,
            high_s=plan.totals.seconds,
            usd=plan.totals.usd,
            kg=plan.totals.kg,
            per="pipeline",
            sentence="",
            latency={},
        ),
    )


def _handed(stage: Deployment, givers: list[str]) -> Deployment:
    """What Triton serves comes from the stage before it, where that is one: nobody else fills a volume in between."""
    software, model = stage.software, stage.model
    if software.engine != "triton" or software.is_custom or model is None or len(givers) != 1:
        return stage
    handed = handed_repository(software, arrives_at(givers[0]))
    before, after = repository_note(software, model), repository_note(handed, model)
    notes = tuple(f"Stage {givers[0]} writes what is served. {after}" if one == before else one for one in stage.notes)
    volumes = tuple(one for one in stage.volumes if one.name != "models")
    return replace(stage, software=handed, notes=notes, volumes=volumes)


def _teacher(work: Pipeline, stage: Common) -> Learning | None:
    """The stage that hands a serving or working stage the model that it trained."""
    givers = [giver for giver, taker in work.edges if taker == stage.name]
    teachers = (one for one in work.stages if one.name in givers and isinstance(one, Learning))
    return next(teachers, None) if isinstance(stage, Serve | Batch) else None


def _named_apart(work: Pipeline) -> None:
    """Clusters and clouds know small letters, digits and dashes: two stages must not become one there."""
    seen: dict[str, str] = {}
    for stage in work.stages:
        label = dns_name(stage.name)
        if (earlier := seen.setdefault(label, stage.name)) != stage.name:
            raise CannotRender(
                f"The stages {earlier!r} and {stage.name!r} would have one name in files and clusters, {label}.",
                remedy="Give stages[].name another word or number, not only other signs or capitals.",
            )
