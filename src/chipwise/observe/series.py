"""Samples over time in bounded memory: one second apart for an hour, then coarser, however long a run is.

Each quantity of each source has three tiers. A tier keeps one row for each span of time in which something came: the mean, the
lowest and the highest value of a level, and the last value of a counter. The first two tiers drop their oldest rows when they
are full, since the next tier has them too; the last one joins neighbours and doubles its span, so that it always reaches back
to the start. Adding a value takes the same time whatever is stored.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chipwise.observe import metrics
from chipwise.observe.metrics import MetricKind
from chipwise.observe.sample import HOST, PROGRAM, SERVER, NoReading, Sample

SPANS = ((1.0, 3600), (30.0, 960), (600.0, 1008))  # seconds of a row, and rows: an hour, eight hours, a week and then doubled
STANDS_S = 10.0  # a reading that samples after it do not have
MOST_SERIES = 20_000  # beyond which new names are not stored: a broken probe must not fill the memory
_OF_SOURCE = {HOST: metrics.HOST, PROGRAM: metrics.PROGRAM, SERVER: metrics.SERVER}


def known_metrics(source: str) -> Mapping[str, metrics.Metric]:
    """By the kind of source: "host", "program", "server", "server:8000", or else a device."""
    return _OF_SOURCE.get(source.partition(":")[0], metrics.DEVICE)


def kind_of(source: str, name: str) -> MetricKind:
    metric = known_metrics(source).get(name)
    return MetricKind.LEVEL if metric is None else metric.kind


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    at_s: float  # where its span begins
    span_s: float
    mean: float
    low: float
    high: float
    last: float


class _Tier:
    """Rows in the order of time, in arrays that are used as a ring once they are full."""

    __slots__ = (
        "_is_counter",
        "_rows",
        "count",
        "doubles",
        "first",
        "high",
        "last",
        "low",
        "mean",
        "number",
        "span_s",
        "weight",
    )

    def __init__(self, span_s: float, rows: int, is_counter: bool, doubles: bool) -> None:
        self.span_s, self._rows, self._is_counter, self.doubles = span_s, rows, is_counter, doubles
        self.number = array("q")  # of the span: time over span
        self.last = array("d")
        self.mean, self.low, self.high, self.weight = array("f"), array("f"), array("f"), array("f")
        self.first = 0  # where the oldest row is
        self.count = 0

    def add(self, at_s: float, value: float) -> None:
        number = math.floor(at_s / self.span_s)
        if self.count:
            newest = (self.first + self.count - 1) % self._rows
            if number <= self.number[newest]:
                self._merge(newest, value)
                return
            if self.count == self._rows and self.doubles:
                self._double()
                self.add(at_s, value)
                return
        self._append(number, value)

    def _merge(self, row: int, value: float) -> None:
        if self._is_counter:
            self.last[row] = value
            return
        self.weight[row] += 1.0
        self.mean[row] += (value - self.mean[row]) / self.weight[row]
        self.low[row] = min(self.low[row], value)
        self.high[row] = max(self.high[row], value)

    def _append(self, number: int, value: float) -> None:
        columns = (self.last,) if self._is_counter else (self.mean, self.low, self.high)
        if self.count < self._rows:
            self.number.append(number)
            for column in columns:
                column.append(value)
            if not self._is_counter:
                self.weight.append(1.0)
            self.count += 1
            return
        row = self.first
        self.first = (self.first + 1) % self._rows
        self.number[row] = number
        for column in columns:
            column[row] = value
        if not self._is_counter:
            self.weight[row] = 1.0

    def _double(self) -> None:
        """Joins rows of the same span, twice as long as before. Such a tier was never a ring, so its rows are in order."""
        self.span_s *= 2.0
        target = -1
        for row in range(self.count):
            number = self.number[row] // 2
            if target >= 0 and self.number[target] == number:
                if self._is_counter:
                    self.last[target] = self.last[row]
                else:
                    weight = self.weight[target] + self.weight[row]
                    self.mean[target] += (self.mean[row] - self.mean[target]) * self.weight[row] / weight
                    self.low[target] = min(self.low[target], self.low[row])
                    self.high[target] = max(self.high[target], self.high[row])
                    self.weight[target] = weight
                continue
            target += 1
            self.number[target] = number
            for column in (self.last,) if self._is_counter else (self.mean, self.low, self.high, self.weight):
                column[target] = column[row]
        self.count = target + 1
        del self.number[self.count :]
        for column in (self.last, self.mean, self.low, self.high, self.weight):
            del column[self.count :]

    def points(self, newest: int | None = None) -> Iterator[SeriesPoint]:
        begin = 0 if newest is None else max(self.count - newest, 0)
        for place in range(begin, self.count):
            row = (self.first + place) % self._rows
            at_s = self.number[row] * self.span_s
            if self._is_counter:
                value = self.last[row]
                yield SeriesPoint(at_s=at_s, span_s=self.span_s, mean=value, low=value, high=value, last=value)
            else:
                mean, low, high = self.mean[row], self.low[row], self.high[row]
                yield SeriesPoint(at_s=at_s, span_s=self.span_s, mean=mean, low=low, high=high, last=mean)

    @property
    def begins_s(self) -> float:
        return self.number[self.first] * self.span_s if self.count else math.inf

    @property
    def size_bytes(self) -> int:
        columns = (self.number, self.last, self.mean, self.low, self.high, self.weight)
        return sum(column.itemsize * len(column) for column in columns)


class Series:
    """One quantity of one source."""

    __slots__ = ("_tiers", "kind", "latest")

    def __init__(self, kind: MetricKind, spans: tuple[tuple[float, int], ...] = SPANS) -> None:
        self.kind = kind
        self.latest: tuple[float, float] | None = None  # when, and how much
        is_counter, last = kind is MetricKind.COUNTER, len(spans) - 1
        self._tiers = tuple(_Tier(span, rows, is_counter, place == last) for place, (span, rows) in enumerate(spans))

    def add(self, at_s: float, value: float) -> None:
        """In the order of time; what comes late counts where the newest is."""
        self.latest = (at_s, value)
        for tier in self._tiers:
            tier.add(at_s, value)

    def points(self) -> list[SeriesPoint]:
        """From the start to now, each time once, as finely as it is known."""
        rows: list[SeriesPoint] = []
        for tier, finer in zip(self._tiers[::-1], (*self._tiers[-2::-1], None), strict=True):
            until_s = math.inf if finer is None else finer.begins_s
            rows += (point for point in tier.points() if point.at_s < until_s and (not rows or _end(rows[-1]) <= point.at_s))
        return rows

    def recent(self, count: int) -> list[SeriesPoint]:
        """Of the finest tier."""
        return list(self._tiers[0].points(count))

    def rate(self, over_s: float = 10.0) -> float | None:
        """Of a counter, per second, over the last so many seconds; None while there are no two values. A counter that was
        reset counts from there on."""
        rows = self.recent(math.ceil(over_s / self._tiers[0].span_s) + 1)
        if self.latest is None or len(rows) < 2:
            return None
        start = len(rows) - 1
        while start and rows[start - 1].last <= rows[start].last:
            start -= 1
        seconds = rows[-1].at_s - rows[start].at_s
        return (rows[-1].last - rows[start].last) / seconds if seconds > 0 else None

    @property
    def size_bytes(self) -> int:
        return sum(tier.size_bytes for tier in self._tiers)


def _end(point: SeriesPoint) -> float:
    return point.at_s + point.span_s


class SampleStore:
    """All series, and the newest sample of each source."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], Series] = {}
        self.newest: dict[str, Sample] = {}

    def _with_recent(self, sample: Sample) -> Sample:
        """With what the source was asked less often for: it stands for a while."""
        before = self.newest.get(sample.source)
        if before is None or before.readings.keys() <= sample.readings.keys():
            return sample
        recent = {
            name: before.readings[name]
            for name in before.readings.keys() - sample.readings.keys()
            if (series := self._series.get((sample.source, name))) is not None
            and series.latest is not None
            and sample.at_s - series.latest[0] <= STANDS_S
        }
        return Sample(sample.at_s, sample.source, {**sample.readings, **recent}) if recent else sample

    def add(self, sample: Sample) -> None:
        self.newest[sample.source] = self._with_recent(sample)
        for name, reading in sample.readings.items():
            if isinstance(reading, NoReading) or not math.isfinite(reading):
                continue
            series = self._series.get((sample.source, name))
            if series is None:
                if len(self._series) >= MOST_SERIES:
                    continue
                series = self._series[sample.source, name] = Series(kind_of(sample.source, name))
            series.add(sample.at_s, reading)

    def series(self, source: str, name: str) -> Series | None:
        return self._series.get((source, name))

    def rate(self, source: str, name: str, over_s: float = 10.0) -> float | None:
        series = self._series.get((source, name))
        return None if series is None else series.rate(over_s)

    def recent(self, source: str, name: str, count: int) -> list[float]:
        series = self._series.get((source, name))
        return [] if series is None else [point.mean for point in series.recent(count)]

    @property
    def size_bytes(self) -> int:
        return sum(series.size_bytes for series in self._series.values())
