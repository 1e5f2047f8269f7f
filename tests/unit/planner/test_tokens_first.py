"""What is paid by the token comes first where it is the best valid answer: the model, format and time that were asked for."""

from __future__ import annotations

from datetime import date
from math import isclose
from pathlib import Path
from typing import Any

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.planner.explain.reason_words import words
from chipwise.planner.explain.words import headline
from chipwise.planner.reasons.abilities import OtherFormat
from chipwise.planner.services.demand import demand_of
from chipwise.planner.services.offer import PER_TOKEN, ServiceOffer
from chipwise.planner.services.offers import services_for
from chipwise.planner.values.plan import Plan
from chipwise.workload.kinds import Serve

SESSION = Session(Config(Path("none/config"), Path("none/data")), date(2026, 11, 15), [])
JOB = "kind: batch\nname: notes\nmodel: llama-3.3-70b\nitems: 2000\ninput_tokens: 3000\noutput_tokens: 300\n"


def chat(**change: Any) -> Serve:
    usual = {"name": "chat", "model": "llama-3.1-8b", "arrival": "0.01 req/s", "input_tokens": 500, "output_tokens": 150}
    return Serve.model_validate(usual | change)


def sold(work: Serve) -> list[ServiceOffer]:
    return [one for one in services_for(SESSION.known, work, ((500.0, 50.0),)) if one.kind == PER_TOKEN]


def planned(text: str) -> Plan:
    found = plan(SESSION, "w.yaml", text=text)
    assert isinstance(found, Plan)
    return found


def serve_text(model: str, more: str = "") -> str:
    return f"kind: serve\nname: chat\nmodel: {model}\narrival: 0.01 req/s\ninput_tokens: 1000\noutput_tokens: 300\n{more}"


def test_a_narrower_format_than_published_is_refused_unless_asked_for() -> None:
    unasked = [one for one in sold(chat(model="llama-4-maverick")) if one.precision is not None]
    assert unasked
    assert all(not one.allowed for one in unasked)
    assert any("is served in fp8; the weights are published in bf16" in words(why) for one in unasked for why in one.refused)
    for limits in ({"precision": ["fp8", "bf16"]}, {"precision": "any"}):
        asked = [one for one in sold(chat(model="llama-4-maverick", limits=limits)) if one.precision == "fp8"]
        assert not any(isinstance(why, OtherFormat) for one in asked for why in one.refused)


def test_weights_published_in_fp8_are_served_in_it_everywhere() -> None:
    fp8 = [one for one in sold(chat(model="deepseek-v3")) if one.precision == "fp8"]
    assert not any(isinstance(why, OtherFormat) for one in fp8 for why in one.refused)
    assert demand_of(SESSION.known, chat(model="deepseek-v3"), "deepseek-v3", (), "").need.precisions[0] == "fp8"


def test_a_name_apart_from_the_plain_model_is_doubted() -> None:
    offers = sold(chat())
    assert {one.hardware for one in offers if one.format_doubted} == {"turbo"}
    assert {one.hardware for one in offers if not one.format_doubted and one.allowed} == {""}
    assert not any(one.format_doubted for one in sold(chat(limits={"precision": "any"})))


def test_the_plain_model_leads_though_a_faster_name_is_cheaper() -> None:
    found = planned(serve_text("llama-3.1-8b"))
    assert found.service is not None
    assert (found.service.kind, found.service.hardware) == (PER_TOKEN, "")
    assert any(one.hardware == "turbo" and one.usd < found.service.usd for one in found.services)
    assert headline(found).startswith("Use ")


def test_machines_lead_where_a_format_was_asked_for_that_no_service_states() -> None:
    found = planned(serve_text("llama-3.1-8b", "precision: bf16\n"))
    assert found.service is None
    assert found.winner is not None
    assert headline(found).startswith("Rent ")
    assert "(more than 99% less), but its number format is not stated." in headline(found)


def test_what_may_no_longer_be_sold_comes_second() -> None:
    found = planned(serve_text("qwen3-4b"))
    assert found.unsure_service is not None
    assert not found.unsure_service.certain
    assert "but ask whether it is still sold at this price." in headline(found)


def test_a_small_job_is_paid_by_the_token_where_that_costs_less() -> None:
    found = planned(JOB)
    assert found.service is not None
    assert found.winner is not None
    assert found.service.usd < found.winner.usd
    row = next(
        row
        for row in SESSION.known.catalog.rows("tokens")
        if row.provider == found.service.name and row.model == "meta-llama/Llama-3.3-70B-Instruct"
    )
    assert row.input_usd_per_mtok is not None
    assert row.output_usd_per_mtok is not None
    by_hand = 2000 * (3000 * row.input_usd_per_mtok + 300 * row.output_usd_per_mtok) / 1e6
    assert isclose(found.service.usd, by_hand, rel_tol=1e-9)
    assert headline(found).startswith(f"Use {found.service.title}, paid per token: ")


def test_machines_lead_where_a_job_has_a_deadline_or_is_too_long_for_one_request_after_the_other() -> None:
    for text in (f"{JOB}goals: {{deadline: 12h}}\n", JOB.replace("2000", "200k")):
        found = planned(text)
        assert found.service is None
        assert found.winner is not None
        beside = found.unsure_service
        if beside is not None:
            assert "its speed is not published: how long it takes is not known" in headline(found)
        assert any(one.unchecked for one in found.services)


def test_what_gives_no_answer_in_tokens_has_no_services() -> None:
    assert planned("kind: batch\nname: vectors\nmodel: bge-large-en\nitems: 2000\ninput_tokens: 300\n").services == ()
