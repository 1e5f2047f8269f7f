"""Stages of a pipeline beside each other: quotas that they share; and services that are paid by use as candidates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.explain.reason_words import missing_words, words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.views.pipeline import pipeline_view
from pipelines import FIRST, pipeline, planned, stages_planned_once
from small_catalog import real_session

pytestmark = pytest.mark.real_catalog  # on few offers the search over regions takes minutes


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with stages_planned_once():
        yield open_session()


# --- quotas that stages share


def side_by_side(limits: str, objective: str = "time") -> str:
    """Two that can run at the same time, and one behind both."""
    stages = [FIRST.replace("first", name).replace("1e17", "1e15") for name in ("one", "two", "last")]
    hand_offs = "hand_offs: [{from: one, to: last}, {from: two, to: last}]\n"
    return pipeline(
        *stages, rest=f"{hand_offs}limits: {{clouds: aws, chips: t4, {limits}}}\ngoals: {{objective: {objective}}}\n"
    )


def t4s(found: PipelinePlan) -> dict[str, float]:
    return {one.name: one.choice.chips * one.choice.machines for one in found.stages}


def test_stages_that_can_run_at_the_same_time_share_a_quota(session: Session) -> None:
    found = planned(session, side_by_side("quotas: {t4: 8}"))
    chips = t4s(found)
    assert chips["one"] + chips["two"] <= 8
    assert chips["last"] == 8  # it runs when both are done
    assert found.alone is not None
    assert found.alone.misses is not None
    assert "can run at the same time, which needs 16 t4, your quota is 8 (one 8, two 8)" in words(found.alone.misses)
    assert "needs 16 t4, your quota is 8" in words(found.refused[0].why)
    assert pipeline_view(found)["refused"] == [f"{one.combination}: {words(one.why)}" for one in found.refused]


def test_stages_one_after_the_other_each_have_the_quota_for_themselves(session: Session) -> None:
    stages = [FIRST.replace("first", name).replace("1e17", "1e15") for name in ("one", "two")]
    rest = "limits: {clouds: aws, chips: t4, quotas: {t4: 8}}\ngoals: {objective: time}\n"
    found = planned(session, pipeline(*stages, rest=rest))
    assert t4s(found) == {"one": 8, "two": 8}
    assert found.refused == ()


def test_a_quota_that_no_combination_keeps_is_told_with_the_least_that_would_do(session: Session) -> None:
    found = planned(session, side_by_side("quotas: {t4: 1}"))
    lack = found.lacks[0]
    assert (lack.stage, lack.missing.what) == ("", "quota")
    assert "one and two can run at the same time, which needs 2 t4, your quota is 1 (one 1, two 1)" in missing_words(
        lack.missing
    )
    assert "1 higher: 2 t4" in remedy_words(lack.missing)


def test_a_quota_that_only_stages_name_is_one_quota(session: Session) -> None:
    text = side_by_side("interruptible: false").replace("precision: fp32", "precision: fp32, limits: {quotas: {t4: 8}}")
    chips = t4s(planned(session, text))
    assert chips["one"] + chips["two"] <= 8
    assert chips["last"] == 8


def test_default_quotas_are_counted_region_by_region() -> None:
    """5 vCPUs of standard instances: two machines of 4 vCPUs may stand in two regions, not in one."""
    session = real_session()
    limits = "default_quotas: true, interruptible: false, regions: [us-east-1, us-east-2, us-west-2]"
    found = planned(session, side_by_side(limits).replace("t4", "graviton4"))
    one, two, last = (stage.choice for stage in found.stages)
    vcpus = [session.catalog.machines[session.catalog.machine_index["aws", each.machine]].vcpus for each in (one, two, last)]
    assert vcpus == [4, 4, 4]
    assert one.region != two.region
    assert "8 vCPU of aws Running On-Demand Standard" in words(found.refused[0].why)
    assert "the default quota is 5" in words(found.refused[0].why)


# --- services paid by use

ANSWER = "{kind: serve, name: answer, model: llama-3.1-8b, arrival: {rate: 0.2 req/s}, input_tokens: 500, output_tokens: 100}"
RENTED = "limits: {clouds: [aws, ovhcloud]}\n"


def test_a_service_that_is_cheaper_serves_a_stage(session: Session) -> None:
    alone = plan(session, "workload.yaml", "cost", text=f"{ANSWER[:-1]}, {RENTED.strip()}}}")
    assert alone.service is not None
    found = planned(session, pipeline(FIRST, ANSWER, rest=RENTED), "cost")
    stage = found.stages[1]
    assert stage.per_use
    assert stage.choice.usd == pytest.approx(alone.service.usd)
    assert found.totals is not None
    assert found.totals.unknown_kg == ("answer",)
    view = pipeline_view(found)["stages"][1]
    assert view["choice"]["co2e_kg"] is None
    assert view["paid_by_use"]
    assert any("answer: where ovhcloud runs it is not stated" in note for note in found.notes)


def test_what_emits_nobody_knows_how_much_is_no_answer_to_other_objectives(session: Session) -> None:
    for objective in ("time", "carbon", "balanced"):
        found = planned(session, pipeline(FIRST, ANSWER, rest=RENTED), objective)
        assert not any(one.per_use for one in found.stages)


def test_nobody_sells_by_the_token_what_a_pipeline_has_trained(session: Session) -> None:
    tuned = (
        "{kind: finetune, name: tune, model: llama-3.1-8b, method: lora, tokens: 1M, sequence_length: 512, batch_samples: 32}"
    )
    found = planned(session, pipeline(tuned, ANSWER, rest=RENTED), "cost")
    assert found.stages[1].choice.purchase != "per token"


def test_a_hand_off_to_a_service_pays_its_way_there(session: Session) -> None:
    moved = planned(
        session, pipeline(FIRST, ANSWER, rest=RENTED + "hand_offs: [{from: first, to: answer, size: 100GB}]\n"), "cost"
    )
    move, giver, taker = moved.hand_offs[0], moved.stages[0].choice, moved.stages[1].choice
    assert taker.provider == "ovhcloud"
    assert move.path == ("other region" if giver.provider == "ovhcloud" else "other cloud")
    assert move.seconds > 0


def test_a_stage_budget_holds_for_services_too(session: Session) -> None:
    tight = ANSWER.replace("{kind: serve", "{kind: serve, goals: {budget: $5/month}")
    found = planned(session, pipeline(FIRST, tight, rest=RENTED), "cost")
    assert not any(one.per_use for one in found.stages)
