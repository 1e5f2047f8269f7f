"""The verb `rate`: stars by hardware family for one workload, with the numbers behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.api.comparing import energy_of
from chipwise.api.plan_views import View, choice_view
from chipwise.api.planning import plan
from chipwise.plan.decision import Plan
from chipwise.plan.rating import Rating
from chipwise.plan.rating import rate as stars_of

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Rated:
    plan: Plan  # by cost
    ratings: tuple[Rating, ...]  # most stars first
    unrated: tuple[tuple[str, str], ...]  # families that cannot do it, or are not on offer: name and why


def rate(session: Session, path: str, environment: str | None = None, text: str | None = None) -> Rated:
    """`text` stands for the file."""
    found = plan(session, path, "cost", 1, environment, text)
    ratings = stars_of(found.rows, energy_of(session, found.rows), found.kind, found.per) if found.rows is not None else []
    unrated = tuple((one.family, one.why) for one in found.losses if one.choice is None)
    return Rated(found, tuple(ratings), unrated)


def rated_view(found: Rated) -> View:
    """One workload of what `chipwise rate --json` prints."""
    return {
        "workload": found.plan.workload,
        "kind": found.plan.kind,
        "per": found.plan.per,
        "families": [rating_view(one) for one in found.ratings],
        "unrated": [{"family": family, "why": why} for family, why in found.unrated],
        "missing": [{"what": one.what, "how_much": one.how_much, "remedy": one.remedy} for one in found.plan.missing],
        "notes": list(found.plan.notes),
    }


def rating_view(rating: Rating) -> View:
    return {
        "family": rating.family,
        "missed": rating.missed or None,
        **{
            name: {"stars": one.stars, "value": one.value, "unit": one.unit, "how": one.how}
            for name, one in rating.figures.items()
        },
        "support": [{"component": one.component, "counts": one.counts, "reason": one.reason} for one in rating.support],
        "questions": [{"asked": one.asked, "yes": one.yes, "told": one.told} for one in rating.questions],
        "choice": choice_view(rating.best),
    }
