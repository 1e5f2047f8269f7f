"""The picture of the winner's limits: points where their numbers say, roofs that bend at their ridge, a text for each point."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date

import pytest

import plans
from chipwise.planner.explain.roofline import Point, Roof, Roofline
from chipwise.report import page as pages
from chipwise.report.chart import Lines, Points
from chipwise.report.roofline import points_text, roofline

FOUND = Roofline(
    "H100-SXM",
    "bf16",
    Roof(1e15, 3e12),
    Roof(7e14, 2.7e12),
    (Point("prefill of 500 tokens", 8e12, 2e10, 0.02), Point("decode of 16 sequences", 2.6e11, 1.6e10, 0.008)),
)


def test_points_stand_at_intensity_and_rate() -> None:
    chart = roofline(FOUND)
    assert chart is not None
    points = [series for series in chart.series if isinstance(series, Points)]
    dots = [dot for series in points for dot in series.dots]
    assert [(dot.x, dot.y) for dot in dots] == [(400.0, 4e14), (16.25, pytest.approx(3.25e13))]
    assert "40.0% of the peak" in dots[0].tip
    assert [series.name for series in points] == ["prefill of 500 tokens", "decode of 16 sequences"]


def test_a_roof_bends_where_arithmetic_takes_over() -> None:
    chart = roofline(FOUND)
    assert chart is not None
    lines = [series for series in chart.series if isinstance(series, Lines)]
    for line, roof in zip(lines, (FOUND.nominal, FOUND.reached), strict=True):
        left, ridge, right = map(float, line.xs)
        assert ridge == pytest.approx(roof.flop_per_s / roof.bytes_per_s)
        assert line.ys == pytest.approx([roof.bytes_per_s * left, roof.flop_per_s, roof.flop_per_s])
        assert left < 16.25 < 400 < right
    assert "1 PFLOP/s bf16, 3 TB/s" in chart.series[0].name


def test_everything_is_within_the_axes() -> None:
    chart = roofline(FOUND)
    assert chart is not None
    for axis, numbers in (
        (chart.x, [float(x) for series in chart.series for x in series.xs]),
        (chart.y, [float(y) for series in chart.series for y in series.ys if y is not None]),
    ):
        assert axis.span is not None
        low, high = axis.span
        values = [math.log10(number) for number in numbers]
        assert low <= min(values) + 1e-9
        assert max(values) <= high + 1e-9
        assert 2 <= len(axis.marks) <= 7


def test_the_text_tells_which_limit_each_point_is_near() -> None:
    text = points_text(FOUND)
    assert "Prefill of 500 tokens: 57% of what arithmetic allows there" in text
    assert "Decode of 16 sequences: 74% of what memory allows there" in text


@pytest.mark.parametrize("points", [(), (Point("none", 0.0, 1.0, 1.0),), (Point("endless", 1.0, 1.0, math.inf),)])
def test_without_a_point_there_is_no_picture(points: tuple[Point, ...]) -> None:
    assert roofline(replace(FOUND, points=points)) is None
    assert roofline(None) is None


def test_the_page_has_it_only_where_it_is_known() -> None:
    day = date(2026, 11, 15)
    made = pages.page(plans.plan(), day, FOUND)
    assert 'id="chart-roofline"' in made
    start = made.index('id="chart-roofline"')
    slim = made[made.index("main-svg slim", start) : made.index("</svg></div>", start)]
    assert slim.count('class="scatterlayer"') == 4
    assert "chart-roofline" not in pages.page(plans.plan(), day)


def test_names_from_outside_are_text() -> None:
    bad = replace(FOUND, chip=plans.HOSTILE, precision=plans.HOSTILE, points=(replace(FOUND.points[0], name=plans.HOSTILE),))
    chart = roofline(bad)
    assert chart is not None
    assert not any("<script" in series.name for series in chart.series)
