"""Pipelines planned as a whole: limits of both, money once and by the month, hand-offs, and stages that cannot be placed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from chipwise.api import stage_candidates
from chipwise.api.hand_offs import flows_of
from chipwise.api.pipeline_views import pipeline_view
from chipwise.api.planning import plan
from chipwise.api.planning_any import plan_any
from chipwise.api.stage_limits import joined_limits
from chipwise.api.wiring import Session, open_session
from chipwise.errors import BadInput, InvalidFile
from chipwise.plan.pipeline import PipelinePlan
from chipwise.workload.goals import Limits
from chipwise.workload.parse import parse
from chipwise.workload.pipeline import Pipeline

EXAMPLE = str(Path(__file__).resolve().parents[3] / "examples" / "pipeline" / "workload.yaml")
FIRST = "{kind: hpc, name: first, steps: 10, flop_per_step: 1e17, precision: fp32}"
SECOND = "{kind: batch, name: second, model: llama-3.1-8b, items: 1000, input_tokens: 100, output_tokens: 10}"
SERVICE = "{kind: serve, name: service, model: resnet-50, arrival: {rate: 40 req/s}, goals: {latency: {p99: 100ms}}}"
EU = "limits: {residency: EU, clouds: [aws, gcp]}\n"


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session()


def pipeline(*stages: str, rest: str = EU) -> str:
    listed = "".join(f"- {one}\n" for one in stages)
    return f"kind: pipeline\nname: p\nstages:\n{listed}{rest}"


def planned(session: Session, text: str, objective: str | None = None) -> PipelinePlan:
    found = plan_any(session, "workload.yaml", objective, text=text)
    assert isinstance(found, PipelinePlan)
    return checked(found)


def checked(found: PipelinePlan) -> PipelinePlan:
    """What holds for every plan of a pipeline."""
    assert found.fits or found.lacks
    if found.totals is None:
        return found
    jobs = [one.choice.usd for one in found.stages if one.per == "job"]
    services = [one.choice.usd for one in found.stages if one.per == "month"]
    assert found.totals.once.usd == pytest.approx(sum(jobs) + sum(one.usd for one in found.hand_offs if one.per == "once"))
    assert found.totals.monthly.usd == pytest.approx(
        sum(services) + sum(one.usd for one in found.hand_offs if one.per == "month")
    )
    assert found.totals.seconds == pytest.approx(max(one.ready_s for one in found.stages))
    by_name = {one.name: one for one in found.stages}
    for move in found.hand_offs:
        giver, taker = by_name[move.source], by_name[move.to]
        assert taker.starts_s >= giver.ready_s + move.seconds - 1e-6
        same = (giver.choice.provider, giver.choice.region) == (taker.choice.provider, taker.choice.region)
        assert (move.path == "in place") == same
        assert move.usd == 0 or not same
    for one in found.stages:
        if one.per == "job":
            assert one.ready_s - one.starts_s == pytest.approx(one.choice.seconds)
    for other in (found.alone, found.one_region):
        if other is not None and not other.misses:
            mine = {"cost": found.totals.usd, "time": found.totals.seconds, "carbon": found.totals.kg}
            its = {"cost": other.totals.usd, "time": other.totals.seconds, "carbon": other.totals.kg}
            score = mine.get(found.objective, found.totals.balanced)
            assert score <= its.get(found.objective, other.totals.balanced) * (1 + 1e-6)
    return found


# --- the example


@pytest.fixture(scope="module", params=["cost", "time", "carbon", "balanced"])
def example(request: pytest.FixtureRequest, session: Session) -> PipelinePlan:
    found = plan_any(session, EXAMPLE, request.param)
    assert isinstance(found, PipelinePlan)
    return checked(found)


def test_the_example_keeps_limits_and_goals_of_both(example: PipelinePlan) -> None:
    assert [one.name for one in example.stages] == ["preprocess", "train", "optimise", "serve"]
    assert all(one.choice.provider in ("aws", "gcp", "ovh") for one in example.stages)
    train, serve = example.stages[1].choice, example.stages[3].choice
    assert train.seconds <= 48 * 3600
    assert serve.usd <= 2500
    assert serve.purchase != "spot"
    assert example.totals is not None
    assert example.totals.usd <= 15_000
    assert [one.size_bytes for one in example.hand_offs] == [120e9, 440e6, 115e6]


def test_the_view_is_plain_data_with_money_once_and_by_the_month(example: PipelinePlan) -> None:
    view = pipeline_view(example)
    assert view["schema"] == 1
    assert view["kind"] == "pipeline"
    assert view["totals"]["usd_once"] == pytest.approx(sum(line["usd"] for line in view["totals"]["once"]))
    assert [line["name"] for line in view["totals"]["monthly"]] == ["serve"]
    assert view["why"]


def test_each_objective_is_best_at_its_own(session: Session) -> None:
    found = {}
    for objective in ("cost", "time", "carbon", "balanced"):
        one = plan_any(session, EXAMPLE, objective)
        assert isinstance(one, PipelinePlan)
        assert one.totals is not None
        found[objective] = one.totals
    assert found["cost"].usd == min(one.usd for one in found.values())
    assert found["time"].seconds == min(one.seconds for one in found.values())
    assert found["carbon"].kg == min(one.kg for one in found.values())
    assert found["balanced"].balanced == min(one.balanced for one in found.values())


# --- stages and hand-offs


def test_a_pipeline_of_one_stage_is_planned_as_the_stage_is(session: Session) -> None:
    found = planned(session, pipeline(FIRST))
    alone = plan(session, "workload.yaml", text=f"{FIRST[1:-1].replace(', ', chr(10))}\n{EU}")
    assert alone.winner is not None
    assert found.stages[0].choice.usd == pytest.approx(alone.winner.usd)
    assert found.stages[0].choice == found.stages[0].alone
    assert found.hand_offs == ()


def test_stages_without_sizes_hand_on_nothing_and_say_so(session: Session) -> None:
    for rest in ("", "hand_offs: [{from: first, to: second}]\n"):
        found = planned(session, pipeline(FIRST, SECOND, rest=EU + rest))
        assert [one.how for one in found.hand_offs] == ["no size is given: nothing moves"]
        assert found.stages[1].starts_s == pytest.approx(found.stages[0].ready_s)


def test_a_heavy_hand_off_keeps_stages_together(session: Session) -> None:
    light = planned(session, pipeline(FIRST, SECOND))
    heavy = planned(session, pipeline(FIRST, SECOND, rest=EU + "hand_offs: [{from: first, to: second, size: 500TB}]\n"))
    assert {one.choice.region for one in heavy.stages} == {heavy.stages[0].choice.region}
    assert heavy.totals is not None
    assert light.totals is not None
    assert heavy.totals.usd >= light.totals.usd


def test_sizes_per_item_count_the_items_of_the_giver_or_else_of_the_taker() -> None:
    rest = "hand_offs: [{from: first, to: second, size_per_item: 3GB}, {from: second, to: service, size_per_item: 1kB}]\n"
    work = parse(pipeline(FIRST, SECOND, SERVICE, rest=rest))
    assert isinstance(work, Pipeline)
    flows = flows_of(work, work.stages)
    assert [one.size_bytes for one in flows] == [30e9, 1e6]
    assert not any(one.monthly for one in flows)
    single = FIRST.replace("steps: 10, ", "")  # one step is no count of items
    work = parse(pipeline(single, SECOND, rest="hand_offs: [{from: first, to: second, size_per_item: 3GB}]\n"))
    assert isinstance(work, Pipeline)
    assert flows_of(work, work.stages)[0].size_bytes == 3e12
    assert "items of second" in flows_of(work, work.stages)[0].how


def test_what_a_service_gives_flows_every_month_and_delays_nobody(session: Session) -> None:
    rest = "hand_offs: [{from: service, to: first, size_per_item: 10kB}]\n"
    found = planned(session, pipeline(SERVICE, FIRST, rest=EU + rest))
    move = found.hand_offs[0]
    assert move.per == "month"
    assert move.size_bytes == pytest.approx(40 * 10e3 * 730.07 * 3600, rel=1e-3)
    assert found.stages[1].starts_s == pytest.approx(found.stages[0].ready_s)


def test_items_that_nobody_counts_are_a_mistake_in_the_file(session: Session) -> None:
    people = "{kind: interactive, name: NAME, people: 3, memory: 10GB}"
    stages = (people.replace("NAME", "one"), people.replace("NAME", "two"))
    with pytest.raises(BadInput, match=r"hand_offs\[0\].size_per_item: neither one nor two"):
        planned(session, pipeline(*stages, rest="hand_offs: [{from: one, to: two, size_per_item: 1GB}]\n"))


def test_a_hand_off_of_nothing_is_a_mistake_in_the_file(session: Session) -> None:
    with pytest.raises(InvalidFile, match="above zero"):
        planned(session, pipeline(FIRST, SECOND, rest="hand_offs: [{from: first, to: second, size: 0GB}]\n"))


def test_a_stage_that_cannot_be_planned_is_named(session: Session) -> None:
    with pytest.raises(BadInput, match=r"Stage second: .*output_tokens"):
        planned(session, pipeline(FIRST, SECOND.replace(", output_tokens: 10", "")))


def test_the_pipelines_data_is_read_by_what_takes_from_nobody(session: Session) -> None:
    found = planned(session, pipeline(FIRST, SECOND, rest=EU + 'data: {size: 50TB, place: "aws:eu-west-1"}\n'))
    assert found.stages[0].choice.region == "eu-west-1"
    assert any("read by first" in note for note in found.notes)


def test_storage_is_what_the_planner_chooses_for_the_row(session: Session) -> None:
    text = f"{FIRST[1:-1].replace(', ', chr(10))}\ndata: {{size: 20TB, place: 'aws:eu-west-1', files: 1M}}\n{EU}"
    found = plan(session, "workload.yaml", text=text)
    assert found.rows is not None
    from chipwise.api.workloads import check

    work = check(session, "workload.yaml", text=text).workload
    some = stage_candidates.candidates_of(found, work, {}, set())
    rows = np.linspace(0, len(some.at) - 1, 40).astype(np.intp)
    some.settle(rows)
    assert some.usd[rows] == pytest.approx([found.rows.choice(int(at)).usd for at in some.at[rows]])
    assert (some.usd[rows] > found.rows.priced.usd[some.at[rows]]).any()


# --- goals


def test_a_deadline_of_the_whole_makes_stages_faster_and_dearer(session: Session) -> None:
    slow = planned(session, pipeline(FIRST, SECOND))
    assert slow.totals is not None
    wanted = slow.totals.seconds / 3
    fast = planned(session, pipeline(FIRST, SECOND, rest=f"{EU}goals: {{deadline: {wanted:.0f}s}}\n"))
    assert fast.totals is not None
    assert fast.totals.seconds <= wanted
    assert fast.totals.usd > slow.totals.usd
    assert fast.alone is not None
    assert "misses the deadline" in fast.alone.misses


def test_goals_that_cannot_be_kept_say_by_how_much(session: Session) -> None:
    found = planned(session, pipeline(FIRST, SECOND, rest=EU + "goals: {deadline: 1min, budget: $0.001}\n"))
    assert [(one.stage, one.missing.what) for one in found.lacks] == [("", "deadline"), ("", "budget")]
    assert all(one.missing.how_much and one.missing.remedy for one in found.lacks)


def test_a_budget_counts_services_for_its_own_period(session: Session) -> None:
    base = planned(session, pipeline(FIRST, SERVICE))
    assert base.totals is not None
    once, monthly = base.totals.once.usd, base.totals.monthly.usd
    day = once + monthly * 86400 / (730.0 * 3600)
    assert planned(session, pipeline(FIRST, SERVICE, rest=f"{EU}goals: {{budget: ${day * 1.01:.4f}/day}}\n")).fits
    assert not planned(session, pipeline(FIRST, SERVICE, rest=f"{EU}goals: {{budget: ${day * 1.01:.4f}/month}}\n")).fits
    assert planned(session, pipeline(FIRST, SERVICE, rest=f"{EU}goals: {{budget: ${once + monthly * 1.01:.4f}}}\n")).fits


def test_a_stage_that_cannot_be_placed_is_named_with_what_it_lacks(session: Session) -> None:
    huge = "{kind: train, name: huge, model: llama-3.1-405b, tokens: 1B, limits: {chips: t4}}"
    found = planned(session, pipeline(FIRST, huge))
    assert {one.stage for one in found.lacks} == {"huge"}
    assert "T4" in found.lacks[0].missing.how_much


# --- limits of both


def test_lists_of_both_are_intersected_by_what_names_mean(session: Session) -> None:
    whole = Limits(clouds=("aws", "gcp"), residency=("EU",), chips=("h100", "a100"), precision=("bf16", "fp8"))
    own = Limits(clouds=("amazon",), residency=("Germany", "USA"), chips=("H100-SXM",), precision=("fp8",))
    found = joined_limits(session, whole, own, "s")
    assert found.clouds == ("aws",)
    assert found.residency == ("DEU",)
    assert found.chips == ("H100-SXM",)
    assert found.precision == ("fp8",)


def test_regions_are_intersected_with_their_cloud(session: Session) -> None:
    found = joined_limits(session, Limits(regions=("eu-west-1", "eu-north-1")), Limits(regions=("aws:eu-north-1",)), "s")
    assert found.regions == ("aws:eu-north-1",)


def test_the_stricter_of_both_holds(session: Session) -> None:
    whole = Limits(power_watts=500, interruptible=True, chip_count={"min": 2, "max": 64}, quotas={"h100": 8, "a100": 4})
    own = Limits(power_watts=300, interruptible=False, chip_count={"min": 4}, quotas={"h100": 16}, compliance=("hipaa",))
    found = joined_limits(session, whole, own, "s")
    assert found.power_watts == 300
    assert found.interruptible is False
    assert (found.chip_count.min, found.chip_count.max) == (4, 64)
    assert dict(found.quotas) == {"h100": 8, "a100": 4}
    assert found.compliance == ("hipaa",)
    both = joined_limits(session, Limits(avoid={"clouds": "ovh"}), Limits(avoid={"clouds": "gcp", "chips": "t4"}), "s")
    assert both.avoid.clouds == ("ovh", "gcp")
    assert both.avoid.chips == ("t4",)


SET = {
    "clouds": "aws", "regions": "aws:eu-west-1", "countries": "DEU", "residency": "DEU", "compliance": "hipaa",
    "chips": "H100-SXM", "chip_count": {"min": 2, "max": 3}, "precision": "fp8", "interruptible": True, "where": "cloud",
    "power_watts": 300, "quotas": {"h100": 8}, "default_quotas": True, "requires": "cuda>=12.4", "avoid": {"chips": "t4"},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(Limits.model_fields))
def test_every_limit_of_either_holds(session: Session, name: str) -> None:
    one, none = Limits.model_validate({name: SET[name]}), Limits()
    for found in (joined_limits(session, one, none, "s"), joined_limits(session, none, one, "s")):
        assert getattr(found, name) == getattr(one, name)
    assert joined_limits(session, none, none, "s") == none


def test_limits_that_exclude_each_other_are_told_with_stage_and_field(session: Session) -> None:
    with pytest.raises(BadInput, match=r"limits.clouds of stage s allows gcp, and that of the pipeline aws"):
        joined_limits(session, Limits(clouds=("aws",)), Limits(clouds=("gcp",)), "s")
    with pytest.raises(BadInput, match=r"limits\.chip_count of stage s"):
        joined_limits(session, Limits(chip_count={"max": 2}), Limits(chip_count={"min": 4}), "s")


def test_limits_of_the_pipeline_hold_for_every_stage(session: Session) -> None:
    found = planned(session, pipeline(FIRST, SECOND, rest="limits: {clouds: gcp, interruptible: false}\n"))
    assert all(one.choice.provider == "gcp" and one.choice.purchase != "spot" for one in found.stages)
    assert math.isfinite(found.totals.usd if found.totals else math.nan)
