"""The roofline of the winner's chip, and where its work stands below it (S. Williams et al., Roofline, CACM 52(4), 2009).

Both scales are logarithmic: FLOP per byte across, FLOP/s of one chip upwards. The dashed roof is the data sheet's; the solid
one what large kernels reach by the fitted model. A point near the slanted part waits for memory, one near the level part for
arithmetic, one far below both for something else: links, launches, the host.
"""

from __future__ import annotations

import math
from typing import Any

from chipwise.planner.explain.roofline import Point, Roof, Roofline
from chipwise.report.charts import Chart, Trace, _layout
from chipwise.report.markup import label
from chipwise.text import duration

_INK, _QUIET, _GRID = "#1f2328", "#57606a", "#d8dee4"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up")
_MARKS = 6  # on an axis, at most: more would stand aslant on a narrow screen
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def roofline(data: Roofline | None) -> Chart | None:
    if data is None:
        return None
    points = [one for one in data.points if _drawable(one.flop, one.moved_bytes, one.seconds)]
    if not points or not _drawable(data.nominal.flop_per_s, data.nominal.bytes_per_s):
        return None
    intensities = [one.intensity for one in points] + [data.nominal.ridge]
    left, right = min(min(intensities) / 3, data.nominal.ridge / 12), max(intensities) * 4
    levels = [one.flop_per_s for one in points] + [data.reached.at(left)]
    low, high = min(levels) / 2, data.nominal.flop_per_s * 2
    traces = [
        _roof(
            data.nominal,
            left,
            right,
            f"data sheet: {_si(data.nominal.flop_per_s, 'FLOP/s')} {data.precision}, {_si(data.nominal.bytes_per_s, 'B/s')}",
            dashed=True,
        ),
        _roof(
            data.reached,
            left,
            right,
            f"reachable: {_si(data.reached.flop_per_s, 'FLOP/s')}, {_si(data.reached.bytes_per_s, 'B/s')}",
        ),
        *(_dot(one, data, at % len(_COLOURS)) for at, one in enumerate(points)),
    ]
    layout = _layout(
        430,
        xaxis=_axis("FLOP per byte of memory traffic", left, right, ""),
        yaxis=_axis("FLOP/s of one chip", low, high, "FLOP/s"),
        margin={"l": 78, "r": 20, "t": 16, "b": 130},
        legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
    )
    return Chart("roofline", tuple(traces), layout)


def points_text(data: Roofline) -> str:
    """What the picture says of each point, for those who do not see it."""
    sentences = []
    for point in data.points:
        limit = data.reached.at(point.intensity)
        resource = "memory" if point.intensity < data.reached.ridge else "arithmetic"
        sentences.append(
            f"{point.name[:1].upper()}{point.name[1:]}: {point.flop_per_s / limit:.0%} of what {resource} allows there"
        )
    return f"One {data.chip}. {'. '.join(sentences)}. The rest goes to links, launches, waiting and smaller kernels."


def _drawable(*values: float) -> bool:
    return all(math.isfinite(value) and value > 0 for value in values)


def _roof(roof: Roof, left: float, right: float, name: str, dashed: bool = False) -> Trace:
    ridge = min(max(roof.ridge, left), right)
    intensities = [left, ridge, right]
    line: dict[str, Any] = {"color": _QUIET if dashed else _INK, "width": 1.5 if dashed else 2}
    if dashed:
        line["dash"] = "dash"
    return {
        "type": "scatter",
        "mode": "lines",
        "x": intensities,
        "y": [roof.at(one) for one in intensities],
        "line": line,
        "name": label(name),
        "hoverinfo": "skip",
    }


def _dot(point: Point, data: Roofline, index: int) -> Trace:
    """Named in the legend: beside the point there may be no room on a narrow screen."""
    colour = _COLOURS[index]
    share = point.flop_per_s / data.nominal.flop_per_s
    lines = (
        point.name,
        f"{point.intensity:,.3g} FLOP per byte",
        f"{_si(point.flop_per_s, 'FLOP/s')}, {share:.1%} of the peak",
        f"{duration(point.seconds)} a pass",
    )
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [point.intensity],
        "y": [point.flop_per_s],
        "name": label(point.name),
        "marker": {"size": 12, "color": colour, "symbol": _SYMBOLS[index], "line": {"color": _INK, "width": 1}},
        "cliponaxis": False,
        "hoverinfo": "text",
        "hovertext": "<br>".join(map(label, lines)),
    }


def _axis(title: str, low: float, high: float, unit: str) -> dict[str, Any]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        marks = [digit * 10.0**power for power in powers for digit in digits if low <= digit * 10.0**power <= high]
        if len(marks) <= _MARKS:
            break
    return {
        "title": {"text": title, "standoff": 14},
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": marks,
        "ticktext": [_si(mark, "") if unit else f"{mark:,g}" for mark in marks],
        "tickangle": 0,
        "gridcolor": _GRID,
        "linecolor": _QUIET,
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
    }


def _si(value: float, unit: str) -> str:
    for factor, letter in _PREFIXES:
        if value >= factor:
            return f"{value / factor:.3g} {letter}{unit}".rstrip()
    return f"{value:.3g} {unit}".rstrip()
