"""What all runs together say of the predictions: error, coverage of the intervals, and the trend."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chipwise.runner.accuracy.drift import Drift, drifts
from chipwise.runner.accuracy.runs import MeasuredRun

STATED_COVERAGE = 0.8  # of the measurements should be inside: from the 10th to the 90th percentile
PERIODS = 4
FEWEST = 3  # runs of a period
_Z = 1.96
_RARE = 0.025  # on either side


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the runs with an interval were inside. `low` and `high`: of the share, with 95% (Wilson)."""

    inside: int
    runs: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.inside / self.runs

    @property
    def is_as_meant(self) -> bool:
        """Unless so few, or so many, would be inside by chance less than one time in twenty (binomial)."""
        return min(_chance(range(self.inside + 1), self.runs), _chance(range(self.inside, self.runs + 1), self.runs)) > _RARE


@dataclass(frozen=True, slots=True)
class Period:
    """Runs that followed one another."""

    first: float
    last: float
    runs: int
    speed: float  # median of measured over predicted speed
    error: float  # median, either way
    coverage: Coverage | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    runs: tuple[MeasuredRun, ...]  # the newest first, all of which have a figure
    unpredicted: int  # that were measured, and nothing of it predicted
    reasons: tuple[tuple[str, int], ...]  # why not, with the number of runs; the most frequent first
    overall: Period | None
    periods: tuple[Period, ...]  # the oldest first; at least two, or none
    drifts: tuple[Drift, ...]  # the newest first


def accuracy(runs: Sequence[MeasuredRun]) -> Accuracy:
    known = sorted((run for run in runs if run.log_speed is not None), key=lambda run: run.ended)
    count = min(PERIODS, len(known) // FEWEST)
    ends = [round(len(known) * place / count) for place in range(count + 1)] if count > 1 else []
    return Accuracy(
        runs=tuple(reversed(known)),
        unpredicted=len(runs) - len(known),
        reasons=tuple(Counter(run.why_not for run in runs if run.log_speed is None).most_common()),
        overall=_period(known) if known else None,
        periods=tuple(_period(known[first:last]) for first, last in pairwise(ends)),
        drifts=drifts(known),
    )


def _period(runs: Sequence[MeasuredRun]) -> Period:
    speeds = [run.log_speed or 0.0 for run in runs]
    return Period(
        first=runs[0].ended,
        last=runs[-1].ended,
        runs=len(runs),
        speed=math.exp(statistics.median(speeds)),
        error=statistics.median(abs(math.expm1(-speed)) for speed in speeds),  # of the prediction, as `score` counts it
        coverage=coverage([run.figure.inside for run in runs if run.figure is not None]),
    )


def _chance(insides: Iterable[int], runs: int) -> float:
    """That so many of the runs are inside, where the intervals are as meant."""
    share = STATED_COVERAGE
    return sum(math.comb(runs, inside) * share**inside * (1.0 - share) ** (runs - inside) for inside in insides)


def coverage(inside: Sequence[bool | None]) -> Coverage | None:
    known = [one for one in inside if one is not None]
    if not known:
        return None
    count, share = len(known), sum(known) / len(known)
    scale = 1.0 + _Z**2 / count
    middle = (share + _Z**2 / (2 * count)) / scale
    half = _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2)) / scale
    return Coverage(sum(known), count, max(middle - half, 0.0), min(middle + half, 1.0))
