"""The duration curve on the page: areas that are the layers, and names that are no markup."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import plans
from chipwise.money.layering import Layer
from chipwise.planner.values.load import LoadPlan, MachineHours
from chipwise.report.load_chart import day_chart, duration, load_table

LOAD = LoadPlan(
    pattern="bursty",
    unit="requests/s",
    mean=4.0,
    busiest=9.0,
    peak=10.0,
    hours_per_week=168.0,
    provider="aws",
    machine="m",
    region="<b>r</b>",
    chip="L4",
    per_machine=1.0,
    replicas_mean=4,
    replicas_peak=10,
    machines_mean=4,
    machines_peak=10,
    machine_hours=MachineHours(7300.0, 7300.0, 3280.0),
    layers=(Layer("reserved-1y", 4, 2920.0, 2920.0, 2000.0), Layer("on-demand", 6, 360.0, 360.0, 500.0)),
    usd=2500.0,
    alone=(),
    steps=((4, 670.0), (10, 60.0)),
    recommendation="Keep <4>.",
    changed="",
    kind_count=3,
)


def test_areas_hold_the_machine_hours_of_their_layers() -> None:
    chart = duration(replace(plans.service(), load=LOAD))
    assert chart is not None
    for series, layer in zip(chart.series, LOAD.layers, strict=True):
        widths = [float(after) - float(before) for before, after in pairwise(series.xs)]
        area = sum(width * float(height or 0.0) for width, height in zip(widths, series.ys, strict=False))
        assert area == pytest.approx(layer.hours_used)


def test_a_load_that_never_changes_has_no_chart() -> None:
    flat = replace(LOAD, steps=((4, 730.0),), layers=LOAD.layers[:1])
    assert duration(replace(plans.service(), load=flat)) is None
    assert duration(plans.service()) is None


OFFICE = tuple(
    (9.0, 3) if day < 5 and 8 <= hour < 18 else (0.5, 1) for day in range(7) for hour in range(24)
)  # of a week, from Monday on


def test_the_load_of_a_day_is_drawn_by_the_hour_with_its_machines_and_the_weekend_apart() -> None:
    chart = day_chart(replace(plans.service(), load=replace(LOAD, by_hour=OFFICE)))
    assert chart is not None
    working, weekend, machines = chart.series
    assert working.ys == [9.0 if 8 <= hour < 18 else 0.5 for hour in range(24)]
    assert weekend.ys == [0.5] * 24
    assert machines.ys == [3 if 8 <= hour < 18 else 1 for hour in range(24)]
    alike = day_chart(replace(plans.service(), load=replace(LOAD, by_hour=OFFICE[:24] * 7)))
    assert alike is not None
    assert [series.name for series in alike.series] == ["requests/s", "machines that are up"]


def test_a_day_that_nobody_tells_or_that_never_changes_is_not_drawn() -> None:
    for by_hour in ((), ((1.0, 1),) * 168):
        assert day_chart(replace(plans.service(), load=replace(LOAD, by_hour=by_hour))) is None
    assert day_chart(plans.service()) is None


def test_names_are_escaped() -> None:
    shown = load_table(replace(plans.service(), load=replace(LOAD, changed="<script>")))
    assert "&lt;4&gt;" in shown
    assert "<script>" not in shown
    assert "<b>" not in shown
