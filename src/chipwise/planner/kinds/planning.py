"""Ways on machines, whatever the work: held against offers, limits and goals, priced, and put together as a plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.power import power
from chipwise.planner.assemble import assemble
from chipwise.planner.case import Described, Following, PlanningCase
from chipwise.planner.fleet import Fleet
from chipwise.planner.ground import goals_of, stored
from chipwise.planner.limits import Rules, lacks_own_machines
from chipwise.planner.missing import missing_data, no_offer_left
from chipwise.planner.preference import PORTED, effort
from chipwise.planner.pricing import Work, price
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.sizes import NeedsNetwork
from chipwise.planner.remedies import Advice, OwnMachines
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.placement import Reach
from chipwise.planner.values.plan import Counts, Grounds, Missing, Obstacle, Plan, Rows
from chipwise.predictor.kinds.goals import stretch
from chipwise.text import duration

if TYPE_CHECKING:
    pass

from chipwise.planner.kinds.ways import COUNT, FORMAT, KIND, MEMORY, TIME, Cannot, Ground, Question, Table, Way, Ways


def plan_ways(question: Question, ground: Ground, table: Table, ways_of: Callable[[int], Ways]) -> Plan:
    ways: list[Way] = []
    missed: dict[str, Cannot] = {}
    count = 0
    for index in ground.shapes:
        count += 1
        outcome = ways_of(index)
        if isinstance(outcome, Cannot):
            family = ground.fleet.families[index]
            if family not in missed or outcome.distance < missed[family].distance:
                missed[family] = outcome
            ways += outcome.narrower
        else:
            ways += outcome

    def reason(shapes: Sequence[int]) -> Reason | None:
        lacks = [found for at in shapes if isinstance(found := ways_of(at), Cannot)]
        return min(lacks, key=lambda one: one.distance).why if lacks else NeedsNetwork()

    return _assembled(question, ground, table, ways, missed, count, Grounds(question.rules, reason, ground.ok.offers))


def _assembled(
    question: Question,
    ground: Ground,
    table: Table,
    ways: Sequence[Way],
    missed: Mapping[str, Cannot],
    count: int,
    grounds: Grounds,
) -> Plan:
    fleet = ground.fleet
    parts = [fleet.part(way.shape) for way in ways]

    def column(name: str) -> Array:
        return np.array([getattr(way, name) for way in ways], dtype=np.float64)

    drawn = power(
        Coded.of([part.kind for part in parts]),
        np.array([way.limit_w or part.power_w for way, part in zip(ways, parts, strict=True)], dtype=np.float64),
        np.array([way.use.compute for way in ways], dtype=np.float64),
        np.array([way.use.memory for way in ways], dtype=np.float64),
    )
    chips = np.array([fleet.shapes[way.shape].chips for way in ways], dtype=np.float64)

    work = Work(
        shape=np.array([way.shape for way in ways], dtype=np.intp),
        machines=column("machines"),
        seconds=column("seconds"),
        low=column("low"),
        high=column("high"),
        power_w=drawn.machine * chips * column("machines"),
        apart=table.apart,
        beside_usd=np.array([math.fsum(line.usd for line in way.lines) for way in ways], dtype=np.float64),
        monthly=table.per == "month",
    )
    priced = price(work, ground.ok.priced, ground.market, table.checkpoint, question.work.data)

    def describe(row: int) -> Described:
        way = ways[row]
        return Described(
            precision=way.precision,
            split=way.split,
            memory_share=way.memory_share,
            provenance=way.provenance,
            related=way.related,
            rate=way.rate,
            planned=way.rate if way.planned is None else way.planned,
            headroom=way.headroom,
            at_less=way.at_less,
            replicas=way.replicas,
            rate_spread=way.rate_spread,
            request_chance=way.request_chance,
            load_chance=way.load_chance,
            latency=way.latency,
            answer_s=way.answer_s,
            lines=way.lines,
            quantum=way.quantum,
        )

    monthly = table.per == "month"
    # Every row of a month lasts the month: among those that keep the goals, cost decides where time was asked for.
    aim = "cost" if monthly and question.aim == "time" else question.aim
    goals = goals_of(question.known, question.work, question.rules, aim, None if monthly else question.deadline_s, monthly)
    if table.whole and ways:
        goals = replace(goals, most_machines=_fewest(fleet, ways, goals.native))
    case = PlanningCase(
        workload=question.work.name,
        kind=table.kind,
        per=table.per,
        units=table.units,
        unit=table.unit,
        goals=goals,
        stored=None if monthly else stored(ground.tiers, question.work, table.units),
        layered=_layered(question) if monthly else None,
        following=_following(question) if monthly else None,
        peak=table.peak,
        chance=_chances(ways),
        unasked=np.array([way.unasked for way in ways]) if any(way.unasked for way in ways) else None,
        reach=_reach(question, fleet) if monthly and question.work.traffic else None,
        data=question.work.data,
    )
    counts = Counts(len(priced) + count, count - len({way.shape for way in ways}), len(ways))
    reasons = {**_apart(ground, ways), **ground.unable, **{family: one.why for family, one in missed.items()}}
    plan = assemble(
        case,
        fleet,
        priced,
        describe,
        ground.ok,
        _missing(question.rules, ground, ways, missed),
        counts,
        question.top,
        reasons,
        grounds,
    )
    return replace(plan, objective=question.aim, notes=(*plan.notes, *_notes(question, table, aim)))


def _fewest(fleet: Fleet, ways: Sequence[Way], native: frozenset[str]) -> float:
    """Machines that all of it needs at least, of chips that need no porting where there are any."""
    easy = [way.machines for way in ways if effort(fleet.part(way.shape), native) < PORTED]
    return min(easy or [way.machines for way in ways])


def _chances(ways: Sequence[Way]) -> Array | None:
    """That requests keep the latency goals; None: nothing is estimated by them."""
    if all(way.request_chance is None for way in ways):
        return None
    return np.array([1.0 if way.request_chance is None else way.request_chance for way in ways], dtype=np.float64)


def _apart(ground: Ground, ways: Sequence[Way]) -> dict[str, Reason]:
    """Families that do it on several machines at once only; told where no offer of them can be joined."""
    fewest: dict[str, int] = {}
    for way in ways:
        family = ground.fleet.families[way.shape]
        fewest[family] = min(way.machines, fewest.get(family, way.machines))
    return {family: NeedsNetwork(many) for family, many in fewest.items() if many > 1}


def _reach(question: Question, fleet: Fleet) -> Reach | None:
    from chipwise.planner.load.regions import reach_of

    return reach_of(question.known, question.work, fleet.catalog)


def _layered(question: Question) -> Callable[[Rows], Array] | None:
    from chipwise.planner.load.budget import layered_of

    return layered_of(question.known, question.work, question.path)


def _following(question: Question) -> Following | None:
    from chipwise.planner.load.following import following_of

    return following_of(question.known, question.work, question.path)


_LACKS = {
    KIND: (Obstacle.KIND, "other chips, or none named in limits.chips"),
    FORMAT: (Obstacle.PRECISION, "another number format or codec, or other chips"),
    MEMORY: (Obstacle.MEMORY, "a larger chip, more chips, or a smaller precision or problem"),
    TIME: (Obstacle.LATENCY, "a looser goal, a faster chip or a smaller precision"),
    COUNT: (Obstacle.CHIPS, "a higher limit, or less to do at once"),
}


def _missing(rules: Rules, ground: Ground, ways: Sequence[Way], missed: Mapping[str, Cannot]) -> list[Missing]:
    if not all(way.unasked for way in ways):
        return []
    if not missed and (silent := missing_data(rules, ground.fleet, ground.market.prices)) is not None:
        return [silent]
    if not missed:
        last = ground.ok.refused[-1] if ground.ok.refused else None
        own = (OwnMachines(), Advice("no limits.where"))
        return [Missing(Obstacle.OFFERS, no_offer_left(last), own if lacks_own_machines(last) else (Advice("a looser limit"),))]
    family, nearest = min(missed.items(), key=lambda item: item[1].distance)
    obstacle, remedy = _LACKS[nearest.passed]
    return [Missing(obstacle, nearest.why, (Advice(nearest.remedy or remedy),), family)]


def _notes(question: Question, table: Table, aim: str) -> tuple[str, ...]:
    notes = list(table.notes)
    pause = stretch(question.work)
    if table.per == "job" and pause > 1 and question.deadline_s is not None:
        notes.append(
            f"It runs {question.work.schedule.hours_per_week:g} hours a week: {duration(question.deadline_s)} of running are "
            f"left of the {duration(question.deadline_s * pause)} until it must be done."
        )
    if aim != question.aim:
        notes.append("Every row lasts the month, so none is sooner: the cheapest leads.")
    return tuple(notes)


def remarked(plan: Plan, remark: Callable[[Choice], str]) -> Plan:
    """Losses with a remark on the chip that lost; an empty one adds nothing."""
    return replace(
        plan,
        losses=tuple(replace(loss, remark=remark(loss.choice)) if loss.choice is not None else loss for loss in plan.losses),
    )
