"""Stages of a pipeline that the plan puts on a service which is paid per use: their files are of the best machine of one's own,
and say so."""

from __future__ import annotations

from collections.abc import Iterable

from chipwise.planner.values.choice import Choice
from chipwise.planner.values.pipeline import Placed
from chipwise.renderer.deployment import Deployment, Service
from chipwise.renderer.file import CannotRender
from chipwise.text import usd


def stage_service(placed: Placed) -> Service:
    choice = placed.choice
    hardware = "" if choice.chip == "chip not stated" else choice.chip
    return Service(kind=choice.purchase, provider=choice.provider, name=choice.machine, hardware=hardware, usd=choice.usd)


def own_machine(placed: Placed) -> Choice:
    """What the stage would run on were there no such service."""
    if placed.plan.winner is None:
        choice = placed.choice
        raise CannotRender(
            f"Stage {placed.name} runs on {choice.provider} {choice.machine}, paid {choice.purchase}:"
            " no dedicated machine fits it.",
            remedy="Render the other stages one by one with --stage.",
        )
    return placed.plan.winner


def stage_notes(stages: Iterable[Deployment]) -> tuple[str, ...]:
    return tuple(_note(one, one.service) for one in stages if one.service is not None)


def _note(stage: Deployment, service: Service) -> str:
    machine = f"{stage.machines} x {stage.node.machine}, {usd(stage.predicted.usd)} a month"
    return (
        f"Stage {stage.title} takes {service.title}, paid {service.kind}: {usd(service.usd or 0.0)} a month."
        f" Its files describe the best machine, {machine}, if you prefer machines."
    )
