"""A chart as SVG: bars, lines, steps, areas and points on linear, logarithmic, date and named axes, with a legend and tips.

It is drawn broad and slim, so that texts have their size on a telephone too; the page shows what suits its room.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chipwise.report import svg_marks as marks
from chipwise.report.chart import GRID, INK, QUIET, Bars, Chart, Columns, Lines, Points, Ribbon, Series, Value
from chipwise.report.chart_scales import Scale, scale_of

WIDTHS = {"broad": 1000, "slim": 380}  # pixels; the page shows the one that suits the room it has
_LINE, _LEGEND, _TICK = 15.0, 18.0, 11  # pixels: lines of a text, lines of a legend, size of the figures on an axis
_DASHES = {"": "", "dot": "2 3", "dash": "6 4"}


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the data is drawn."""

    left: float
    top: float
    width: float
    height: float
    x: Scale
    y: Scale
    y2: Scale | None

    @property
    def foot(self) -> float:
        return self.top + self.height

    def at_x(self, value: Value) -> float:
        return self.left + self.x.share(value) * self.width

    def at_y(self, value: Value, second: bool = False) -> float:
        scale = self.y2 if second and self.y2 is not None else self.y
        share = scale.share(value)
        return self.top + (share if scale.names else 1.0 - share) * self.height


def drawings(chart: Chart, title: str) -> str:
    """The chart at every width."""
    return "".join(_drawing(chart, width, f"main-svg {name}", title) for name, width in WIDTHS.items())


def _drawing(chart: Chart, width: int, kind: str, title: str) -> str:
    legend = _legend_rows(chart, width)
    bar = 48.0 if chart.scale is not None else 0.0
    x, y = scale_of(chart, "x"), scale_of(chart, "y")
    second = scale_of(chart, "y2") if chart.second is not None else None
    left = 10.0 + max((marks.text_width(line, _TICK) for tick in y.ticks for line in tick.text.split("<br>")), default=0.0)
    left += 18.0 if chart.y.title else 0.0
    right = 14.0 if second is None else 34.0 + max(marks.text_width(tick.text, _TICK) for tick in second.ticks)
    top = 12.0 + bar + (_LEGEND * len(legend) if chart.legend_above else 0.0)
    bottom = 22.0 + (20.0 if chart.x.title else 0.0)
    height = top + chart.height + bottom + (0.0 if chart.legend_above else _LEGEND * len(legend) + 6.0 * bool(legend))
    frame = _Frame(left=left, top=top, width=width - left - right, height=chart.height, x=x, y=y, y2=second)
    parts = [
        *_axes(frame, chart, width),
        *_colour_bar(chart, frame, kind),
        *_series(chart, frame),
        *_limit(chart, frame),
        *_notes(chart, frame),
        *_legend(legend, 12.0 + bar + 4.0 if chart.legend_above else frame.foot + bottom + 12.0),
    ]
    box = f'viewBox="0 0 {width} {height:.0f}"'
    return f'<svg class="{kind}" {box} role="img" aria-label="{title}">{"".join(parts)}</svg>'


# -- axes


def _axes(frame: _Frame, chart: Chart, width: int) -> Iterable[str]:
    foot = frame.foot
    room = frame.width / max(max((marks.text_width(tick.text, _TICK) for tick in frame.x.ticks), default=1.0) + 8.0, 1.0)
    apart = math.ceil(len(frame.x.ticks) / max(room, 1.0)) if frame.x.ticks else 1
    for tick in frame.x.ticks[::apart]:
        x = frame.at_x(tick.value)
        yield marks.line(x, frame.top, x, foot, GRID)
        at_edge = "end" if x + marks.text_width(tick.text, _TICK) / 2 > width else "middle"
        yield marks.text(x, foot + 15, tick.text, size=_TICK, anchor=at_edge)
    for tick in frame.y.ticks:
        y = frame.at_y(tick.value)
        if not frame.y.names:
            yield marks.line(frame.left, y, frame.left + frame.width, y, GRID)
        lines = tick.text.split("<br>")
        for index, line in enumerate(lines):
            shift = _LINE * (index - (len(lines) - 1) / 2) + 4
            yield marks.text(frame.left - 6, y + shift, line, size=_TICK, anchor="end", fill=QUIET if index else INK)
    for tick in frame.y2.ticks if frame.y2 is not None else ():
        yield marks.text(frame.left + frame.width + 6, frame.at_y(tick.value, second=True) + 4, tick.text, size=_TICK)
    yield marks.line(frame.left, foot, frame.left + frame.width, foot, QUIET)
    if chart.x.title:
        yield marks.text(frame.left + frame.width / 2, foot + 34, chart.x.title, anchor="middle", wide=width)
    middle = frame.top + frame.height / 2
    if chart.y.title:
        yield marks.text(12, middle, chart.y.title, anchor="middle", turn=-90)
    if chart.second is not None and chart.second.title:
        yield marks.text(width - 6, middle, chart.second.title, anchor="middle", turn=-90)


