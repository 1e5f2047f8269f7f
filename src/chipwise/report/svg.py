"""A chart as SVG: bars, lines, steps, areas and points on linear, logarithmic, date and named axes, with a legend and tips.

It is drawn broad and slim, so that texts have their size on a telephone too; the page shows what suits its room.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from chipwise.report import svg_marks as marks
from chipwise.report.chart_scales import Scale, scale_of
from chipwise.report.charts import _GRID, _INK, _QUIET, Chart, Trace

WIDTHS = {"broad": 1000, "slim": 380}  # pixels; the page shows the one that suits the room it has
_LINE, _LEGEND, _TICK = 15.0, 18.0, 11  # pixels: lines of a text, lines of a legend, size of the figures on an axis
_DASHES = {"dot": "2 3", "dash": "6 4"}
_VIRIDIS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))


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

    def at_x(self, value: Any) -> float:
        return self.left + self.x.share(value) * self.width

    def at_y(self, value: Any, second: bool = False) -> float:
        scale = self.y2 if second and self.y2 is not None else self.y
        share = scale.share(value)
        return self.top + (share if scale.names else 1.0 - share) * self.height


def drawings(chart: Chart, title: str) -> str:
    """The chart at every width."""
    return "".join(_drawing(chart, width, f"main-svg {name}", title) for name, width in WIDTHS.items())


def _drawing(chart: Chart, width: int, kind: str, title: str) -> str:
    layout = chart.layout
    legend = _legend_rows(chart, width)
    above = layout.get("legend", {}).get("y", -1.0) >= 1.0
    bar = 48.0 if "coloraxis" in layout else 0.0
    scales = {name: scale_of(chart, name) for name in ("x", "y")}
    second = scale_of(chart, "y2") if "yaxis2" in layout else None
    left = 10.0 + max(
        (marks.text_width(line, _TICK) for tick in scales["y"].ticks for line in tick.text.split("<br>")), default=0.0
    )
    left += 18.0 if _title(layout["yaxis"]) else 0.0
    right = 14.0 if second is None else 34.0 + max(marks.text_width(tick.text, _TICK) for tick in second.ticks)
    top = 12.0 + bar + (_LEGEND * len(legend) if above else 0.0)
    bottom = 22.0 + (20.0 if _title(layout["xaxis"]) else 0.0)
    margin = layout["margin"]
    inner = float(layout["height"]) - margin["t"] - margin["b"]
    height = top + inner + bottom + (0.0 if above else _LEGEND * len(legend) + 6.0 * bool(legend))
    frame = _Frame(left=left, top=top, width=width - left - right, height=inner, x=scales["x"], y=scales["y"], y2=second)
    parts = [
        *_axes(frame, layout, width),
        *_colour_bar(layout, frame, chart.name, kind),
        *_traces(chart, frame),
        *_shapes(layout, frame),
        *_annotations(layout, frame),
        *_legend(legend, 12.0 + bar + 4.0 if above else top + inner + bottom + 12.0),
    ]
    box = f'viewBox="0 0 {width} {height:.0f}"'
    return f'<svg class="{kind}" {box} role="img" aria-label="{title}">{"".join(parts)}</svg>'


# -- axes


def _axes(frame: _Frame, layout: dict[str, Any], width: int) -> Iterable[str]:
    foot = frame.top + frame.height
    room = frame.width / max(max((marks.text_width(tick.text, _TICK) for tick in frame.x.ticks), default=1.0) + 8.0, 1.0)
    apart = math.ceil(len(frame.x.ticks) / max(room, 1.0)) if frame.x.ticks else 1
    for tick in frame.x.ticks[::apart]:
        x = frame.at_x(tick.value)
        yield marks.line(x, frame.top, x, foot, _GRID)
        at_edge = "end" if x + marks.text_width(tick.text, _TICK) / 2 > width else "middle"
        yield marks.text(x, foot + 15, tick.text, size=_TICK, anchor=at_edge)
    for tick in frame.y.ticks:
        y = frame.at_y(tick.value)
        if not frame.y.names:
            yield marks.line(frame.left, y, frame.left + frame.width, y, _GRID)
        lines = tick.text.split("<br>")
        for index, line in enumerate(lines):
            shift = _LINE * (index - (len(lines) - 1) / 2) + 4
            yield marks.text(frame.left - 6, y + shift, line, size=_TICK, anchor="end", fill=_QUIET if index else _INK)
    for tick in frame.y2.ticks if frame.y2 is not None else ():
        yield marks.text(frame.left + frame.width + 6, frame.at_y(tick.value, second=True) + 4, tick.text, size=_TICK)
    yield marks.line(frame.left, foot, frame.left + frame.width, foot, _QUIET)
    if title := _title(layout["xaxis"]):
        yield marks.text(frame.left + frame.width / 2, foot + 34, title, anchor="middle", wide=width)
    middle = frame.top + frame.height / 2
    if title := _title(layout["yaxis"]):
        yield marks.text(12, middle, title, anchor="middle", turn=-90)
    if frame.y2 is not None and (title := _title(layout["yaxis2"])):
        yield marks.text(width - 6, middle, title, anchor="middle", turn=-90)


def _title(axis: dict[str, Any]) -> str:
    return str(axis.get("title", {}).get("text", ""))


# -- what is drawn


def _traces(chart: Chart, frame: _Frame) -> Iterable[str]:
    below: dict[Any, float] = {}
    floor: list[float] = []
    for trace in chart.data:
        bars = trace["type"] == "bar"
        if bars and trace.get("orientation") == "h":
            parts = list(_flat_bars(trace, frame, below if chart.layout.get("barmode") == "stack" else {}))
        elif bars:
            parts = list(_columns(trace, frame))
        elif trace["mode"] == "lines":
            floor = floor or [0.0] * len(trace["x"])
            parts = list(_lines(trace, frame, floor))
            if "stackgroup" in trace:
                floor = [a + b for a, b in zip(floor, trace["y"], strict=True)]
            elif trace.get("line", {}).get("width") == 0:
                floor = list(trace["y"])
        else:
            parts = list(_points(trace, frame, chart.layout))
        yield f'<g class="{"bar" if bars else "scatter"}layer">{"".join(parts)}</g>'


def _flat_bars(trace: Trace, frame: _Frame, below: dict[Any, float]) -> Iterable[str]:
    high = 0.65 * frame.height / max(len(frame.y.names), 1)
    error = trace.get("error_x")
    for index, (place, value) in enumerate(zip(trace["y"], trace["x"], strict=True)):
        start = trace["base"][index] if "base" in trace else below.get(place, 0.0)
        below[place] = start + value
        x, end, middle = frame.at_x(start), frame.at_x(start + value), frame.at_y(place)
        yield marks.rect(
            min(x, end),
            middle - high / 2,
            abs(end - x),
            high,
            marks.item_of(trace["marker"]["color"], index),
            marks.tip_of(trace, index),
        )
        if error is not None and error["array"][index] + error["arrayminus"][index] > 0:
            low, top = frame.at_x(value - error["arrayminus"][index]), frame.at_x(value + error["array"][index])
            yield marks.line(low, middle, top, middle, _INK, 1.5)
            yield from (marks.line(one, middle - 5, one, middle + 5, _INK, 1.5) for one in (low, top))


def _columns(trace: Trace, frame: _Frame) -> Iterable[str]:
    wide = 0.9 * frame.width / (frame.x.high - frame.x.low)
    for x, y in zip(trace["x"], trace["y"], strict=True):
        top, foot = frame.at_y(y), frame.at_y(0.0)
        yield marks.rect(frame.at_x(x) - wide / 2, top, wide, foot - top, trace["marker"]["color"], f"{x}: {y:.3g}")


def _lines(trace: Trace, frame: _Frame, floor: Sequence[float]) -> Iterable[str]:
    style, second = trace["line"], trace.get("yaxis") == "y2"
    runs: list[list[tuple[float, float]]] = [[]]
    lifted = "stackgroup" in trace
    for index, (x, y) in enumerate(zip(trace["x"], trace["y"], strict=True)):
        if y is None:
            runs.append([])
        else:
            runs[-1].append((frame.at_x(x), frame.at_y(y + floor[index] if lifted else y, second)))
    runs = [list(_stepped(run, style.get("shape", "linear"))) for run in runs if run]
    if lifted or "fill" in trace:
        foot = [(frame.at_x(x), frame.at_y(y)) for x, y in zip(trace["x"], floor, strict=True)]
        area = [*runs[0], *reversed(list(_stepped(foot, style.get("shape", "linear"))))]
        name = marks.tip_element(trace.get("name", ""))
        yield f'<polygon points="{marks.joined(area)}" fill="{trace["fillcolor"]}">{name}</polygon>'
    if not style.get("width"):
        return
    dash = f' stroke-dasharray="{_DASHES[style["dash"]]}"' if style.get("dash") in _DASHES else ""
    stroke = f'fill="none" stroke="{style.get("color", _INK)}" stroke-width="{style["width"]}"{dash}'
    for run in runs:
        yield f'<polyline points="{marks.joined(run)}" {stroke}>{marks.tip_element(trace.get("name", ""))}</polyline>'


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


def _points(trace: Trace, frame: _Frame, layout: dict[str, Any]) -> Iterable[str]:
    marker = trace["marker"]
    for index, (x, y) in enumerate(zip(trace["x"], trace["y"], strict=True)):
        if x is None or y is None:
            continue
        colour = marks.item_of(marker["color"], index)
        if "coloraxis" in marker:
            colour = _shade(colour, layout["coloraxis"])
        line = marker.get("line", {})
        rim = (line.get("color", _INK), marks.item_of(line.get("width", 0.5), index))
        yield marks.symbol(
            frame.at_x(x),
            frame.at_y(y),
            marker["symbol"],
            marks.item_of(marker["size"], index),
            colour,
            rim,
            marks.tip_of(trace, index),
        )


def _shade(tone: float | None, axis: dict[str, Any]) -> str:
    """Viridis, dark where much is emitted; grey where nobody knows how much."""
    if tone is None:
        return "#c0c4c8"
    share = (1.0 - min(max((tone - axis["cmin"]) / (axis["cmax"] - axis["cmin"]), 0.0), 1.0)) * (len(_VIRIDIS) - 1)
    index = min(int(share), len(_VIRIDIS) - 2)
    mixed = (a + (b - a) * (share - index) for a, b in zip(_VIRIDIS[index], _VIRIDIS[index + 1], strict=True))
    return "#" + "".join(f"{round(one):02x}" for one in mixed)


def _colour_bar(layout: dict[str, Any], frame: _Frame, name: str, kind: str) -> Iterable[str]:
    axis = layout.get("coloraxis")
    if axis is None:
        return
    top, key = frame.top - 50.0, f"{name}-{kind.split()[-1]}"
    tones = [axis["cmin"] + (axis["cmax"] - axis["cmin"]) * index / 4 for index in range(5)]
    stops = "".join(f'<stop offset="{index / 4}" stop-color="{_shade(tone, axis)}"/>' for index, tone in enumerate(tones))
    yield f'<defs><linearGradient id="{key}">{stops}</linearGradient></defs>'
    yield marks.text(frame.left, top + 10, axis["colorbar"]["title"]["text"])
    yield f'<rect x="{frame.left:.1f}" y="{top + 15:.1f}" width="{frame.width:.1f}" height="8" fill="url(#{key})"/>'
    for anchor, share, mark in zip(("start", "middle", "end"), (0, 0.5, 1), axis["colorbar"]["ticktext"], strict=True):
        yield marks.text(frame.left + share * frame.width, top + 35, mark, size=_TICK, anchor=anchor)


def _shapes(layout: dict[str, Any], frame: _Frame) -> Iterable[str]:
    for shape in layout.get("shapes", ()):
        x, style = frame.at_x(shape["x0"]), shape["line"]
        yield marks.line(
            x, frame.top, x, frame.top + frame.height, style["color"], style["width"], _DASHES.get(style["dash"], "")
        )


def _annotations(layout: dict[str, Any], frame: _Frame) -> Iterable[str]:
    for note in layout.get("annotations", ()):
        x = frame.left + note["x"] * frame.width if note.get("xref") == "paper" else frame.at_x(note["x"])
        anchor = "end" if note["xanchor"] == "right" else "start"
        colour = note["font"].get("color", _INK)
        yield marks.text(
            x + note["xshift"], frame.at_y(note["y"]) + 4, note["text"], anchor=anchor, fill=colour, halo=colour == _INK
        )


# -- legend

_Entry = tuple[Trace, str, float]  # what is drawn, its name and where it begins


def _legend_rows(chart: Chart, width: int) -> list[list[_Entry]]:
    rows: list[list[_Entry]] = [[]]
    x = 0.0
    for trace in chart.data:
        if "name" not in trace or not trace.get("showlegend", True):
            continue
        name = str(trace["name"])
        while marks.text_width(name, 12) > width - 60:
            name = f"{name[: int(0.9 * len(name))].rstrip('.')}..."
        wide = 42.0 + marks.text_width(name, 12)
        if rows[-1] and x + wide > width - 8:
            rows.append([])
            x = 0.0
        rows[-1].append((trace, name, x))
        x += wide
    return [row for row in rows if row] if sum(map(len, rows)) > 1 or "legend" in chart.layout else []


def _legend(rows: Sequence[Sequence[_Entry]], top: float) -> Iterable[str]:
    for index, row in enumerate(rows):
        y = top + _LEGEND * index
        for trace, name, shift in row:
            x, marker = 8.0 + shift, trace.get("marker", {})
            if "symbol" in marker:
                rim = (marker.get("line", {}).get("color", _INK), marks.item_of(marker.get("line", {}).get("width", 1.0), 0))
                size = min(marks.item_of(marker["size"], 0), 14)
                yield marks.symbol(x + 10, y - 4, marker["symbol"], size, marks.item_of(marker["color"], 0), rim, "")
            elif trace["type"] == "bar" or "fillcolor" in trace:
                yield marks.rect(
                    x + 2, y - 10, 16, 11, trace.get("fillcolor") or marks.item_of(marker["color"], 0), "", kind="sign"
                )
            else:
                style = trace["line"]
                yield marks.line(
                    x, y - 4, x + 22, y - 4, style["color"], style["width"], _DASHES.get(style.get("dash", ""), "")
                )
            yield marks.text(x + 27, y, name)
