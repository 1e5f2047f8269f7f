"""Which of a plan's choices files are made of, and what is said where something else is cheaper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from chipwise.errors import BadInput, NoResult, UnknownName
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan, Service
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.sold import WRITERS, writer
from chipwise.spelling import nearest
from chipwise.text import spent

SERVERLESS = "serverless"  # the target of services that are paid per use


def cheaper_lines(service: Service, best: Choice, names: Sequence[str], per: str) -> Iterator[str]:
    """What is cheaper than the plan's machines: that is not to be missed."""
    if WRITERS.get(service.name) == SERVERLESS and set(names) == {SERVERLESS}:
        return
    paid = {"per token": "by the token", "per hour": "by the hour"}.get(service.kind, "per use")
    hardware = f" ({service.hardware})" if service.hardware else ""
    hint = writer(service.kind, service.name)
    if set(names) != {SERVERLESS}:  # files of another service have its own price in their heading
        yield f"The plan takes {best.machines} x {best.where}, {spent(best.usd)} a {per}; --choice 1 says that this is meant."
    yield f"Cheaper still is {service.title}{hardware}, paid {paid}: {spent(service.usd)} a {per}. {hint}"


def sold_choice(plan: Plan) -> Choice | None:
    """The best machine with the chip of the serverless service that is cheaper: files of the service are made from it."""
    service, rows = plan.service, plan.rows
    if service is None or WRITERS.get(service.name) != SERVERLESS or rows is None:
        return None
    machines = rows.fleet.catalog.machines
    alike = [
        machine.provider == service.provider and ((machine.chip or "") in service.chips if service.chips else not machine.chips)
        for machine in machines
    ]
    ranked = rows.ranked[: rows.kept]
    indices = np.flatnonzero(np.array(alike, dtype=bool)[rows.priced.machine[ranked]])
    return rows.choice(int(ranked[indices[0]])) if len(indices) else None


def choice_of(plan: Plan, rank: int) -> Choice:
    if plan.winner is None:
        raise nothing_to_render(plan.workload)
    if rank > len(plan.choices):
        raise BadInput(
            f"There are {len(plan.choices)} choices, and number {rank} was asked for.", remedy="Use a smaller --choice."
        )
    return plan.choices[rank - 1]


def nothing_to_render(workload: str) -> NoResult:
    return NoResult(
        "There is no plan, so there is nothing to render.", remedy=f"chipwise plan says what was missing for {workload}."
    )


def stage_of(deployment: Deployment, name: str) -> Deployment:
    known = {one.title: one for one in deployment.stages}
    if name not in known:
        raise UnknownName("stage", name, nearest(name, known))
    return known[name]
