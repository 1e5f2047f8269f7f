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
from chipwise.report.charts import TOP, costs, memory, pareto


def test_stacked_bars_sum_to_the_cost() -> None:
    plan = plans.plan()
    chart = costs(plan)
    assert chart is not None
    totals = [sum(trace["x"][at] for trace in chart.data) for at in range(len(plan.choices))]
    assert totals == pytest.approx([one.usd for one in plan.choices])
    assert max(totals) < chart.layout["xaxis"]["range"][1]


def test_bars_of_the_same_machine_do_not_fall_together() -> None:
    plan = plans.plan(choices=(plans.choice(),) * 20)
    chart = costs(plan)
    assert chart is not None
    assert len(set(chart.data[0]["y"])) == TOP


def test_a_choice_whose_memory_is_unknown_gets_no_bar() -> None:
    chart = memory(plans.plan())
    assert chart is not None
    assert chart.data[0]["x"] == pytest.approx([80, 80, 95, 80])
    assert memory(plans.service()) is None


def test_every_choice_and_every_point_of_the_front_is_drawn_once() -> None:
    plan = plans.plan()
    chart = pareto(plan)
    assert chart is not None
    drawn = [y for trace in chart.data if trace.get("showlegend") is False for y in trace["y"]]
    assert sorted(drawn) == sorted(one.usd for one in plan.choices)


def test_the_edge_falls_with_time_and_rises_with_rate() -> None:
    for plan, falling in ((plans.plan(), True), (plans.service(), False)):
        chart = pareto(plan)
        assert chart is not None
        edge = next(trace for trace in chart.data if trace["mode"] == "lines")
        assert edge["x"] == sorted(edge["x"])
        assert all((a > b) is falling for a, b in pairwise(edge["y"]))


def test_without_choices_there_are_no_charts() -> None:
    assert [chart(plans.nothing()) for chart in (pareto, costs, memory)] == [None, None, None]


@given(st.lists(st.tuples(st.floats(0.01, 1e9), st.floats(1, 1e9), st.floats(0, 1e9)), min_size=1, max_size=12))
def test_no_value_falls_out_of_a_scale(values: list[tuple[float, float, float]]) -> None:
    chosen = tuple(replace(plans.choice(), cost=Cost.of((Line("compute", usd),)), seconds=s, kg=kg) for usd, s, kg in values)
    chart = pareto(plans.plan(choices=chosen, front=()))
    assert chart is not None
    for axis, side in (("xaxis", "x"), ("yaxis", "y")):
        found = chart.layout[axis]
        if found.get("type") == "log":
            points = [math.log10(one) for trace in chart.data for one in trace[side] if one is not None]
            assert found["range"][0] < min(points) <= max(points) < found["range"][1]
            assert len(found["tickvals"]) == len(found["ticktext"]) <= 12
    colour = chart.layout["coloraxis"]
    tones = [tone for trace in chart.data if trace.get("showlegend") is False for tone in trace["marker"]["color"]]
    assert all(tone is None or colour["cmin"] <= tone <= colour["cmax"] for tone in tones)
