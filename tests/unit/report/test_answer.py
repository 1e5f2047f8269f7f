"""A report opens with the answer in numbers, then its cost against what else could be had, then the folded ranking."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

import plans
from chipwise.catalog.fact import UNKNOWN
from chipwise.catalog.price_tables import PriceHistory
from chipwise.money.layering import Layer
from chipwise.planner.explain.words import headline
from chipwise.planner.values.choice import OwnCosts
from chipwise.planner.values.load import LoadPlan, MachineHours
from chipwise.planner.values.plan import Plan
from chipwise.report import page as pages
from chipwise.report.answer import RIVALS, against, alike, answer_tiles
from chipwise.report.chart import Bar, Bars, Chart
from chipwise.report.history_chart import price_history
from chipwise.report.tables import ranking
from page_reading import Read

HOUR = 3600.0
TODAY = date(2026, 11, 15)
SURE = replace(plans.choice(), low_usd=80.0, high_usd=150.0, late_share=0.034, by_s=12 * HOUR, hourly_usd=24.0)


def numbers(plan: Plan) -> dict[str, tuple[str, str]]:
    return {tile.label: (tile.value, tile.note) for tile in answer_tiles(plan)}


def bars(chart: Chart) -> tuple[Bar, ...]:
    (series,) = chart.series
    assert isinstance(series, Bars)
    return series.bars


def test_the_tiles_of_a_job_are_machine_cost_time_lateness_and_carbon() -> None:
    assert numbers(plans.plan(choices=(SURE,))) == {
        "machine": ("a3-highgpu-8g", "8 H100-SXM, gcp, europe-west4, NLD, spot"),
        "cost a job": ("$80.00-150", "$100 expected; price of 2026-08-21"),
        "time until done": ("10 h", "80% between 8 h and 13 h"),
        "probability of being late": ("3.4%", "done within 12 h, as sure as was asked"),
        "carbon a job": ("20 kg CO2e", "electricity, and 0 kg for making the hardware"),
    }


def test_the_carbon_of_the_tile_is_that_of_the_headline_and_says_what_making_adds() -> None:
    found = plans.plan(choices=(plans.choice(making_kg=5.0),))
    assert numbers(found)["carbon a job"] == ("20 kg CO2e", "electricity, and 5 kg for making the hardware")
    assert "20 kg CO2e" in headline(found)


def test_what_is_not_known_has_no_tile() -> None:
    shown = numbers(plans.plan())
    assert "probability of being late" not in shown
    assert shown["cost a job"] == ("$100", "price of 2026-08-21")
    late = replace(SURE, late_share=1e-9)
    assert numbers(plans.plan(choices=(late,)))["probability of being late"][0] == "under 0.1%"


def test_the_tiles_of_a_service_are_its_latency_and_its_room() -> None:
    first = replace(plans.service().choices[0], latency={"ttft p90": 0.42, "tpot p90": 0.03})
    shown = numbers(plans.service(choices=(first,)))
    assert shown["latency, ttft p90"] == ("420 ms", "tpot p90 30 ms, at the asked load")
    assert shown["capacity"] == ("15 requests a second", "within the goals")


def test_what_is_paid_per_use_is_the_first_tile_where_it_is_the_answer() -> None:
    plan = plans.service(services=(plans.per_use(usd=5.0),))
    assert next(iter(numbers(plan).items())) == ("the answer, paid per token", ("$5.00 a month", "nebius llama-3.1-8b"))
    chart = against(plan)
    assert chart is not None
    first, *others = bars(chart)
    assert [bar.length for bar in (first, *others)] == [5.0, 100.0, 200.0]
    assert len({bar.colour for bar in others}) == 1
    assert first.colour != others[0].colour


def test_layers_lead_where_they_cost_less_than_machines_bought_in_one_way() -> None:
    load = LoadPlan(
        pattern="bursty",
        unit="requests/s",
        mean=4.0,
        busiest=9.0,
        peak=10.0,
        hours_per_week=168.0,
        provider="aws",
        machine="m",
        region="r",
        chip="L4",
        per_machine=1.0,
        replicas_mean=4,
        replicas_peak=10,
        machines_mean=4,
        machines_peak=10,
        machine_hours=MachineHours(7300.0, 7300.0, 3280.0),
        layers=(Layer("reserved-1y", 4, 2920.0, 2920.0, 30.0), Layer("on-demand", 6, 360.0, 360.0, 20.0)),
        usd=50.0,
        alone=(),
        steps=(),
        recommendation="",
        changed="",
        kind_count=1,
        low_usd=40.0,
        high_usd=80.0,
    )
    shown = numbers(plans.service(load=load))
    assert shown["machine, in layers"] == ("m", "4 reserved-1y and 6 on-demand, aws m in r")
    assert shown["cost a month"] == ("$40.00-80.00", "$100 bought in one way")
    chart = against(plans.service(load=load))
    assert chart is not None
    first, *others = bars(chart)
    assert [bar.length for bar in (first, *others)] == [50.0, 100.0, 200.0]
    assert first.colour != others[0].colour
    dear = numbers(plans.service(load=replace(load, usd=99.0)))
    assert dear["machine"][0] == "a3-highgpu-8g"


def test_both_costs_of_own_hardware_stand_in_its_tile() -> None:
    own = replace(SURE, purchase="owned", own=OwnCosts(12.0, 100.0, False))
    assert numbers(plans.plan(choices=(own,)))["cost a job"] == ("$100", "$12.00 electricity alone, $100 in full (counted)")


def test_the_chart_sets_the_answer_against_the_next_that_differ_with_their_intervals() -> None:
    twin = replace(SURE, machine="other-8g", provider="aws", low_usd=90.0, high_usd=160.0)
    other = replace(SURE, chip="A100-40", low_usd=0.0, high_usd=0.0)
    chart = against(plans.plan(choices=(SURE, twin, other)))
    assert chart is not None
    assert [bar.interval for bar in bars(chart)] == [(80.0, 150.0), None]
    assert [note.text for note in chart.notes] == ["$80.00-150", "$100"]
    many = tuple(replace(SURE, machines=count) for count in range(1, 20))
    longest = against(plans.plan(choices=many))
    assert longest is not None
    assert len(bars(longest)) == RIVALS + 1
    assert against(plans.plan(choices=(SURE,))) is None
    assert against(plans.nothing()) is None


def test_near_duplicates_are_folded_below_the_best_of_them() -> None:
    elsewhere = replace(SURE, region="us-east1", cost=plans.choice(usd=120.0).cost)
    smaller = replace(SURE, machine="a3-highgpu-1g", chips=1, machines=8, cost=plans.choice(usd=130.0).cost)
    bought = replace(SURE, purchase="on-demand")
    table = ranking(plans.plan(choices=(SURE, elsewhere, bought, smaller)))
    assert len(re.findall("<tr data-family", table)) == 2
    folded = re.search(r"<details[^>]*><summary>([^<]*)</summary><ul>(.*?)</ul></details>", table)
    assert folded is not None
    assert folded[1] == "2 more alike, $120 to $130"
    assert "gcp a3-highgpu-8g in us-east1: $120, 10 h, price of 2026-08-21" in folded[2]
    assert "8 x gcp a3-highgpu-1g" in folded[2]
    assert alike((SURE, elsewhere, bought, smaller)) == [(1, SURE, [elsewhere, smaller]), (3, bought, [])]
    assert ">3<" in table  # the rank of what is bought, as in the plan
    assert "<details" not in ranking(plans.plan())


def test_the_order_is_numbers_chart_ranking_and_then_the_rest() -> None:
    found = Read(pages.page(plans.plan(), TODAY))
    wanted = ["numbers", "against", "choices", "how", "money"]
    assert [one["id"] for _, one in found.elements if one.get("id") in wanted] == wanted


ROW = PriceHistory("H100-SXM", "gpu-cloud", "on-demand", "2025-11", "2.5|2.6||2.8|2.9|3|3.1", 5, UNKNOWN)


def test_the_history_is_that_of_the_chosen_chip_by_the_month() -> None:
    rows = (ROW, ROW._replace(chip="L4"), ROW._replace(purchase="spot", usd_per_chip_hour="1|2||||"))
    chart = price_history(SURE, rows, TODAY)
    assert chart is not None
    line, star = chart.series
    assert line.xs == ["2025-11-01", "2025-12-01", "2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01", "2026-05-01"]
    assert line.ys == [2.5, 2.6, None, 2.8, 2.9, 3.0, 3.1]
    assert line.name == "GPU clouds, on-demand"
    assert (star.xs, star.ys) == (["2026-11-15"], [3.0])
    assert price_history(replace(SURE, chip="T4"), rows, TODAY) is None
