"""Pipelines planned as a whole: money once and by the month, hand-offs, goals, and stages that cannot be placed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.catalog.check import check
from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan, plan_any, plan_any_checked
from chipwise.cli.progress import stages_planned
from chipwise.errors import BadInput, InvalidFile
from chipwise.money.transfer import Gravity
from chipwise.planner.explain.reason_words import missing_words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.pipeline import candidates as stage_candidates
from chipwise.planner.pipeline.hand_offs import Flow, Ways, flows_of, tables
from chipwise.planner.plan import plan_workload
from chipwise.planner.preference import Advantage
from chipwise.planner.reasons.goals import MissesDeadline
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.views.pipeline import pipeline_view
from chipwise.workload.parse import parse
from chipwise.workload.pipeline import Pipeline
from pipelines import EU, FIRST, SECOND, SERVICE, checked, pipeline, planned, stages_planned_once

pytestmark = pytest.mark.real_catalog  # on few offers the search over regions takes minutes

EXAMPLE = str(Path(__file__).resolve().parents[3] / "examples" / "pipeline" / "workload.yaml")


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with stages_planned_once():
        yield open_session()


# --- the example


OBJECTIVES = ("cost", "time", "carbon", "balanced")


@pytest.fixture(scope="module")
def examples(session: Session) -> dict[str, PipelinePlan]:
    """By objective."""
    made = {objective: plan_any(session, EXAMPLE, objective) for objective in OBJECTIVES}
    return {objective: checked(one) for objective, one in made.items() if isinstance(one, PipelinePlan)}


@pytest.fixture(params=OBJECTIVES)
def example(request: pytest.FixtureRequest, examples: dict[str, PipelinePlan]) -> PipelinePlan:
    return examples[request.param]


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


def test_each_objective_is_best_at_its_own(examples: dict[str, PipelinePlan]) -> None:
    found = {objective: one.totals for objective, one in examples.items() if one.totals is not None}
    assert set(found) == set(OBJECTIVES)
    assert found["cost"].usd <= 1.03 * min(one.usd for one in found.values())  # of near ties another may lead
    assert found["time"].seconds == min(one.seconds for one in found.values())
    assert found["carbon"].kg == min(one.kg for one in found.values())
    assert found["balanced"].balanced == min(one.balanced for one in found.values())


def test_a_report_lists_rivals_that_are_no_better_and_a_front_that_nothing_on_it_beats(session: Session) -> None:
    checked_file = check(session, EXAMPLE)
    found = plan_any_checked(session, EXAMPLE, checked_file, "balanced", reported=True)
    assert isinstance(found, PipelinePlan)
    checked(found)
    plain = plan_any(session, EXAMPLE, "balanced")
    assert isinstance(plain, PipelinePlan)
    assert found.totals is not None
    assert plain.totals is not None
    assert found.totals.balanced == pytest.approx(plain.totals.balanced)
    best = (found.totals.usd * found.totals.seconds * found.totals.kg) ** (1 / 3)
    for one in found.stages:
        assert one.rivals[0].choice == one.choice
        assert (
            len({(each.choice.machine, each.choice.purchase, each.choice.provider) for each in one.rivals})
            == len(one.rivals)
            > 3
        )
        scores = [(each.usd * each.seconds * each.kg) ** (1 / 3) for each in one.rivals]
        assert scores == sorted(scores)
        assert scores[0] == pytest.approx(best)
    points = [(each.totals.usd, each.totals.seconds, each.totals.kg) for _, each in found.front]
    assert len(points) > 3
    assert not any(all(a < b for a, b in zip(one, other, strict=True)) for one in points for other in points)


def test_nothing_is_ported_for_less_than_porting_costs(examples: dict[str, PipelinePlan]) -> None:
    """As for one workload: a service of a few hundred dollars a month stays on GPUs, and on none that is on its way out."""
    for objective in ("cost", "balanced"):
        assert not [one.name for one in examples[objective].stages if one.choice.needs_porting]
    assert not [one.choice.machine for found in examples.values() for one in found.stages if "inf1" in one.choice.machine]


def test_a_small_training_stage_is_not_ported(session: Session) -> None:
    work = "kind: train, name: learn, model: resnet-50, samples: 1M images, epochs: 40, batch_samples: 1024"
    alone = plan(session, "workload.yaml", text=f"{work.replace(', ', chr(10))}\nlimits: {{clouds: [aws, gcp]}}\n")
    assert alone.winner is not None
    assert not alone.winner.needs_porting
    assert alone.porting is not None, "what is ported is cheaper"
    found = planned(session, pipeline(f"{{{work}}}", rest="limits: {clouds: [aws, gcp]}\n"))
    assert found.stages[0].choice.machine == alone.winner.machine


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
    assert "items of second" in flows_of(work, work.stages)[0].basis


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
    work = check(session, "workload.yaml", text=text).workload
    at = stage_candidates.machines_of(found, "cost")
    some = stage_candidates.candidates_of(found, work, at, np.zeros((len(at), 0)), (), stage_candidates.Counts(), {}, set())
    rows = np.linspace(0, len(some.positions) - 1, 40).astype(np.intp)
    some.settle(rows)
    assert some.usd[rows] == pytest.approx([found.rows.choice(int(at)).usd for at in some.positions[rows]])
    assert (some.usd[rows] > found.rows.priced.usd[some.positions[rows]]).any()


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
    assert isinstance(fast.alone.misses, MissesDeadline)


def test_goals_that_cannot_be_kept_say_by_how_much(session: Session) -> None:
    found = planned(session, pipeline(FIRST, SECOND, rest=EU + "goals: {deadline: 1min, budget: $0.001}\n"))
    assert [(one.stage, one.missing.what) for one in found.lacks] == [("", "deadline"), ("", "budget")]
    assert all(missing_words(one.missing) and remedy_words(one.missing) for one in found.lacks)


def test_a_stage_that_may_not_carry_its_load_costs_up_to_a_tenth_more(session: Session) -> None:
    """As for the service alone: one chip leads before four cards of 48 GB that carry it with a probability of 80%."""
    service = (
        "{kind: serve, name: service, model: gpt-oss-120b, arrival: {rate: 1 req/s}, input_tokens: 1000, output_tokens: 500,"
        " goals: {tpot: {p90: 40ms}}, limits: {interruptible: false}}"
    )
    found = planned(session, pipeline(SECOND, service, rest=""))
    chosen = found.stages[1]
    assert chosen.choice.chips * chosen.choice.machines == 1
    assert (chosen.choice.load_chance or 0.0) > 0.9
    (tie,) = [one for one in found.near_ties if one.stage == "service"]
    assert tie.advantages == (Advantage.CARRIES,)
    assert (tie.choice.load_chance or 1.0) < 0.85
    assert chosen.choice.usd <= 1.1 * tie.choice.usd


def test_a_budget_counts_services_for_its_own_period(session: Session) -> None:
    base = planned(session, pipeline(FIRST, SERVICE))
    assert base.totals is not None
    once, monthly = base.totals.once.usd, base.totals.monthly.usd
    day = once + monthly * 86400 / (730.0 * 3600)
    assert planned(session, pipeline(FIRST, SERVICE, rest=f"{EU}goals: {{budget: ${day * 1.01:.4f}/day}}\n")).fits
    assert not planned(session, pipeline(FIRST, SERVICE, rest=f"{EU}goals: {{budget: ${day * 1.01:.4f}/month}}\n")).fits
    assert planned(session, pipeline(FIRST, SERVICE, rest=f"{EU}goals: {{budget: ${once + monthly * 1.01:.4f}}}\n")).fits


def test_a_stage_that_cannot_be_placed_is_named_with_what_it_lacks(session: Session) -> None:
    huge = "{kind: train, name: huge, model: llama-3.1-405b, tokens: 1B, precision: bf16, limits: {chips: t4}}"
    found = planned(session, pipeline(FIRST, huge))
    assert {one.stage for one in found.lacks} == {"huge"}
    assert "T4" in missing_words(found.lacks[0].missing)


def test_ways_laid_by_kind_are_those_of_every_pair(session: Session) -> None:
    places = [region.key for region in session.catalog.regions[::7]] + [("nebius", ""), ("edge", "here")]
    countries = {region.key: region.country for region in session.catalog.regions}
    ways = Ways(Gravity(session.catalog.rows("storage"), session.catalog.regions), frozenset({"edge"}), countries)
    flow = Flow(0, 1, 3e13, False, "")
    codes = list(range(len(places)))
    table = tables([flow], [codes, codes], places, ways, 1.0)[0]
    for here, giver in enumerate(places):
        for there, taker in enumerate(places):
            moved, seconds = ways.move(giver, taker, flow.size_bytes)
            assert table.usd[here, there] == pytest.approx(moved.usd)
            assert table.seconds[here, there] == pytest.approx(seconds)


def test_limits_of_the_pipeline_hold_for_every_stage(session: Session) -> None:
    found = planned(session, pipeline(FIRST, SECOND, rest="limits: {clouds: gcp, interruptible: false}\n"))
    assert all(one.choice.provider == "gcp" and one.choice.purchase != "spot" for one in found.stages)
    assert math.isfinite(found.totals.usd if found.totals else math.nan)


def test_each_stage_that_was_planned_is_told(session: Session) -> None:
    told: list[tuple[int, int | None, str]] = []
    work = parse(pipeline(FIRST, SECOND))
    plan_workload(session.known, "w.yaml", work, progress=lambda done, total, what: told.append((done, total, what)))
    assert [(done, total) for done, total, _ in told] == [(1, 2), (2, 2)]


def test_people_are_told_of_long_plans_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    stages_planned()(1, 2, "quick")
    stages_planned(every_s=0.0)(1, 2, "slow")
    assert capsys.readouterr().err == "1 of 2 stages planned\n"


NO_REGION = "limits: {clouds: [runpod]}\n"
HANDED = "hand_offs: [{from: first, to: second, size: 2TB}]\n"
ON_GPU = "{kind: batch, name: first, model: llama-3.1-8b, items: 5000, input_tokens: 100, output_tokens: 100}"


def test_what_moves_inside_a_provider_without_stated_regions_is_not_called_in_place(session: Session) -> None:
    """Its machines may stand in two countries: it is counted as another region, and no region is called the only one."""
    found = planned(session, pipeline(ON_GPU, SECOND, rest=NO_REGION + HANDED))
    assert {one.choice.place for one in found.stages} == {"region not stated"}
    (move,) = found.hand_offs
    assert move.path == "other region"
    assert move.seconds > 1000
    assert "runpod does not state its regions: counted as another one" in move.assumed
    assert found.one_region is None
    assert "It stays in one region" not in pipeline_view(found)["why"]


def test_the_risks_of_the_stages_are_said_as_those_of_a_single_workload(session: Session) -> None:
    one_copy = SERVICE.replace("rate: 40 req/s", "rate: 1 req/s")
    line = pipeline_view(planned(session, pipeline(one_copy)))["risks"]
    assert "service: one copy, no redundancy: downtime during restarts" in line
    found = planned(session, pipeline(FIRST, one_copy))
    line = pipeline_view(found)["risks"]
    assert line.startswith("Risks: ")
    assert line.endswith(".")
    assert "service: " in line
    if found.stages[0].choice.purchase == "spot":
        assert "first: spot interruptions possible" in line


def test_of_nearly_the_same_cost_the_sooner_leads(session: Session) -> None:
    """As of a single workload: within 3% of the stage's own cost, and the answer says what it was preferred to."""
    single = f"kind: hpc\nname: first\nsteps: 10\nflop_per_step: 1e17\nprecision: fp32\n{EU}"
    alone = plan(session, "w.yaml", text=single)
    found = planned(session, pipeline(FIRST))
    assert alone.winner is not None
    assert found.stages[0].choice.where == alone.winner.where
    assert found.stages[0].choice.usd == pytest.approx(alone.winner.usd)
    both = planned(session, pipeline(FIRST, SECOND))
    assert both.totals is not None
    for tie in both.near_ties:
        assert tie.usd < both.totals.usd <= 1.03 * tie.usd * (1 + 1e-9)
        assert tie.advantages
        assert f"{tie.stage}: chosen over" in pipeline_view(both)["why"]
