"""Goals held against priced rows and against choices: what keeps them, what is missing, and why a choice lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.perf.arrays import Array
from chipwise.planner.case import PlanningCase
from chipwise.planner.cost_range import sure_extra
from chipwise.planner.defaults import LONGER_THAN_FASTEST, MACHINE_CHIPS
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.limits import Mask, offer_title
from chipwise.planner.pricing import Priced, own_limits
from chipwise.planner.quotas import QuotaCheck, above, quota_checks
from chipwise.planner.reasons import Beaten, Reason
from chipwise.planner.reasons.goals import MissesDeadline, MissesThroughput, OverBudget, OwnsFewer, TooFar, UnsureLatency
from chipwise.planner.remedies import Ease
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.placement import FARTHER, Reach
from chipwise.planner.values.plan import Missing, Obstacle

AS_SURE = 0.02  # of a probability: what is nearer than that is as probable


def bounded(reach: Reach, priced: Priced, fine: Mask) -> Reach:
    """Where any distance may be, nothing much farther than the nearest."""
    nearest = float(reach.seconds[priced.region[fine]].min())
    return reach if math.isfinite(reach.limit_s) else replace(reach, limit_s=FARTHER * nearest)


def within_reach(reach: Reach, priced: Priced) -> Mask:
    """Own machines count as near where nobody says where they are: their owner knows."""
    seconds = reach.seconds[priced.region]
    owned = priced.purchase == PURCHASES.index(Purchase.OWNED)
    return np.asarray((seconds <= reach.limit_s) | (owned & np.isinf(seconds)), dtype=bool)


def too_distant(reach: Reach | None, fleet: Fleet, priced: Priced, rows: Index) -> tuple[Missing, ...]:
    """What everything misses that is only too far away."""
    assert reach is not None
    row = int(rows[np.argmin(reach.seconds[priced.region[rows]])])
    reason = TooFar(reach.users, reach.of(int(priced.region[row])), reach.limit_s)
    return (Missing(Obstacle.DISTANCE, reason, (Ease(),), row_title(fleet, priced, row)),)


@dataclass(frozen=True)
class _Test:
    """A goal against all rows: who keeps it, what each comes to, what is allowed, and by how much a row misses it."""

    obstacle: Obstacle
    fine: Mask
    value: Callable[[], Array]  # asked for only where nothing keeps all goals
    limit: float
    miss: Callable[[int], Reason]

    @classmethod
    def of(cls, obstacle: Obstacle, value: Array, limit: float, miss: Callable[[int], Reason]) -> _Test:
        return cls(obstacle=obstacle, fine=value <= limit, value=lambda: value, limit=limit, miss=miss)


def _deadline(priced: Priced, deadline_s: float, confidence: float) -> _Test:
    """Kept with the confidence, and by what is expected."""
    fine = priced.seconds <= deadline_s
    rows = np.flatnonzero(fine)
    fine[rows] = priced.tails.late(rows, deadline_s) <= 1.0 - confidence

    @cache
    def surely() -> Array:
        ends: Array = priced.tails.quantiles(np.arange(len(priced)), confidence)[0]
        return np.maximum(ends, priced.seconds)

    def late(at: int) -> Reason:
        return MissesDeadline(float(surely()[at]), deadline_s, confidence, float(priced.tails.moved[at]))

    return _Test(Obstacle.DEADLINE, fine, surely, deadline_s, late)


def _tests(case: PlanningCase, fleet: Fleet, priced: Priced, layered: Array | None) -> list[_Test]:
    goals, seconds = case.goals, priced.seconds
    tests = []
    if goals.deadline_s is not None:
        tests.append(_deadline(priced, goals.deadline_s, goals.confidence))
    if (rate := goals.throughput) is not None:

        def slow(at: int) -> Reason:
            return MissesThroughput(goals.items / float(seconds[at]), rate, goals.item)

        tests.append(_Test.of(Obstacle.THROUGHPUT, seconds, goals.items / rate, slow))
    if (budget := goals.budget_usd) is not None:
        extra = sure_extra(priced, goals.confidence) if goals.stated else np.zeros(len(priced))
        dearer = 1.0 + extra / np.maximum(priced.usd, 1e-9)
        spent = dearer * (goals.spent(priced.usd, seconds) if layered is None else layered)

        def dear(row: int) -> Reason:
            return OverBudget(
                float(spent[row]), budget, goals.period, layered=case.following is not None, confidence=goals.stated_confidence
            )

        tests.append(_Test.of(Obstacle.BUDGET, spent, budget, dear))
    own = own_limits(fleet.catalog, priced.offer)
    if (priced.machines > own).any():

        def fewer(at: int) -> Reason:
            return OwnsFewer(int(priced.machines[at]), int(own[at]))

        tests.append(_Test.of(Obstacle.OWNED, priced.machines / own, 1.0, fewer))
    for quota in quota_checks(fleet, priced, goals.rules):

        def above(at: int, quota: QuotaCheck = quota) -> Reason:
            return quota.miss(float(quota.needed[at]))

        tests.append(_Test.of(Obstacle.QUOTA, quota.needed, quota.maximum, above))
    return tests


def feasible(case: PlanningCase, fleet: Fleet, priced: Priced, layered: Array | None) -> tuple[Mask, tuple[Missing, ...]]:
    """Rows that keep everything; and, should there be none, the smallest changes after which there would be one.

    A change of one goal alone comes first: of the rows that keep all others, the one nearest to it. Where no single change
    helps, the row that is least off, by the product of its excesses, tells all that it misses.
    """
    tests = _tests(case, fleet, priced, layered)
    masks = [one.fine for one in tests]
    fine = np.logical_and.reduce([np.ones(len(priced), dtype=bool), *masks])
    if fine.any() or not len(priced):
        return _sensible(case, fleet, priced, _surest(case, priced, tests, fine)), ()
    misses = np.sum([~mask for mask in masks], axis=0)

    def missing(test: _Test, index: int, together: bool = False) -> Missing:
        return Missing(
            what=test.obstacle,
            reason=test.miss(index),
            remedies=(Ease(),),
            nearest=row_title(fleet, priced, index),
            together=together,
        )

    alone = []
    for test, mask in zip(tests, masks, strict=True):
        rows = np.flatnonzero(~mask & (misses == 1))
        if len(rows):
            alone.append(missing(test, int(rows[np.argmin(test.value()[rows])])))
    if alone:
        return fine, tuple(alone)
    excess = np.sum([np.log(np.maximum(one.value() / max(one.limit, 0.5), 1.0)) for one in tests], axis=0)
    row = int(np.argmin(excess))
    missed = [test for test, mask in zip(tests, masks, strict=True) if not mask[row]]
    return fine, tuple(missing(test, row, together=True) for test in missed)


def _surest(case: PlanningCase, priced: Priced, tests: Sequence[_Test], fine: Mask) -> Mask:
    """Where the budget alone keeps out whatever is as sure of the latency goals as asked, the surest that it pays for: who
    states both has not asked for the cheapest."""
    if case.chance is None or case.goals.budget_usd is None:
        return fine
    chance = case.chance[priced.way]
    sure, remaining = chance >= case.goals.sure_enough, [one.fine for one in tests if one.obstacle is not Obstacle.BUDGET]
    if (fine & sure).any() or not np.logical_and.reduce([sure, *remaining]).any():
        return fine
    return np.asarray(fine & (chance >= float(chance[fine].max()) - AS_SURE), dtype=bool)


def _sensible(case: PlanningCase, fleet: Fleet, priced: Priced, fine: Mask) -> Mask:
    """Without what nobody would do unasked: a chip that may be too slow for a request alone, a job of longer than a month, a
    fleet of more machines than a team starts alone, in which a pod counts as machines of eight chips. Where nothing else is
    left they are kept; but where every job takes longer than a month, none that takes much longer than the fastest: the
    cheapest then would run for years on old chips."""
    goals = case.goals
    chips = np.array([one.chips for one in fleet.shapes], dtype=np.float64)[fleet.shape_of[priced.machine]]
    fleets = priced.machines * np.maximum(chips / MACHINE_CHIPS, 1.0)
    masks = [fleets <= goals.most_machines]
    if case.chance is not None:
        masks.insert(0, case.chance[priced.way] >= goals.sure_enough)
    for mask in masks:
        if (fine & mask).any():
            fine = fine & mask
    if goals.horizon_s is None or not fine.any():
        return fine
    fastest_s = float(priced.seconds[fine].min())
    longest_s = goals.horizon_s if fastest_s <= goals.horizon_s else LONGER_THAN_FASTEST * fastest_s
    return np.asarray(fine & (priced.seconds <= longest_s), dtype=bool)


def row_title(fleet: Fleet, priced: Priced, at: int) -> str:
    many = f"{priced.machines[at]:g} x " if priced.machines[at] > 1 else ""
    return f"{many}{offer_title(fleet.catalog, int(priced.offer[at]))}"


def verdict(case: PlanningCase, fleet: Fleet, choice: Choice) -> Reason | None:
    """The first goal or quota that a choice misses; None: it keeps all."""
    goals = case.goals
    late = goals.deadline_s is not None and (choice.late_share or 0.0) > 1.0 - goals.confidence
    if goals.deadline_s is not None and (late or choice.seconds > goals.deadline_s):
        return MissesDeadline(choice.by_s, goals.deadline_s, goals.confidence, choice.moving_s)
    if choice.request_chance is not None and choice.request_chance < goals.sure_enough:
        return UnsureLatency(choice.request_chance, goals.confidence)
    if goals.throughput is not None and choice.seconds > goals.items / goals.throughput:
        return MissesThroughput(goals.items / max(choice.seconds, 1e-9), goals.throughput, goals.item)
    spent = choice.layered_usd
    if spent is None:
        spent = float(goals.spent(np.array(choice.usd), np.array(choice.seconds)))
    if choice.sure_usd is not None:
        spent *= choice.sure_usd / max(choice.usd, 1e-9)
    if goals.budget_usd is not None and spent > goals.budget_usd * (1 + 1e-9):
        layered = case.following is not None
        return OverBudget(spent, goals.budget_usd, goals.period, layered=layered, confidence=goals.stated_confidence)
    if (fewer := _owns_fewer(fleet, choice)) is not None:
        return fewer
    if (quota := above(fleet, choice, goals.rules)) is not None:
        return quota
    reach = case.reach
    if reach is None or choice.purchase == Purchase.OWNED or (choice.network_s or math.inf) <= reach.limit_s:
        return None
    return TooFar(reach.users, choice.network_s, reach.limit_s)


def _owns_fewer(fleet: Fleet, choice: Choice) -> OwnsFewer | None:
    if choice.purchase != Purchase.OWNED:
        return None
    owned = fleet.catalog.owned(choice.provider, choice.machine, choice.region)
    return None if owned is None or choice.machines <= owned else OwnsFewer(choice.machines, owned)


def beaten(winner: Choice, loser: Choice, objective: str, per: str) -> Beaten:
    return Beaten(
        objective=objective,
        per=per,
        usd=loser.usd,
        best_usd=winner.usd,
        seconds=loser.seconds,
        best_s=winner.seconds,
        kg=loser.kg,
        best_kg=winner.kg,
        porting=loser.needs_porting and not winner.needs_porting,
        doubt=loser.doubt if loser.doubt_share > winner.doubt_share else "",
        doubt_share=loser.doubt_share,
        days=loser.price_days,
        best_days=winner.price_days,
        machines=loser.machines,
        best_machines=winner.machines,
        chance=loser.request_chance,
        best_chance=winner.request_chance,
        headroom=loser.headroom if winner.headroom is None else None,
    )
