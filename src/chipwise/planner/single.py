"""One workload to a ranked, explained and priced choice of hardware.

What only some kinds need loads where it is used: a cold start pays for every module.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.planner import kinds as planning_kinds
from chipwise.planner.explain.asked import asked_of
from chipwise.planner.explain.asking import answers
from chipwise.planner.explain.greening import emitted
from chipwise.planner.explain.headroom import headroom
from chipwise.planner.explain.turning import turns
from chipwise.planner.ground import budget_usd, check_moment, grids_of, hosts_of, making_of, with_limits_told
from chipwise.planner.lifting import without_limits
from chipwise.planner.more_chips import with_chips_told
from chipwise.planner.moving import with_moving_told, with_sizes
from chipwise.planner.reasons.goals import OverBudget
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.rules import rules_of
from chipwise.planner.values.plan import Emitted, Plan, Service, unstated
from chipwise.planner.values.split import width
from chipwise.text import amount, plural, usd
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Hpc, Interactive, Learning, Serve, Transcode

if TYPE_CHECKING:
    from chipwise.planner.services.offer import ServiceOffer
    from chipwise.planner.values.choice import Choice
    from chipwise.predictor.known import Known


def plan_work(known: Known, path: str, work: Common, objective: str | None, top: int, per_use: bool = True) -> Plan:
    """A workload that was checked, such as a stage of a pipeline; without `per_use` only machines are looked at."""
    check_moment(known, work)
    work, volume = with_sizes(known, path, work)
    goes_on = isinstance(work, Serve | Interactive)
    if goes_on:
        from chipwise.planner.load.plan import with_load, with_recording

        work = with_recording(known, work, path)
    carried_notes: tuple[str, ...] = ()
    if work.measured:
        from chipwise.predictor.anchoring import carried_over

        carried = carried_over(known, path, work)
        known, carried_notes = carried.known, carried.notes
    per_use = per_use and not work.is_unknown  # what services take nobody can tell then
    rules = rules_of(known, work.limits)
    work, plan = _nearest(known, path, work, objective, top)
    plan = replace(plan, turns=(*turns(plan), *plan.turns))
    plan = _with_networks_told(work, with_limits_told(known, work, rules, plan))
    if goes_on and not work.is_unknown:
        plan = with_load(known, path, work, plan)
    if per_use and isinstance(work, Serve) and not work.devices and work.arrival.rate is not None:
        plan = replace(plan, services=_services(known, work, plan, path), notes=(*plan.notes, *_unsold(known, work)))
    if per_use and isinstance(work, Batch) and work.output_tokens is not None:
        from chipwise.planner.services.tokens import tokens_of_job

        offers = tokens_of_job(known, work, path)
        plan = replace(plan, services=_services_of(known, offers, plan), notes=(*plan.notes, *_unsold(known, work)))
    if per_use and isinstance(work, Transcode):
        from chipwise.planner.services.media import live_note, media_services

        if work.duration is None:
            plan = replace(plan, notes=(*plan.notes, live_note(known)))
        else:
            plan = replace(plan, services=media_services(known, work, work.duration, plan.winner))
    plan = replace(plan, services=_affordable(plan.services, budget_usd(work, plan.per == "month")))
    if per_use:
        plan = with_moving_told(known, work, volume, plan)
    targets = asked_of(known, work, plan.per)
    if plan.load is not None and targets.rate is not None:  # machines are counted for the peak
        targets = replace(targets, rate=plan.load.peak)
    plan = replace(plan, turns=(*plan.turns, *headroom(plan, targets)))

    def freed(kinds: Iterable[RuleKind]) -> Plan | None:
        freer = without_limits(work, kinds)
        return None if freer is None else _nearest(known, path, freer, objective, 1)[1]

    return replace(
        plan,
        rows=None if plan.rows is None else replace(plan.rows, grounds=replace(plan.rows.grounds, freed=freed)),
        answers=answers(plan, targets),
        confidence=targets.confidence,
        confidence_stated=targets.stated,
        emitted=_emitted(known, plan),
        notes=(*carried_notes, *plan.notes),
    )


def _nearest(known: Known, path: str, work: Common, objective: str | None, top: int) -> tuple[Common, Plan]:
    """The plan as near to the users as something fits, and the workload that says so."""

    def planned(trial: Common) -> Plan:
        first = _planned(known, path, trial, objective, top)
        return with_chips_told(first, trial, lambda freed: _planned(known, path, freed, objective, top))

    if not work.traffic:
        return work, planned(work)
    from chipwise.planner.load.regions import distance_notes, nearer_first

    for trial in nearer_first(known, work, rules_of(known, work.limits)):
        plan = planned(trial)
        if plan.winner is not None:
            break
    return trial, replace(plan, notes=(*distance_notes(trial, plan), *plan.notes))


def _planned(known: Known, path: str, work: Common, objective: str | None, top: int) -> Plan:
    if planning_kinds.handles(known, path, work):
        return planning_kinds.plan_other(known, path, work, rules_of(known, work.limits), objective, top)
    if isinstance(work, Learning):
        from chipwise.planner.training.plan import plan_learning

        return plan_learning(known, path, work, objective, top)
    if isinstance(work, Serve | Batch):
        from chipwise.planner.generation.plan import plan_generation

        return plan_generation(known, path, work, objective, top)
    kind = getattr(work, "kind", "this kind")
    raise BadInput(
        f"A {kind} has no single answer: each of its stages runs on different hardware.",
        remedy=f"chipwise plan {path} plans it as a whole; a file with one of its stages can be asked for here.",
    )


def _with_networks_told(work: Common, plan: Plan) -> Plan:
    """Machines whose network nobody states are not joined: told of jobs that may take several, and where nothing is left."""
    if plan.winner is None and not plan.missing:
        from chipwise.planner.missing import not_joined

        return replace(plan, missing=(not_joined(),))
    spread = isinstance(work, Learning | Hpc) or (plan.winner is not None and width(plan.winner.split) > plan.winner.chips)
    alone = unstated(plan.rows) if spread and plan.rows is not None else 0
    if not alone:
        return plan
    types = f"{plural(alone, 'machine type')} {'was' if alone == 1 else 'were'}"
    note = f"{types} tried as a single machine only: how fast several of them are connected is not published."
    return replace(plan, notes=(*plan.notes, note))


def _emitted(known: Known, plan: Plan) -> Emitted | None:
    catalog = known.catalog
    return emitted(plan, making_of(catalog), grids_of(catalog), hosts_of(plan.rows.fleet.catalog if plan.rows else catalog))


def _unsold(known: Known, work: Serve | Batch) -> tuple[str, ...]:
    from chipwise.planner.services.tokens import unsold_note

    return unsold_note(known, work)


def _affordable(services: tuple[Service, ...], budget: float | None) -> tuple[Service, ...]:
    """With a refusal of those above the budget; they come last."""
    if budget is None:
        return services
    checked = [
        replace(one, refused=(*one.refused, OverBudget(one.usd, budget))) if one.usd > budget else one for one in services
    ]
    return tuple(sorted(checked, key=lambda one: bool(one.refused)))


def _break_even(offer: ServiceOffer, plan: Plan) -> str:
    """When machines cost less, of as many as are allowed. Where none does: in which formats both were compared, and what a
    narrower one costs."""
    crossing, winner = offer.told_break_even or "", plan.winner
    if winner is None or offer.break_even is None or offer.break_even.first is not None or offer.cold_start_s is not None:
        return crossing
    own_format = offer.precision or "a number format that is not stated"
    formats = f" (machines in {winner.precision}, the service in {own_format})" if offer.precision != winner.precision else ""
    narrow = next((one.choice for one in plan.alternatives if one.kind is RuleKind.PRECISION), None)
    cheaper = ""
    if narrow is not None and narrow.precision != winner.precision:
        less = ", less than the service" if narrow.usd < (offer.usd or 0.0) else ""
        cheaper = (
            f"; in {narrow.precision} {narrow.provider} {narrow.machine}, {narrow.purchase}, costs {usd(narrow.usd)}{less}"
        )
    return f"{crossing}{formats}{cheaper}"


def _within_limit(offer: ServiceOffer, winner: Choice | None, most_chips: int | None) -> ServiceOffer:
    """Its break-even among as many machines as limits.chip_count allows."""
    crossing, planned = offer.break_even, None if winner is None else winner.planned or winner.rate
    if winner is None or crossing is None or crossing.first is None or planned is None or most_chips is None:
        return offer
    highest = planned / winner.machines * max(most_chips // winner.chips, 1)
    if crossing.first > highest:
        carry = f"{'carries' if most_chips == 1 else 'carry'} {amount(highest)} requests a second"
        carried = f"the {plural(most_chips, 'chip')} of limits.chip_count.max {carry}"
        return replace(offer, break_even=replace(crossing, first=None, always=None, why=f"{carried}, and more would be needed"))
    lasting = crossing.always if crossing.always is not None and crossing.always <= highest else None
    return replace(offer, break_even=replace(crossing, always=lasting))


def _services(known: Known, work: Serve, plan: Plan, path: str) -> tuple[Service, ...]:
    """What can be paid per use instead. A model that no service runs, or that none is known of, has none."""
    from chipwise.planner.services.offers import services_for

    most_chips = work.limits.chip_count.max
    offers = [_within_limit(one, plan.winner, most_chips) for one in services_for(known, work, plan.winner or (), path)]
    return _services_of(known, offers, plan)


def _services_of(known: Known, offers: Iterable[ServiceOffer], plan: Plan) -> tuple[Service, ...]:
    from chipwise.planner.offer_prices import service_range
    from chipwise.planner.services.offer import PER_TOKEN

    return tuple(
        Service(
            kind=offer.kind,
            provider=offer.provider,
            name=offer.service,
            hardware=offer.hardware,
            usd=offer.usd or 0.0,
            cold_share=offer.cold_share,
            break_even=_break_even(offer, plan),
            assumed=tuple(offer.assumed),
            refused=tuple(offer.refused),
            cold_start_s=offer.start_s,
            chips=offer.chips,
            warm=offer.warm_instances,
            at_once=offer.concurrency,
            instances=offer.instances,
            price_of=offer.price_of,
            price_days=offer.price_days,
            price_range=service_range(known.catalog, offer.provider, offer.price_days),
            unchecked=offer.unchecked,
            certain=offer.certain,
            retires=offer.retires,
            format_known=offer.kind != PER_TOKEN or offer.precision is not None,
            format_doubted=offer.format_doubted,
        )
        for offer in offers
        if offer.cost is not None
    )