# -- what is drawn


def _series(chart: Chart, frame: _Frame) -> Iterable[str]:
    ends: dict[str, float] = {}  # of the bars drawn so far, by place
    floor: list[float] = []  # of the next area
    for series in chart.series:
        match series:
            case Bars():
                parts = _flat_bars(series, frame, ends if chart.stacked else {})
            case Columns():
                parts = _columns(series, frame)
            case Lines(fill="") as line:
                parts = _line(line, frame)
            case Lines() as area:
                floor = floor or [0.0] * len(area.xs)
                tops = [below + (value or 0.0) for below, value in zip(floor, area.ys, strict=True)]
                parts = [_area(area.xs, floor, tops, area, frame), *_outline(area.xs, tops, area, frame)]
                floor = tops
            case Ribbon():
                parts = [_area(series.xs, series.lows, series.highs, series, frame)]
            case Points():
                parts = _points(series, frame)
        yield f'<g class="{"bar" if isinstance(series, Bars | Columns) else "scatter"}layer">{"".join(parts)}</g>'


def _flat_bars(series: Bars, frame: _Frame, ends: dict[str, float]) -> Iterable[str]:
    high = 0.65 * frame.height / max(len(frame.y.names), 1)
    for bar in series.bars:
        start = bar.start if bar.start is not None else ends.get(bar.place, 0.0)
        ends[bar.place] = start + bar.length
        x, end, middle = frame.at_x(start), frame.at_x(start + bar.length), frame.at_y(bar.place)
        yield marks.rect(min(x, end), middle - high / 2, abs(end - x), high, bar.colour, bar.tip)
        if bar.interval is not None:
            low, top = (frame.at_x(value) for value in bar.interval)
            yield marks.line(low, middle, top, middle, INK, 1.5)
            yield from (marks.line(one, middle - 5, one, middle + 5, INK, 1.5) for one in (low, top))


def _columns(series: Columns, frame: _Frame) -> Iterable[str]:
    wide = 0.9 * frame.width / (frame.x.high - frame.x.low)
    for x, y in zip(series.xs, series.ys, strict=True):
        top, foot = frame.at_y(y), frame.at_y(0.0)
        yield marks.rect(frame.at_x(x) - wide / 2, top, wide, foot - top, series.colour, f"{x}: {y:.3g}")


def _line(series: Lines, frame: _Frame) -> Iterable[str]:
    """One for each run of points without a gap."""
    runs: list[list[tuple[Value, float]]] = [[]]
    for x, y in zip(series.xs, series.ys, strict=True):
        if y is None:
            runs.append([])
        else:
            runs[-1].append((x, y))
    for run in runs:
        if run:
            yield from _outline([x for x, _ in run], [y for _, y in run], series, frame)


def _outline(xs: Sequence[Value], ys: Sequence[float], series: Lines, frame: _Frame) -> Iterable[str]:
    stroke = series.stroke
    points = [(frame.at_x(x), frame.at_y(y, series.second)) for x, y in zip(xs, ys, strict=True)]
    dash = f' stroke-dasharray="{_DASHES[stroke.dash]}"' if stroke.dash else ""
    style = f'fill="none" stroke="{stroke.colour}" stroke-width="{stroke.width}"{dash}'
    stepped = marks.joined(_stepped(points, stroke.shape))
    yield f'<polyline points="{stepped}" {style}>{marks.tip_element(series.name)}</polyline>'


def _area(xs: Sequence[Value], lows: Sequence[float], highs: Sequence[float], series: Lines | Ribbon, frame: _Frame) -> str:
    shape = series.stroke.shape if isinstance(series, Lines) else ""
    upper, lower = (
        list(_stepped([(frame.at_x(x), frame.at_y(y)) for x, y in zip(xs, ys, strict=True)], shape)) for ys in (highs, lows)
    )
    corners = marks.joined([*upper, *reversed(lower)])
    return f'<polygon points="{corners}" fill="{series.fill}">{marks.tip_element(series.name)}</polygon>'


