"""The verb `plan`: from a workload to a ranked, explained and priced choice of hardware.

What only some kinds need loads where it is used: a cold start pays for every module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.api import planning_kinds
from chipwise.api.plan_asked import asked_of
from chipwise.api.plan_ground import check_moment, with_limits_told
from chipwise.api.plan_rules import rules_of
from chipwise.api.workloads import Checked, check
from chipwise.errors import BadInput
from chipwise.money.carbon import Grids, Making
from chipwise.plan.asking import answers
from chipwise.plan.decision import Emitted, Plan, Service, unstated
from chipwise.plan.greening import emitted
from chipwise.plan.headroom import headroom
from chipwise.workload.kinds import Batch, Common, Hpc, Interactive, Learning, Serve

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

TOP = 10


def plan(
    session: Session,
    path: str,
    objective: str | None = None,
    top: int = TOP,
    environment: str | None = None,
    text: str | None = None,
) -> Plan:
    """`objective` over the file's own. A file with mistakes is told as `check` tells it; `text` stands for the file."""
    return plan_checked(session, path, check(session, path, environment, text=text), objective, top)


def plan_checked(session: Session, path: str, checked: Checked, objective: str | None = None, top: int = TOP) -> Plan:
    """Of a file that was read already, with what is worth knowing of it."""
    found = plan_work(session, path, checked.workload, objective, top)
    return replace(found, notes=(*found.notes, *checked.notes))


def plan_work(session: Session, path: str, work: Common, objective: str | None, top: int, per_use: bool = True) -> Plan:
    """A workload that was checked, such as a stage of a pipeline; without `per_use` only machines are looked at."""
    check_moment(session, work)
    goes_on = isinstance(work, Serve | Interactive)
    if goes_on:
        from chipwise.api.planning_load import with_load, with_recording

        work = with_recording(session, work, path)
    rules = rules_of(session, work.limits)
    if planning_kinds.handles(session, path, work):
        found = planning_kinds.plan_other(session, path, work, rules, objective, top)
    elif isinstance(work, Learning):
        from chipwise.api.planning_learning import plan_learning

        found = plan_learning(session, path, work, objective, top)
    elif isinstance(work, Serve | Batch):
        from chipwise.api.planning_generation import plan_generation

        found = plan_generation(session, path, work, objective, top)
    else:
        kind = getattr(work, "kind", "this kind")
        raise BadInput(
            f"A {kind} has no single answer: its stages run on hardware of their own.",
            remedy=f"chipwise plan {path} plans it as a whole; a file with one of its stages can be asked for here.",
        )
    found = _with_networks_told(work, with_limits_told(session, work, rules, found))
    if goes_on:
        found = with_load(session, path, work, found)
    if per_use and isinstance(work, Serve) and not work.devices and work.arrival.rate is not None:
        found = replace(found, services=_services(session, work, found, path))
    asked = asked_of(session, work, found.per)
    found = replace(found, turns=(*found.turns, *headroom(found, asked)))
    return replace(found, answers=answers(found, asked), emitted=_emitted(session, found))


def _with_networks_told(work: Common, plan: Plan) -> Plan:
    """Machines whose network nobody states are not joined: told of jobs that may take several, and where nothing is left."""
    if plan.winner is None and not plan.missing:
        from chipwise.plan.missing import not_joined

        return replace(plan, missing=(not_joined(),))
    width = plan.winner.split.get("tp", 1) * plan.winner.split.get("pp", 1) if plan.winner is not None else 1
    across = isinstance(work, Learning | Hpc) or (plan.winner is not None and width > plan.winner.chips)
    alone = unstated(plan.rows) if across and plan.rows is not None else 0
    if not alone:
        return plan
    told = f"{alone:,} machine types were tried one at a time only: nobody states the network between such machines."
    return replace(plan, notes=(*plan.notes, told))


def _emitted(session: Session, found: Plan) -> Emitted | None:
    making, grids = ("plan", "making"), ("plan", "grids")
    if making not in session.resolved:
        session.resolved[making] = Making(session.catalog.rows("embodied"))
        session.resolved[grids] = Grids(session.catalog.regions, session.catalog.rows("energy"))
    return emitted(found, session.resolved[making], session.resolved[grids])


def _services(session: Session, work: Serve, found: Plan, path: str) -> tuple[Service, ...]:
    """What can be paid per use instead. A model that no service runs, or that none is known of, has none."""
    from chipwise.api.planning_services import services_for

    offers = services_for(session, work, found.winner or (), path)
    return tuple(
        Service(
            one.kind,
            one.provider,
            one.service,
            one.hardware,
            one.usd or 0.0,
            one.cold_share,
            one.told_break_even or "",
            tuple(one.assumed),
            tuple(one.refused),
            one.start_s,
            one.chips,
            one.warm_instances,
            one.concurrency,
            one.instances,
        )
        for one in offers
        if one.cost is not None
    )
