"""The axes of a chart: which values they span and where their figures stand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from chipwise.report.chart import Axis, Chart, Columns, Lines, Value

_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_LETTERS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class Tick(NamedTuple):
    value: Value
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` to `high`; `names` of a named axis, one after the other."""

    low: float
    high: float
    ticks: tuple[Tick, ...]
    names: tuple[str, ...] = ()
    is_log: bool = False

    def share(self, value: Value) -> float:
        """Of the axis that is before the value."""
        if isinstance(value, str) and self.names:
            return (self.names.index(value) + 0.5) / len(self.names)
        number = _number(value)
        number = math.log10(max(number, 1e-300)) if self.is_log else number
        return min(max((number - self.low) / (self.high - self.low), -0.05), 1.05)


def scale_of(chart: Chart, name: str) -> Scale:
    """`name`: x, y, or y2 for the second one."""
    axis = chart.x if name == "x" else chart.y if name == "y" else chart.second or chart.y
    drawn = [one for one in chart.series if name == "x" or (isinstance(one, Lines) and one.second) is (name == "y2")]
    values = [value for one in drawn for value in (one.xs if name == "x" else one.ys) if value is not None]
    words = [value for value in values if isinstance(value, str)]
    if any(not _is_day(word) for word in words):
        names = tuple(dict.fromkeys(words))
        return Scale(0.0, 1.0, tuple(Tick(one, one) for one in names), names)
    numbers = [_number(value) for value in values]
    if axis.is_log and axis.span is not None:
        return Scale(*axis.span, tuple(Tick(*mark) for mark in axis.marks), is_log=True)
    if words:
        return _dates(sorted(numbers))
    areas = [one.ys for one in drawn if isinstance(one, Lines) and one.fill]
    if areas and name != "x":
        numbers = [sum(value or 0.0 for value in column) for column in zip(*areas, strict=True)]
    low, high = axis.span or _span(numbers, axis, name == "x" and any(isinstance(one, Columns) for one in drawn))
    step = axis.step or _step(high - low, axis.most_figures)
    start = math.ceil(low / step - 1e-9)
    marks = [at * step for at in range(start, math.floor(high / step + 1e-9) + 1)]
    return Scale(low, high, tuple(Tick(mark, f"{axis.prefix}{_figure(mark, axis)}") for mark in marks))


def _span(values: Sequence[float], axis: Axis, columns: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if columns:
        return low - 0.5, high + 0.5
    if axis.from_zero:
        low = min(low, 0.0)
    room = 0.06 * (high - low) or 0.5
    return (low if low == 0.0 else low - room), high + (0.0 if axis.ends_at_last else room)


def _step(span: float, most: int) -> float:
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(one * power for one in _NICE if one * power >= span / most * (1 - 1e-9))


def _figure(mark: float, axis: Axis) -> str:
    if axis.in_thousands:
        for factor, letter in _LETTERS:
            if abs(mark) >= factor:
                return f"{mark / factor:g}{letter}"
    return f"{mark:,.6f}".rstrip("0").rstrip(".")


def _is_day(value: str) -> bool:
    return len(value) == 10 and value[4] == value[7] == "-" and value.replace("-", "").isdecimal()


def _number(value: Value) -> float:
    return float(date.fromisoformat(value).toordinal()) if isinstance(value, str) else float(value)


def _dates(days: Sequence[float]) -> Scale:
    """Firsts of months, as many as are read easily."""
    low, high = days[0], days[-1] + 0.03 * (days[-1] - days[0] or 30.0)
    months = list(_months(date.fromordinal(int(low)), date.fromordinal(int(high))))
    apart = next((one for one in (1, 2, 3, 6, 12, 24) if len(months) / one <= 7), 24)
    firsts = [day for day in months if (day.month - 1) % min(apart, 12) == 0 and (apart <= 12 or day.year % (apart // 12) == 0)]
    ticks = (Tick(day.isoformat(), f"{day.year}" if apart >= 12 else f"{day.year}-{day.month:02d}") for day in firsts)
    return Scale(low, high, tuple(ticks))


def _months(first: date, last: date) -> Iterable[date]:
    day = date(first.year, first.month, 1)
    while day <= last:
        if day >= first:
            yield day
        day = date(day.year + day.month // 12, day.month % 12 + 1, 1)