def _stepped(run: Sequence[tuple[float, float]], shape: str) -> Iterable[tuple[float, float]]:
    """With the corners of steps: across then up, up then across, or up half-way."""
    yield run[0]
    for (x, y), (next_x, next_y) in pairwise(run):
        if shape == "hv":
            yield next_x, y
        elif shape == "vh":
            yield x, next_y
        elif shape == "hvh":
            yield from (((x + next_x) / 2, y), ((x + next_x) / 2, next_y))
        yield next_x, next_y


def _points(series: Points, frame: _Frame) -> Iterable[str]:
    for dot in series.dots:
        x, y = frame.at_x(dot.x), frame.at_y(dot.y)
        yield marks.symbol(x, y, series.symbol, dot.size, dot.colour, (INK, dot.rim), dot.tip)


def _colour_bar(chart: Chart, frame: _Frame, kind: str) -> Iterable[str]:
    scale = chart.scale
    if scale is None:
        return
    top, key = frame.top - 50.0, f"{chart.name}-{kind.split()[-1]}"
    tones = [scale.low + (scale.high - scale.low) * index / 4 for index in range(5)]
    stops = "".join(f'<stop offset="{index / 4}" stop-color="{scale.colour(tone)}"/>' for index, tone in enumerate(tones))
    yield f'<defs><linearGradient id="{key}">{stops}</linearGradient></defs>'
    yield marks.text(frame.left, top + 10, scale.title)
    yield f'<rect x="{frame.left:.1f}" y="{top + 15:.1f}" width="{frame.width:.1f}" height="8" fill="url(#{key})"/>'
    for anchor, share, mark in zip(("start", "middle", "end"), (0, 0.5, 1), scale.marks, strict=True):
        yield marks.text(frame.left + share * frame.width, top + 35, mark, size=_TICK, anchor=anchor)


def _limit(chart: Chart, frame: _Frame) -> Iterable[str]:
    if chart.limit is not None:
        x = frame.at_x(chart.limit)
        yield marks.line(x, frame.top, x, frame.foot, INK, 1, _DASHES["dash"])


def _notes(chart: Chart, frame: _Frame) -> Iterable[str]:
    for note in chart.notes:
        y = frame.at_y(note.place) + 4
        if note.x is None:
            yield marks.text(frame.left + frame.width, y, note.text, anchor="end", halo=True)
        elif note.inside:
            yield marks.text(frame.at_x(note.x) - 4, y, note.text, anchor="end", fill="#ffffff")
        else:
            yield marks.text(frame.at_x(note.x) + 4, y, note.text, halo=True)


# -- legend

_Entry = tuple[Series, str, float]  # what is drawn, its name and where it begins


def _legend_rows(chart: Chart, width: int) -> list[list[_Entry]]:
    rows: list[list[_Entry]] = [[]]
    x = 0.0
    for series in chart.series:
        name = series.name
        if not name:
            continue
        while marks.text_width(name, 12) > width - 60:
            name = f"{name[: int(0.9 * len(name))].rstrip('.')}..."
        wide = 42.0 + marks.text_width(name, 12)
        if rows[-1] and x + wide > width - 8:
            rows.append([])
            x = 0.0
        rows[-1].append((series, name, x))
        x += wide
    return [row for row in rows if row]


def _legend(rows: Sequence[Sequence[_Entry]], top: float) -> Iterable[str]:
    for index, row in enumerate(rows):
        y = top + _LEGEND * index
        for series, name, shift in row:
            yield _sign(series, 8.0 + shift, y)
            yield marks.text(8.0 + shift + 27, y, name)


def _sign(series: Series, x: float, y: float) -> str:
    """Of a series, in the legend."""
    match series:
        case Points():
            first = series.dots[0]
            size, colour, rim = (9.0, "#ffffff", 1.5) if series.shaded else (min(first.size, 14), first.colour, first.rim)
            return marks.symbol(x + 10, y - 4, series.symbol, size, colour, (INK, rim), "")
        case Lines(fill=""):
            stroke = series.stroke
            return marks.line(x, y - 4, x + 22, y - 4, stroke.colour, stroke.width, _DASHES[stroke.dash])
        case Bars():
            colour = series.bars[0].colour
        case Columns():
            colour = series.colour
        case Lines() | Ribbon():
            colour = series.fill
    return marks.rect(x + 2, y - 10, 16, 11, colour, "", kind="sign")
