"""Stars by hardware family for one workload, with the numbers behind them."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.planner.explain.compare import energy_of
from chipwise.planner.explain.rating import Rating
from chipwise.planner.explain.rating import rate as stars_of
from chipwise.planner.reasons import Reason
from chipwise.planner.values.plan import Plan


@dataclass(frozen=True, slots=True)
class Rated:
    plan: Plan  # by cost
    ratings: tuple[Rating, ...]  # most stars first
    unrated: tuple[tuple[str, Reason], ...]  # families that cannot do it, or are not on offer: name and why


def rate(plan: Plan) -> Rated:
    ratings = stars_of(plan.rows, energy_of(plan.rows), plan.kind, plan.per) if plan.rows is not None else []
    unrated = tuple((loss.family, loss.why) for loss in plan.losses if loss.choice is None)
    return Rated(plan, tuple(ratings), unrated)
