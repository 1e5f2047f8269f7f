"""Charts as SVG: figures on axes, and every point where its value is."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from chipwise.report.chart import Axis, Chart, Dot, Points, Value
from chipwise.report.chart_scales import scale_of
from chipwise.report.svg import WIDTHS, drawings

AXIS = Axis()


def points(xs: Sequence[Value], ys: Sequence[float], y: Axis = AXIS) -> Chart:
    dots = tuple(Dot(*pair, 8, "#0072b2") for pair in zip(xs, ys, strict=True))
    return Chart("test", (Points("circle", dots),), AXIS, y, height=250)


@pytest.mark.parametrize(
    ("high", "axis", "figures"),
    [
        (12.0, Axis(prefix="$", most_figures=6, from_zero=True), ["$0", "$2.5", "$5", "$7.5", "$10", "$12.5"]),
        (900e3, Axis(in_thousands=True, most_figures=4, from_zero=True), ["0", "250k", "500k", "750k"]),
        (0.004, Axis(most_figures=4, from_zero=True), ["0", "0.002", "0.004"]),
    ],
)
def test_figures_on_an_axis_are_round(high: float, axis: Axis, figures: list[str]) -> None:
    scale = scale_of(points([1.0], [high], y=axis), "y")
    assert [tick.text for tick in scale.ticks] == figures


def test_months_are_the_figures_of_dates() -> None:
    chart = points(["2025-01-01", "2026-06-01"], [1.0, 2.0])
    assert [tick.text for tick in scale_of(chart, "x").ticks] == [
        "2025-01",
        "2025-04",
        "2025-07",
        "2025-10",
        "2026-01",
        "2026-04",
    ]


@pytest.mark.parametrize("name", WIDTHS)
def test_points_stand_where_their_values_are(name: str) -> None:
    drawn = drawings(points([0.0, 5.0, 10.0], [1.0, 2.0, 3.0]), "Three points")
    mine = next(one for one in re.findall(r"<svg.*?</svg>", drawn) if f"main-svg {name}" in one)
    places = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', mine)]
    (x0, y0), (x1, y1), (x2, y2) = places  # and no legend
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert x0 < x1 < x2 <= WIDTHS[name]
    assert y0 > y1 > y2 >= 0
