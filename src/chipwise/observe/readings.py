"""Readings made usable: what is no number, negative or runs backwards is dropped with a note; counters become rates.

A track is one quantity of one source over time. Means weigh each reading by the time that it stands for, so that a recording
whose old part is coarser than its new one is not bent towards the new one; a hole in it counts for a few ordinary gaps only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from chipwise.observe import metrics
from chipwise.observe.metrics import SHARE, Metric, MetricKind
from chipwise.observe.sample import HOST, PROGRAM, SERVER, NoReading, Sample

Floats = NDArray[np.float64]

SHARE_SLACK = 1.05  # counters of two clocks give 1.02; 87 is a percentage, and no share
HOLE_GAPS = 5.0  # a reading stands for at most so many ordinary gaps
_TABLES = {HOST: metrics.HOST, PROGRAM: metrics.PROGRAM, SERVER: metrics.SERVER}


@dataclass(frozen=True, slots=True)
class Track:
    """Levels as they were read, or the rates of a counter, each at the end of the time that it stands for."""

    at_s: Floats
    values: Floats
    weights: Floats

    @property
    def mean(self) -> float:
        return float(np.average(self.values, weights=self.weights))

    @property
    def last(self) -> float:
        return float(self.values[-1])

    def percentile(self, share: float) -> float:
        """The value below which the source was for this share of the time."""
        order = np.argsort(self.values, kind="stable")
        reached = np.cumsum(self.weights[order]) / self.weights.sum()
        return float(self.values[order][min(int(np.searchsorted(reached, share)), len(order) - 1)])

    def share_above(self, limit: float) -> float:
        """Of the time."""
        return float(self.weights[self.values > limit].sum() / self.weights.sum())

    def between(self, start_s: float, end_s: float) -> Track | None:
        inside = (self.at_s >= start_s) & (self.at_s <= end_s)
        return track(self.at_s[inside], self.values[inside]) if inside.any() else None


def track(at_s: Floats, values: Floats) -> Track:
    if len(at_s) == 1:
        return Track(at_s, values, np.ones(1))
    gaps = np.diff(at_s, prepend=at_s[0])
    ordinary = _median(gaps[1:])
    gaps[0] = ordinary
    return Track(at_s, values, np.clip(gaps, 1e-9, max(HOLE_GAPS * ordinary, 1e-9)))


def _median(values: Floats) -> float:
    """As NumPy's own, which imports masked arrays for it."""
    ordered, half = np.sort(values), len(values) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2.0)


@dataclass(slots=True)
class _Cells:
    at_s: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tracks:
    """All of one source."""

    levels: Mapping[str, Track]
    missing: Mapping[str, str]  # metric: why
    notes: tuple[str, ...]


def table_of(source: str) -> Mapping[str, Metric]:
    """What a source can be asked for: `host`, `program`, `program:3` (a rank), `server`; all else is a device."""
    return _TABLES.get(source.partition(":")[0], metrics.DEVICE)


def by_source(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    sources: dict[str, list[Sample]] = {}
    for sample in samples:
        sources.setdefault(sample.source, []).append(sample)
    return sources


def read(source: str, samples: Sequence[Sample]) -> Tracks:
    table = table_of(source)
    cells: dict[str, _Cells] = {}
    notes: dict[str, int] = {}
    newest = -math.inf
    for sample in samples:
        if not math.isfinite(sample.at_s) or sample.at_s <= newest:
            _count(notes, "samples out of the order of time were dropped")
            continue
        newest = sample.at_s
        for name, reading in sample.readings.items():
            metric = table.get(name)
            if metric is None:
                continue
            cell = cells.setdefault(name, _Cells())
            if isinstance(reading, NoReading):
                cell.reason = reading.reason
            elif problem := _problem(metric, reading):
                _count(notes, f"readings of {name} were dropped: {problem}")
            else:
                cell.at_s.append(sample.at_s)
                cell.values.append(min(reading, 1.0) if metric.unit == SHARE else reading)
    levels = dict(_tracks(table, cells, notes))
    missing = {name: cell.reason or "no usable reading" for name, cell in cells.items() if name not in levels}
    return Tracks(levels, missing, tuple(f"{source}: {count} {words}" for words, count in notes.items()))


def _tracks(table: Mapping[str, Metric], cells: Mapping[str, _Cells], notes: dict[str, int]) -> Iterator[tuple[str, Track]]:
    for name, cell in cells.items():
        at_s, values = np.array(cell.at_s), np.array(cell.values)
        if table[name].kind is MetricKind.COUNTER:
            steps, gaps = np.diff(values), np.diff(at_s)
            forward = steps >= 0
            if not forward.all():
                _count(notes, f"times the counter {name} ran backwards: a restart, and not counted", int((~forward).sum()))
            at_s, values = at_s[1:][forward], steps[forward] / gaps[forward]
        if len(at_s):
            yield name, track(at_s, values)


def _problem(metric: Metric, reading: float) -> str:
    if not math.isfinite(reading):
        return "no number"
    if reading < 0:
        return "negative"
    if metric.unit == SHARE and reading > SHARE_SLACK:
        return "a share above 1"
    return ""


def _count(notes: dict[str, int], words: str, count: int = 1) -> None:
    notes[words] = notes.get(words, 0) + count
