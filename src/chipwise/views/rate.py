"""Ratings as plain data: what `chipwise rate --json` prints."""

from __future__ import annotations

from chipwise.planner.explain.rate import Rated as Rated
from chipwise.planner.explain.rating import COLUMNS as COLUMNS
from chipwise.planner.explain.rating import Rating as Rating
from chipwise.planner.explain.reason_words import words
from chipwise.planner.reasons import reason_data
from chipwise.views.plan import View, choice_view, missing_view

SCHEMA = 1


def rated_view(rated: Rated) -> View:
    """One workload of what `chipwise rate --json` prints."""
    return {
        "workload": rated.plan.workload,
        "kind": rated.plan.kind,
        "per": rated.plan.per,
        "families": [rating_view(one) for one in rated.ratings],
        "unrated": [{"family": family, "why": words(why), "reason": reason_data(why)} for family, why in rated.unrated],
        "missing": [missing_view(one) for one in rated.plan.missing],
        "notes": list(rated.plan.notes),
    }


def rating_view(rating: Rating) -> View:
    return {
        "family": rating.family,
        "missed": None if rating.missed is None else words(rating.missed),
        **{
            name: {"stars": figure.stars, "value": figure.value, "unit": figure.unit, "how": figure.how}
            for name, figure in rating.figures.items()
        },
        "support": [{"component": one.component, "counts": one.counts, "reason": one.reason} for one in rating.support],
        "questions": [{"asked": one.asked, "yes": one.yes, "told": one.told} for one in rating.questions],
        "choice": choice_view(rating.best),
    }
