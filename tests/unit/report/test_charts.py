"""Charts show the plan's numbers: sums, order, and scales that no value falls out of."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plans
from chipwise.money.cost import Cost, Line
from chipwise.report.chart import Bars, Chart, Lines, Points
from chipwise.report.chart_parts import carbon_tone
from chipwise.report.charts import TOP, costs, memory, pareto


def bars(chart: Chart) -> list[Bars]:
    return [series for series in chart.series if isinstance(series, Bars)]


def test_stacked_bars_sum_to_the_cost() -> None:
    plan = plans.plan()
    chart = costs(plan)
    assert chart is not None
    totals = [sum(series.xs[at] for series in bars(chart)) for at in range(len(plan.choices))]
    assert totals == pytest.approx([one.usd for one in plan.choices])
    assert max(totals) < (chart.x.span or (0, 0))[1]


def test_bars_of_the_same_machine_do_not_fall_together() -> None:
    plan = plans.plan(choices=(plans.choice(),) * 20)
    chart = costs(plan)
    assert chart is not None
    assert len(set(bars(chart)[0].ys)) == TOP


def test_a_choice_whose_memory_is_unknown_gets_no_bar() -> None:
    chart = memory(plans.plan())
    assert chart is not None
    assert bars(chart)[0].xs == pytest.approx([80, 80, 95, 80])
    assert memory(plans.service()) is None


def test_every_choice_and_every_point_of_the_front_is_drawn_once() -> None:
    plan = plans.plan()
    chart = pareto(plan)
    assert chart is not None
    drawn = [y for series in chart.series if isinstance(series, Points) and series.shaded for y in series.ys]
    assert sorted(drawn) == sorted(one.usd for one in plan.choices)


def test_the_edge_falls_with_time_and_rises_with_rate() -> None:
    for plan, falling in ((plans.plan(), True), (plans.service(), False)):
        chart = pareto(plan)
        assert chart is not None
        edge = next(series for series in chart.series if isinstance(series, Lines))
        steps = [(float(x), y or 0.0) for x, y in zip(edge.xs, edge.ys, strict=True)]
        assert [x for x, _ in steps] == sorted(x for x, _ in steps)
        assert all((a > b) is falling for (_, a), (_, b) in pairwise(steps))


def test_without_choices_there_are_no_charts() -> None:
    assert [chart(plans.nothing()) for chart in (pareto, costs, memory)] == [None, None, None]


@given(st.lists(st.tuples(st.floats(0.01, 1e9), st.floats(1, 1e9), st.floats(0, 1e9)), min_size=1, max_size=12))
def test_no_value_falls_out_of_a_scale(values: list[tuple[float, float, float]]) -> None:
    chosen = tuple(replace(plans.choice(), cost=Cost.of((Line("compute", usd),)), seconds=s, kg=kg) for usd, s, kg in values)
    chart = pareto(plans.plan(choices=chosen, front=()))
    assert chart is not None
    for axis, numbers in (
        (chart.x, [float(x) for series in chart.series for x in series.xs]),
        (chart.y, [float(y) for series in chart.series for y in series.ys if y is not None]),
    ):
        if axis.is_log:
            assert axis.span is not None
            low, high = axis.span
            assert low < math.log10(min(numbers)) <= math.log10(max(numbers)) < high
            assert len(axis.marks) <= 12
    assert chart.scale is not None
    drawn = {(usd, s): kg for usd, s, kg in reversed(values)}  # of two that are alike but for their carbon, the first
    tones = [tone for kg in drawn.values() if (tone := carbon_tone(kg)) is not None]
    assert all(chart.scale.low <= tone <= chart.scale.high for tone in tones)
