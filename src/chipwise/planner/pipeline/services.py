"""Services paid by use as candidates of a stage that serves: those that a plan of the stage alone would offer.

What a service emits is not known, so that it takes part only where cost decides, as in a plan of the stage alone. A service
that sells a model by the token sells the published weights: it is none for a stage that serves what the pipeline has trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.planner.ground import budget_usd
from chipwise.planner.pipeline.hand_offs import Flow, Place
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import UNSPLIT
from chipwise.units import MONTH
from chipwise.workload.common import Common
from chipwise.workload.kinds import Learning, Serve

if TYPE_CHECKING:
    from chipwise.planner.services.offer import ServiceOffer
    from chipwise.predictor.known import Known

UNSTATED = "an unstated region"


@dataclass(frozen=True, slots=True)
class Offered:
    """A service that may be used, as a choice. Where its region is not stated the place has none."""

    choice: Choice
    place: Place
    ready_s: float  # until it is up: at once by the token, after a first start where it runs our container
    assumed: tuple[str, ...]


def services_of(
    known: Known, path: str, order: Sequence[Common], flows: Sequence[Flow], plans: Sequence[Plan], objective: str
) -> list[tuple[Offered, ...]]:
    """Of every stage, the cheapest first."""
    if objective != "cost":
        return [() for _ in order]
    return [tuple(_offered(known, path, order, flows, plans[at], at)) for at in range(len(order))]


def _offered(known: Known, path: str, order: Sequence[Common], flows: Sequence[Flow], plan: Plan, index: int) -> list[Offered]:
    work = order[index]
    if not isinstance(work, Serve) or work.devices:
        return []
    from chipwise.planner.load.plan import with_recording
    from chipwise.planner.services.offer import PER_TOKEN
    from chipwise.planner.services.offers import services_for

    work = with_recording(known, work, path)
    if work.arrival.rate is None:
        return []
    budget = budget_usd(work, monthly=True)
    trained = any(isinstance(order[one], Learning) for one in _before(flows, index))
    able = [
        offer
        for offer in services_for(known, work, (), path)
        if offer.allowed
        and offer.usd is not None
        and (budget is None or offer.usd <= budget)
        and not (trained and offer.kind == PER_TOKEN)
    ]
    sure = [one for one in able if one.is_sure]  # what is doubtful counts only where nothing else does it
    return [_as_choice(one, plan) for one in sure or (able if plan.winner is None else [])]


def _before(flows: Sequence[Flow], index: int) -> set[int]:
    """Stages from which a way leads to this one."""
    sources: set[int] = set()
    new = {index}
    while new := {flow.giver for flow in flows if flow.taker in new} - sources:
        sources |= new
    return sources


def _as_choice(service: ServiceOffer, plan: Plan) -> Offered:
    assert service.cost is not None
    winner, rows = plan.winner, plan.rows
    units, unit = (rows.units, winner.unit) if rows is not None and winner is not None else (1.0, "months")
    start = service.cold_start_s
    name = service.service.removeprefix(f"{service.provider} ")
    notes = [] if service.region else [f"where {service.provider} runs it is not stated: hand-offs count it as another region"]
    choice = Choice(
        provider=service.provider,
        machine=name if name != service.provider else service.model,
        region=service.region or UNSTATED,
        country=None,
        chip=" or ".join(service.chips) or service.hardware or "chip not stated",
        family=service.kind,
        chips=0,
        machines=1,
        purchase=service.kind,
        precision=service.precision or "",
        split=UNSPLIT,
        seconds=MONTH,
        low_s=MONTH,
        high_s=MONTH,
        p90_s=MONTH,
        cost=service.cost,
        usd_per_unit=service.cost.usd / max(units, 1e-9),
        unit=unit,
        kg=0.0,
        rate=None,
        replicas=None,
        memory_share=None,
        provenance="price list",
        price_of=service.price_of,
        price_days=service.price_days,
        latency={f"{held.goal} p{held.percentile:g}": held.predicted_s for held in service.goals},
    )
    ready = 0.0 if start is None else start.middle
    return Offered(choice, (service.provider, service.region), ready, (*notes, *service.unchecked, *service.assumed))
