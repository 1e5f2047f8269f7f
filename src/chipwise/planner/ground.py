"""What plans of every kind stand on: the market beside the offers, what may be spent, and the data that must be fed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import ChipKind
from chipwise.catalog.offer import PURCHASES
from chipwise.countries import place_name
from chipwise.errors import BadInput
from chipwise.money.carbon import Grids, Making
from chipwise.money.hosts import HostShare, host_shares
from chipwise.money.interruption import Rates
from chipwise.money.storage import Tiers
from chipwise.money.transfer import Gravity
from chipwise.perf.arrays import Array
from chipwise.perf.feeding import tiers
from chipwise.planner import quotas
from chipwise.planner.case import Goals, Stored
from chipwise.planner.defaults import HORIZON_S, most_machines, ported_kinds
from chipwise.planner.failures import Failures
from chipwise.planner.fleet import Fleet, Index, fleet_of
from chipwise.planner.limits import COMMITTED_YEARS, Rules
from chipwise.planner.offer_prices import offer_prices
from chipwise.planner.pricing import Market
from chipwise.planner.values.plan import Plan
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.kinds.goals import stretch, time_limits
from chipwise.predictor.known import parts_of
from chipwise.units import DAY, HOUR, MONTH, YEAR
from chipwise.workload.common import Common
from chipwise.workload.data import Access
from chipwise.workload.goals import Commit, Period
from chipwise.workload.kinds import Batch, Learning, Render, Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

PERIODS = {Period.HOUR: HOUR, Period.DAY: DAY, Period.MONTH: MONTH, Period.YEAR: YEAR}  # in seconds; TOTAL has none


@dataclass(frozen=True, slots=True)
class PlanGround:
    """What every plan of a session stands on."""

    fleet: Fleet
    market: Market
    tiers: Tiers


def market_of(fleet: Fleet, today: date) -> Market:
    catalog = fleet.catalog
    return Market(
        fleet=fleet,
        rates=catalog.derived("rates", lambda: Rates(catalog.rows("interruptions"), catalog.machines)),
        gravity=gravity_of(catalog),
        grids=grids_of(catalog),
        prices=offer_prices(catalog, today),
        failures=catalog.derived("failures", lambda: Failures(catalog.rows("failures"))),
        making=catalog.derived("making by the hour", lambda: _making_by_hour(catalog)),
    )


def making_of(catalog: Catalog) -> Making:
    return catalog.derived("making", lambda: Making(catalog.rows("embodied")))


def hosts_of(catalog: Catalog) -> tuple[HostShare, ...]:
    """Of the machines of the catalog, in their order."""
    return catalog.derived("hosts", lambda: host_shares(catalog.machines))


def _making_by_hour(catalog: Catalog) -> Array:
    making = making_of(catalog)
    seen: dict[tuple[str | None, float | None, float | None, float], float] = {}
    hourly, hosts = np.zeros(len(catalog.machines)), hosts_of(catalog)
    for at, machine in enumerate(catalog.machines):
        key = (machine.chip, machine.chips, machine.memory_bytes, hosts[at].share)
        if key not in seen:
            chip = catalog.chips.get(machine.chip or "")
            seen[key] = 0.0 if chip is None else making.hourly_kg(chip, machine.chips or 1.0, machine.memory_bytes, hosts[at])
        hourly[at] = seen[key]
    return hourly


def gravity_of(catalog: Catalog) -> Gravity:
    def gravity() -> Gravity:
        own = {region.provider for region in catalog.regions if region.on_site}
        return Gravity(catalog.rows("storage"), catalog.regions, own)

    return catalog.derived("gravity", gravity)


def grids_of(catalog: Catalog) -> Grids:
    return catalog.derived("grids", lambda: Grids(catalog.regions, catalog.rows("energy")))


def tiers_of(catalog: Catalog) -> Tiers:
    return catalog.derived("tiers", lambda: Tiers(catalog.rows("storage"), tiers()))


def budget_usd(work: Common, monthly: bool) -> float | None:
    """Of the job or, where a month is planned, of a month. None also where a job has a budget per hour, day, month or year:
    that limits how fast money is spent, not how much (`goals_of`)."""
    budget = work.goals.budget
    if budget is None:
        return None
    seconds = PERIODS.get(budget.per)
    if not monthly:
        return budget.usd if seconds is None else None
    return budget.usd if seconds is None else budget.usd * MONTH / seconds


def goals_of(known: Known, work: Common, rules: Rules, objective: str, deadline_s: float | None, monthly: bool) -> Goals:
    """What every choice must keep. Of a job, a budget per period is kept in every period of its run; what goes on for a month
    has its rate in `arrival`, so a throughput is a goal of jobs alone."""
    budget, count = work.goals.budget, None if monthly else items_of(work)
    period = PERIODS.get(budget.per) if budget is not None and not monthly else None
    return Goals(
        objective,
        deadline_s,
        budget.usd if budget is not None and period is not None else budget_usd(work, monthly),
        math.inf if period is None else period,
        work.goals.throughput if count is not None else None,
        *(count or (0.0, "item")),
        rules=rules,
        confidence=work.goals.sure_share,
        sure_enough=work.goals.sure_enough,
        stated=work.goals.confidence is not None,
        least_replicas=(work.replicas.min or 1) if isinstance(work, Serve) else 1,
        horizon_s=HORIZON_S if not monthly and deadline_s is None and work.goals.throughput is None else None,
        most_machines=most_machines(work, monthly),
        native=ported_kinds(work, partial(_is_processor, known)),
    )


def items_of(work: Common) -> tuple[float, str] | None:
    """What a throughput counts, and how many there are in all; None: the kind has none."""
    match work:
        case Learning(tokens=float() | int() as tokens):
            return tokens * work.epochs, "token"
        case Learning(samples=float() | int() as samples):
            return samples * work.epochs, "sample"
        case Batch():
            return float(work.items), "item"
        case Render():
            return float(work.frames), "frame"
    return None


def slowest_s(work: Common) -> float | None:
    """Seconds in which a job must be done to reach its throughput."""
    count = items_of(work)
    return None if count is None or work.goals.throughput is None else count[0] / work.goals.throughput


def running_s(known: Known, work: Common) -> float | None:
    """Seconds of running until it must be done; a schedule that pauses leaves fewer of them."""
    limits = [limit for _, limit in time_limits(Ask(known, "", "", {}), work)]
    return min(limits) / stretch(work) if limits else None


def check_moment(known: Known, work: Common) -> None:
    """`finish_by` counts from the start of today, in UTC: a moment before is no deadline but a mistake."""
    moment = work.goals.finish_by
    if moment is not None and moment <= datetime.combine(known.today, time(), UTC):
        raise BadInput(
            f"goals.finish_by: {moment.isoformat(timespec='minutes')} is past; today is {known.today}.",
            remedy="Give a moment to come, such as 2027-03-31T18:00+02:00, or a deadline such as 72h.",
        )


def with_limits_told(known: Known, work: Common, rules: Rules, plan: Plan) -> Plan:
    """What limits left to say of a plan: quotas, doubts about what must run, and goals that nothing was held against."""
    plan = quotas.with_quota_notes(plan, rules)
    warnings = [*_compliance_notes(rules, plan), *_place_notes(rules, plan)]
    plan = replace(plan, without_terms=_without_terms(known.catalog, work, plan))
    notes: list[str] = []
    if plan.winner is not None:
        chip = plan.winner.catalog_chip
        notes += [f"Not sure: {one.doubts[chip]}" for one in rules.requires if chip in one.doubts]
    if work.goals.finish_by is not None and plan.per == "job":
        notes.append(f"goals.finish_by is counted from the start of {known.today}, UTC.")
    if plan.per == "month":
        ends = [name for name in ("deadline", "finish_by") if getattr(work.goals, name) is not None]
        notes += [f"goals.{name} is ignored: this runs without an end." for name in ends]
    if work.goals.throughput is not None and plan.per == "month" and not (isinstance(work, Serve) and work.input_tokens):
        notes.append("goals.throughput is ignored here: arrival says how much must be done.")
    elif work.goals.throughput is not None and plan.per == "job" and items_of(work) is None:
        notes.append("goals.throughput is ignored: this kind counts no items. Give a deadline instead.")
    return replace(plan, notes=(*warnings, *plan.notes, *notes))


def _without_terms(catalog: Catalog, work: Common, plan: Plan) -> str:
    """Where a commitment was allowed, and the catalog has none to choose of the provider or of the machine."""
    winner = plan.winner
    if work.limits.commit in (None, Commit.NONE) or winner is None or winner.purchase in (*COMMITTED_YEARS, "owned"):
        return ""
    offers = catalog.offers
    machine = np.frombuffer(offers.machine, dtype=np.int32)
    terms = np.array([one in COMMITTED_YEARS for one in PURCHASES])[np.frombuffer(offers.purchase, dtype=np.int8)]
    committed = [catalog.machines[at] for at in np.unique(machine[terms]).tolist()]
    if any(one.key == (winner.provider, winner.machine) for one in committed):
        return ""
    own = any(one.provider == winner.provider for one in committed)
    return f"{winner.provider} {winner.machine}" if own else winner.provider


def _compliance_notes(rules: Rules, plan: Plan) -> list[str]:
    """What no data says of the winner's provider, and how far reaches what it states."""
    if plan.winner is None:
        return []
    provider, notes = plan.winner.provider, []
    for programme, known in rules.unproven.items():
        if not known:
            notes.append(
                f"Not checked: the catalog has no data on {programme}, of any provider. Ask {provider} for its report."
            )
        elif provider not in known:
            taking_part = ", ".join(sorted(known))
            silent = f"no data says whether {provider} takes part in {programme}"
            notes.append(f"Not checked: {silent}; known to: {taking_part}. Ask it first.")
    stated = [name for name, known in {**(rules.compliant or {}), **rules.unproven}.items() if provider in known]
    if stated:
        listed = " and ".join(stated)
        notes.append(f"{provider} states {listed} for the whole provider: check that the machine and region are in scope.")
    return notes


