"""Pieces that several charts are made of: axes for values that spread, notes, tips, and carbon as colour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from chipwise.report.chart import QUIET, Axis, ColourScale, Lines, Stroke
from chipwise.report.markup import label
from chipwise.units import DAY, HOUR, MINUTE

BAR_HEIGHT = 46  # pixels that a bar takes
BAR_ROOM = 12  # below the last bar
_WIDE = 8.0  # a span from here on is shown on a logarithmic scale


def hover_text(*lines: str) -> str:
    return "<br>".join(label(line) for line in lines if line)


def time_unit(seconds: float) -> tuple[float, str]:
    """In which people read a time: its seconds and its name."""
    return (DAY, "days") if seconds >= 3 * DAY else (HOUR, "hours") if seconds >= 2 * HOUR else (MINUTE, "minutes")


def bar_axis(title: str, low: float, high: float, prefix: str = "", in_thousands: bool = False) -> Axis:
    return Axis(title, span=(low, high), most_figures=4, prefix=prefix, in_thousands=in_thousands)


def front_edge(steps: Sequence[tuple[float, float]], name: str, shape: str = "hv") -> tuple[Lines, ...]:
    """The dotted line along the cheapest; none through a single point."""
    if len(steps) < 2:
        return ()
    return (Lines([x for x, _ in steps], [y for _, y in steps], Stroke(QUIET, 1.5, "dot", shape), name),)


def carbon_tone(kg: float) -> float | None:
    """Carbon spans orders of magnitude: colour follows its logarithm."""
    return math.log10(kg) if kg > 0 and math.isfinite(kg) else None


def carbon_scale(kgs: Iterable[float]) -> ColourScale:
    tones = [tone for tone in map(carbon_tone, kgs) if tone is not None] or [0.0]
    low, high = min(tones), max(tones)
    if high - low < 0.01:
        low, high = low - 0.1, high + 0.1
    return ColourScale("kg CO2e (darker is more)", low, high, (_mass(low), _mass((low + high) / 2), _mass(high)))


def _mass(tone: float) -> str:
    return f"{10**tone:.2g}" if 10**tone < 100 else f"{10**tone:,.0f}"


def spread_axis(title: str, values: Sequence[float], prefix: str = "") -> Axis:
    """Logarithmic where the values spread far."""
    low, high = min(values), max(values)
    if low <= 0 or high / low < _WIDE:
        return Axis(title, most_figures=8, prefix=prefix, from_zero=True)
    marks = tuple((mark, f"{prefix}{_brief(mark)}") for mark in _marks(low, high))
    return Axis(title, span=(math.log10(low) - 0.06, math.log10(high) + 0.06), is_log=True, marks=marks)


def _brief(mark: float) -> str:
    for factor, letter in ((1e9, "G"), (1e6, "M")):
        if mark >= factor:
            return f"{mark / factor:,.0f}{letter}"
    return f"{mark:,.0f}" if mark >= 1 else f"{mark:g}"


def _marks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten; the powers alone where that is too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    candidates = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    inside = [mark for mark in candidates if 0.87 * low <= mark <= 1.15 * high]
    return inside if len(inside) <= 8 else [10.0**power for power in powers if low <= 10.0**power <= high]
