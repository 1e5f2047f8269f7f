"""Bars with the interval that holds each value: the answer against what it is held against, as one chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.report import chart as values
from chipwise.report.chart import Axis, Bars, Chart, Note
from chipwise.report.chart_parts import BAR_HEIGHT, BAR_ROOM, bar_axis, hover_text
from chipwise.report.markup import label
from chipwise.report.words import short
from chipwise.text import is_wide, usd, usd_range, usd_short

_ANSWER, _RIVAL = "#1a7f37", "#8c959f"
_APART = "\u200b"  # shows nothing
_CLEAR = 1.9  # of the highest end: room for a column of figures, on a telephone too
_LONG = 1e5  # from here on figures are told in thousands and millions


@dataclass(frozen=True, slots=True)
class Bar:
    """`title` over `note` on the axis; `low` and `high` hold the value eight times of ten."""

    title: str
    note: str
    usd: float
    low: float
    high: float
    story: tuple[str, ...] = ()  # lines of the tip
    is_answer: bool = False

    @property
    def is_wide(self) -> bool:
        return self.low > 0 and is_wide(self.low, self.high)


def interval_chart(name: str, bars: Sequence[Bar], axis: str) -> Chart | None:
    """None where there is nothing to set side by side."""
    drawn = [bar for bar in bars if math.isfinite(bar.usd)]
    if len(drawn) < 2:
        return None
    places = [f"{label(short(bar.title))}<br>{label(short(bar.note, 26))}" for bar in drawn]
    places = [place + _APART * places[:at].count(place) for at, place in enumerate(places)]  # equal ones would be one bar
    ends = [bar.high if bar.is_wide else bar.usd for bar in drawn]
    return Chart(
        name,
        (Bars(tuple(_drawn(bar, place) for bar, place in zip(drawn, places, strict=True))),),
        x=bar_axis(axis, min(0.0, *(bar.usd for bar in drawn)), max(ends) * _CLEAR, "$", max(ends) >= _LONG),
        y=Axis(),
        height=BAR_HEIGHT * len(drawn) + BAR_ROOM,
        notes=tuple(Note(None, place, _figure(bar)) for bar, place in zip(drawn, places, strict=True)),
    )


def _drawn(bar: Bar, place: str) -> values.Bar:
    ends = (min(bar.low, bar.usd), max(bar.high, bar.usd)) if bar.is_wide else None
    return values.Bar(place, bar.usd, _ANSWER if bar.is_answer else _RIVAL, hover_text(*bar.story), interval=ends)


def _figure(bar: Bar) -> str:
    if not bar.is_wide:
        return usd_short(bar.usd) if abs(bar.usd) >= _LONG else usd(bar.usd)
    if bar.high < _LONG:
        return usd_range(bar.low, bar.high)
    return f"{usd_short(bar.low)}-{usd_short(bar.high).removeprefix('$')}"
