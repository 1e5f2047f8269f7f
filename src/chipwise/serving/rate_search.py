"""The highest rate within the goals, found by trials: doubled until one fails, then halved between the best and the worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CLOSE_ENOUGH = 1.1  # of the lowest failed rate over the highest that held
MOST_TRIALS = 12


@dataclass(frozen=True, slots=True)
class RateTrial:
    per_s: float
    holds: bool


def next_rate(trials: Sequence[RateTrial], first_per_s: float) -> float | None:
    """The rate to try next; None: the search is over. Rates that hold above one that failed do not count: it was luck."""
    if not trials:
        return first_per_s
    if len(trials) >= MOST_TRIALS:
        return None
    best, failed = highest_rate(trials), lowest_failed(trials)
    if failed is None:
        return 2.0 * max(trial.per_s for trial in trials)
    if best is None:
        return failed / 2.0
    return None if failed / best <= CLOSE_ENOUGH else float((failed * best) ** 0.5)


def highest_rate(trials: Sequence[RateTrial]) -> float | None:
    """Below every rate that failed; None: none held."""
    failed = lowest_failed(trials)
    return max((trial.per_s for trial in trials if trial.holds and (failed is None or trial.per_s < failed)), default=None)


def lowest_failed(trials: Sequence[RateTrial]) -> float | None:
    return min((trial.per_s for trial in trials if not trial.holds), default=None)
