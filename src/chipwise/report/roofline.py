"""The roofline of the winner's chip, and where its work stands below it (S. Williams et al., Roofline, CACM 52(4), 2009).

Both scales are logarithmic: FLOP per byte across, FLOP/s of one chip upwards. The dashed roof is the data sheet's; the solid
one what large kernels reach by the fitted model. A point near the slanted part waits for memory, one near the level part for
arithmetic, one far below both for something else: links, launches, the host.
"""

from __future__ import annotations

import math

from chipwise.planner.explain.roofline import Point, Roof, Roofline
from chipwise.report.chart import INK, QUIET, Axis, Chart, Dot, Lines, Points, Stroke
from chipwise.report.chart_parts import hover_text
from chipwise.report.markup import label
from chipwise.text import duration

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
    sheet = f"data sheet: {_si(data.nominal.flop_per_s, 'FLOP/s')} {data.precision}, {_si(data.nominal.bytes_per_s, 'B/s')}"
    reachable = f"reachable: {_si(data.reached.flop_per_s, 'FLOP/s')}, {_si(data.reached.bytes_per_s, 'B/s')}"
    return Chart(
        "roofline",
        (
            _roof(data.nominal, left, right, sheet, Stroke(QUIET, 1.5, "dash")),
            _roof(data.reached, left, right, reachable, Stroke(INK, 2)),
            *(_dot(one, data, at % len(_COLOURS)) for at, one in enumerate(points)),
        ),
        x=_axis("FLOP per byte of memory traffic", left, right, ""),
        y=_axis("FLOP/s of one chip", low, high, "FLOP/s"),
        height=284,
    )


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


def _roof(roof: Roof, left: float, right: float, name: str, stroke: Stroke) -> Lines:
    intensities = [left, min(max(roof.ridge, left), right), right]
    return Lines(intensities, [roof.at(one) for one in intensities], stroke, label(name))


def _dot(point: Point, data: Roofline, index: int) -> Points:
    """Named in the legend: beside the point there may be no room on a narrow screen."""
    share = point.flop_per_s / data.nominal.flop_per_s
    tip = hover_text(
        point.name,
        f"{point.intensity:,.3g} FLOP per byte",
        f"{_si(point.flop_per_s, 'FLOP/s')}, {share:.1%} of the peak",
        f"{duration(point.seconds)} a pass",
    )
    dot = Dot(point.intensity, point.flop_per_s, 12, _COLOURS[index], tip=tip)
    return Points(_SYMBOLS[index], (dot,), label(point.name))


def _axis(title: str, low: float, high: float, unit: str) -> Axis:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        marks = [digit * 10.0**power for power in powers for digit in digits if low <= digit * 10.0**power <= high]
        if len(marks) <= _MARKS:
            break
    figures = tuple((mark, _si(mark, "") if unit else f"{mark:,g}") for mark in marks)
    return Axis(title, span=(math.log10(low), math.log10(high)), is_log=True, marks=figures)


def _si(value: float, unit: str) -> str:
    for factor, letter in _PREFIXES:
        if value >= factor:
            return f"{value / factor:.3g} {letter}{unit}".rstrip()
    return f"{value:.3g} {unit}".rstrip()