def _place_notes(rules: Rules, plan: Plan) -> list[str]:
    """What avoiding China leaves."""
    sentences = []
    if "CHN" in rules.avoided_countries and plan.winner is not None and plan.winner.country in ("HKG", "MAC"):
        name = place_name(plan.winner.country)
        sentences.append(f"China is avoided, and {name} has a code of its own: avoid it too if you mean it.")
    return sentences


def stored(tiers: Tiers, work: Common, units: float) -> Stored | None:
    """The workload's data, if it names any, over so many units of work."""
    data = work.data
    if data is None:
        return None
    passes = float(getattr(work, "epochs", 1.0)) if data.access is Access.EPOCHS else 1.0
    return Stored(
        tiers=tiers,
        size_bytes=data.read_bytes,
        bytes_per_unit=data.read_bytes * passes / max(units, 1e-9),
        passes=passes,
        files=data.files,
    )


def ground_for(known: Known, wide: bool = False) -> PlanGround:
    """`wide`: with processors and slices of chips, which serve small models and train none."""
    name = f"{'wide ground' if wide else 'ground'} of {known.today}"
    if known.parts is parts_of(known.catalog):
        return known.catalog.derived(name, lambda: _lay_ground(known, wide))
    ground = known.memo.get(("plan", name))
    if ground is None:
        ground = known.memo["plan", name] = _lay_ground(known, wide)
    result: PlanGround = ground
    return result


def _lay_ground(known: Known, wide: bool) -> PlanGround:
    catalog = known.catalog
    fleet = fleet_of(catalog, known.parts, wide)
    return PlanGround(fleet, market_of(fleet, known.today), tiers_of(catalog))


def _is_processor(known: Known, name: str) -> bool:
    chips = known.names.chips_or_none(name)
    return bool(chips) and all(chip.kind is ChipKind.CPU for chip in chips or ())


def asked_goals(known: Known, work: Common, rules: Rules, objective: str | None, per_month: bool) -> Goals:
    deadline = None if per_month else running_s(known, work)
    return goals_of(known, work, rules, objective or str(work.goals.objective), deadline, per_month)


def shapes_offered(fleet: Fleet, offers: Index) -> Index:
    """Each once. (`np.unique` alone would import what 25 ms of a cold start go into.)"""
    shape = fleet.shape_of[np.frombuffer(fleet.catalog.offers.machine, dtype=np.int32)[offers]]
    return np.flatnonzero(np.bincount(shape, minlength=len(fleet.shapes)))
