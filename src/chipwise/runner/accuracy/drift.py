"""Since when runs of the same work come out otherwise, and what changed then.

The runs of a series are followed in the order of time. The last few are held against those before them, since the last drift,
by Student's t with the variance of both parts together. It is a drift if chance alone makes a difference as large once in a
thousand times, and if the speed changes by at least `LEAST`. What changed is what most runs before had in common, and most runs
after have otherwise: it happened at the same time, which does not prove that it is the cause.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.runner.accuracy.runs import MeasuredRun

LEAST = 0.05  # of the speed
FEWEST = 3  # runs on either side
LATEST = 6  # runs that may show a drift; a smaller one shows later
LOOKS_BACK = 40  # runs
MOST = 0.8  # of the runs of a side have a condition in common
NOISE = 0.01  # runs that agree better than this do so by chance
_RISES = {"cpu_of_others": 0.1, "device_processes": 0.5, "temperature": 8.0}  # so much is no chance
# Of |t| that chance exceeds once in a thousand, by degrees of freedom; between two rows the one above holds.
_T = ((1, 636.6), (2, 31.6), (3, 12.92), (4, 8.61), (5, 6.87), (6, 5.96), (8, 5.04), (10, 4.59), (15, 4.07), (30, 3.65))


@dataclass(frozen=True, slots=True)
class ChangedCondition:
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Drift:
    """`speed`: after over before, relative to the prediction; between `low` and `high` with 95%."""

    series: tuple[str, ...]
    first: MeasuredRun  # the first run after it
    before: int
    after: int
    speed: float
    low: float
    high: float
    changes: tuple[ChangedCondition, ...]  # empty: nothing that is recorded changed


def drifts(runs: Sequence[MeasuredRun]) -> tuple[Drift, ...]:
    """Of every series, the newest first."""
    series: dict[tuple[str, ...], list[MeasuredRun]] = {}
    for run in sorted(runs, key=lambda run: run.ended):
        if run.log_speed is not None:
            series.setdefault(run.series, []).append(run)
    changes = [drift for members in series.values() for drift in _in_series(members)]
    return tuple(sorted(changes, key=lambda drift: -drift.first.ended))


def _in_series(runs: Sequence[MeasuredRun]) -> list[Drift]:
    speeds = [run.log_speed or 0.0 for run in runs]
    ends = [0, *_places(speeds), len(runs)]
    return [
        _drift(runs[first:place], runs[place:last], _shift(speeds[first:place], speeds[place:last]))
        for first, place, last in zip(ends, ends[1:], ends[2:], strict=False)
    ]


def _drift(before: Sequence[MeasuredRun], after: Sequence[MeasuredRun], shift: tuple[float, float]) -> Drift:
    change, error = shift
    return Drift(
        series=after[0].series,
        first=after[0],
        before=len(before),
        after=len(after),
        speed=math.exp(change),
        low=math.exp(change - 1.96 * error),
        high=math.exp(change + 1.96 * error),
        changes=_changes(before, after),
    )


def _places(speeds: Sequence[float]) -> list[int]:
    """The first run after each drift."""
    places: list[int] = []
    for end in range(2 * FEWEST, len(speeds) + 1):
        first = max(places[-1] if places else 0, end - LOOKS_BACK)
        if end - first < 2 * FEWEST or not any(_differs(speeds[first:end], tail) for tail in range(FEWEST, LATEST + 1)):
            continue
        splits = {
            place: _significance(speeds[first:place], speeds[place:end]) for place in range(first + FEWEST, end - FEWEST + 1)
        }
        places.append(max(splits, key=lambda place: splits[place]))
    return places


def _differs(speeds: Sequence[float], tail: int) -> bool:
    """The last ones from those before them."""
    before, after = speeds[:-tail], speeds[-tail:]
    return len(before) >= FEWEST and _significance(before, after) > _critical(len(speeds) - 2)


def _significance(before: Sequence[float], after: Sequence[float]) -> float:
    """Of the difference, in its standard errors; 0 where it is too small to matter."""
    shift, error = _shift(before, after)
    return abs(shift) / error if abs(shift) >= math.log1p(LEAST) else 0.0


def _shift(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Of the means, and its standard error."""
    means = [sum(part) / len(part) for part in (before, after)]
    squares = sum((speed - mean) ** 2 for part, mean in zip((before, after), means, strict=True) for speed in part)
    variance = max(squares / max(len(before) + len(after) - 2, 1), NOISE**2)
    return means[1] - means[0], math.sqrt(variance * (1 / len(before) + 1 / len(after)))


def _critical(freedom: int) -> float:
    return next((limit for most, limit in reversed(_T) if freedom >= most), _T[0][1])


def _changes(before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> tuple[ChangedCondition, ...]:
    names = dict.fromkeys(name for run in (*before, *after) for name in run.conditions)
    changes = []
    for name in names:
        old, new = _usual(before, name), _usual(after, name)
        if old is not None and new is not None and old != new:
            changes.append(ChangedCondition(name, old, new))
    for name, least in _RISES.items():
        old_level, new_level = _level(before, name), _level(after, name)
        if old_level is not None and new_level is not None and abs(new_level - old_level) >= least:
            changes.append(ChangedCondition(name, f"{old_level:.3g}", f"{new_level:.3g}"))
    return tuple(changes)


def _usual(runs: Sequence[MeasuredRun], name: str) -> str | None:
    """What most of them had; None: they had it one way or another, or it is not known."""
    values = [value for run in runs if (value := run.conditions.get(name)) is not None]
    [(value, count)] = Counter(values).most_common(1) or [("", 0)]
    return value if count and count >= MOST * len(runs) else None


def _level(runs: Sequence[MeasuredRun], name: str) -> float | None:
    values = [value for run in runs if (value := run.levels.get(name)) is not None]
    return statistics.median(values) if len(values) >= FEWEST else None
