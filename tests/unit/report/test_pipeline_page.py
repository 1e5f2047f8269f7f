"""The page of a pipeline: every stage, hand-off, rival and alternative, and nothing that a name could smuggle in."""

from __future__ import annotations

import re
from datetime import date
from html import unescape

import pytest

import pipeline_plans
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.report.chart import Bars, Points
from chipwise.report.pipeline_charts import stage_costs, stage_front, stage_times
from chipwise.report.pipeline_page import pipeline_page
from chipwise.report.stage_flow import BELOW, HIGH, HORIZONTAL_GAP, WIDE, stage_flow, width_of

TODAY = date(2026, 11, 15)


def shown(plan: PipelinePlan) -> str:
    return unescape(re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]+>", " ", pipeline_page(plan, TODAY), flags=re.S))


def test_the_page_tells_stages_hand_offs_totals_rivals_and_what_was_refused() -> None:
    told = shown(pipeline_plans.pipeline())
    for part in (
        "4 stages in 12.2 h for $121 and then $250 a month",
        "without serve",
        "prepare (hpc)",
        "120 GB, other cloud",
        "$10.80, 6 min",
        "1 GB",
        "stays in place",
        "nothing moves",
        "3 TB a month",
        "CO2e not known",
        "each stage by itself",
        "misses the deadline",
        "Stage train: who came next",
        "another",
        "which needs 16 h100, your quota is 8",
        "1,234 candidates",
        "A note.",
    ):
        assert part in told, part
    assert "all in one region" not in told


def test_where_nothing_fits_the_page_says_what_each_stage_lacks() -> None:
    told = shown(pipeline_plans.nothing())
    for part in ("Nothing fits.", "stage train", "T4 can hold 15 of the 24 GiB", "the whole", "needs 16 h100", "8 higher"):
        assert part in told
    assert 'class="chart"' not in pipeline_page(pipeline_plans.nothing(), TODAY)


def test_names_are_shown_as_they_are_and_run_nothing() -> None:
    page = pipeline_page(pipeline_plans.hostile(), TODAY)
    assert "<script>window.hurt" not in page
    assert "<img" not in page
    assert "window.hurt=1" in shown(pipeline_plans.hostile())


# --- the picture


def boxes(plan: PipelinePlan) -> list[tuple[float, float]]:
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"', stage_flow(plan))
    return [(float(x), float(y)) for x, y in found]


def test_boxes_do_not_overlap_and_takers_stand_below_givers() -> None:
    plan = pipeline_plans.pipeline()
    at = dict(zip([one.name for one in plan.stages], boxes(plan), strict=True))
    assert at["train"][1] == at["check"][1]
    assert abs(at["train"][0] - at["check"][0]) == WIDE + HORIZONTAL_GAP
    for one in plan.stages:
        for giver in one.after:
            assert at[one.name][1] >= at[giver][1] + HIGH + BELOW
    assert width_of(plan) == 2
    assert at["prepare"][0] == at["serve"][0] == (at["train"][0] + at["check"][0]) / 2


def test_a_chain_fits_a_telephone() -> None:
    width = re.search(r'<svg width="([\d.]+)"', stage_flow(pipeline_plans.chain()))
    assert width is not None
    assert float(width[1]) <= 372  # 400 less the margins


# --- charts


def test_bars_add_up_to_stages_and_what_they_hand_on() -> None:
    plan = pipeline_plans.pipeline()
    chart = stage_costs(plan)
    assert chart is not None
    sums = [sum(float(series.xs[at]) for series in chart.series) for at in range(len(plan.stages))]
    given = [sum(move.usd for move in plan.hand_offs if move.source == one.name) for one in plan.stages]
    assert sums == pytest.approx([one.choice.usd + out for one, out in zip(plan.stages, given, strict=True)])


def test_times_start_where_hand_offs_end() -> None:
    plan = pipeline_plans.pipeline()
    chart = stage_times(plan)
    assert chart is not None
    waits, runs = (series.bars for series in chart.series if isinstance(series, Bars))
    for wait, run, stage in zip(waits, runs, plan.stages, strict=True):
        assert wait.start is not None
        assert run.start is not None
        assert wait.start + wait.length == pytest.approx(run.start)
        assert (run.start + run.length) * 3600 == pytest.approx(stage.ready_s)


def test_the_front_holds_the_answer_and_every_other_point() -> None:
    plan = pipeline_plans.pipeline()
    chart = stage_front(plan)
    assert chart is not None
    points = [(dot.x, dot.y) for series in chart.series if isinstance(series, Points) for dot in series.dots if dot.tip]
    assert len(points) == len(plan.front)
    assert plan.totals is not None
    assert (plan.totals.seconds / 3600, plan.totals.usd) in points
    assert stage_front(pipeline_plans.chain()) is None
