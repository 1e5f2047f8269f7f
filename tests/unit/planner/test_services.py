"""Services that are paid by use, beside a plan's machines: laws of their bills, goals, limits and crossings."""

from __future__ import annotations

from datetime import date
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.api.catalog.check import check
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.errors import BadInput
from chipwise.money.break_even import BreakEven
from chipwise.planner.explain.reason_words import words
from chipwise.planner.explain.words import headline
from chipwise.planner.load.plan import with_recording
from chipwise.planner.reasons.goals import OverBudget, UnsureLatency
from chipwise.planner.reasons.limits import OtherWeights, RuleKind
from chipwise.planner.reasons.sizes import HoldsTooLittle
from chipwise.planner.services import offers as planning_services
from chipwise.planner.services.offer import PER_HOUR, PER_TOKEN, SERVERLESS, ServiceOffer
from chipwise.planner.services.offers import LISTED, services_for
from chipwise.planner.services.tokens import unsold_note
from chipwise.text import usd_interval
from chipwise.workload.kinds import Serve
from effort import cases

CASES = Path(__file__).resolve().parents[2] / "cases"
SESSION = Session(Config(Path("none/config"), Path("none/data")), date(2026, 11, 15), [])
CHAT = "kind: serve\nname: chat\nmodel: llama-3.1-8b\narrival: 0.01 req/s\ninput_tokens: 500\noutput_tokens: 150\n"
MACHINE = ((500.0, 50.0),)  # USD a month, requests per second


def serve(**change: Any) -> Serve:
    chat = {"name": "chat", "model": "llama-3.1-8b", "arrival": "0.01 req/s", "input_tokens": 500, "output_tokens": 150}
    return Serve.model_validate(chat | change)


def case(name: str) -> Serve:
    work = check(SESSION, str(CASES / f"{name}.yaml"), None).workload
    assert isinstance(work, Serve)
    return work


def found(work: Serve, dedicated: Any = MACHINE) -> tuple[ServiceOffer, ...]:
    return services_for(SESSION.known, work, dedicated)


def by_name(offers: tuple[ServiceOffer, ...]) -> dict[tuple[str, str, str, str], ServiceOffer]:
    return {(one.provider, one.service, one.hardware, one.model + str(one.certain)): one for one in offers}


def test_services_of_all_kinds_answer_with_lines_that_sum() -> None:
    offers = found(serve())
    assert {one.kind for one in offers if one.allowed} == {SERVERLESS, PER_TOKEN, PER_HOUR}
    for one in offers:
        if one.cost is not None:
            assert one.usd is not None
            assert isclose(one.usd, sum(line.usd for line in one.cost.lines), rel_tol=1e-9)
            assert one.usd > 0
        else:
            assert one.refused


def test_a_service_on_gpus_keeps_latency_goals_as_surely_as_machines_must() -> None:
    def unsure(confidence: float) -> set[str]:
        goals = {"tpot": "25ms", "confidence": confidence}
        return {
            f"{one.service} {one.hardware}"
            for one in found(serve(goals=goals))
            if any(isinstance(reason, UnsureLatency) for reason in one.refused)
        }

    assert unsure(0.5) < unsure(0.99)


def test_those_that_may_be_used_come_first_the_cheapest_before_the_others() -> None:
    offers = found(serve())
    assert [one.allowed for one in offers] == sorted((one.allowed for one in offers), reverse=True)
    sure = [one.usd for one in offers if one.allowed and one.certain]
    assert sure == sorted(sure, key=lambda usd: usd or 0.0)


def test_every_service_has_its_own_seconds_and_states_what_was_assumed() -> None:
    offers = [one for one in found(serve()) if one.kind == SERVERLESS and one.cost is not None]
    fast = {one.chips: one.seconds_per_request for one in offers}
    assert fast[("H100-SXM",)] is not None
    assert fast[("L4",)] is not None
    assert fast[("H100-SXM",)] < fast[("L4",)]
    assert all(one.assumed and one.cold_start_s is not None for one in offers)


@settings(max_examples=cases(8))
@given(st.floats(1e-4, 5.0), st.floats(1.5, 20.0))
def test_tokens_cost_in_proportion_to_the_rate(rate: float, times: float) -> None:
    one, more = (by_name(found(serve(arrival={"rate": r}), ())) for r in (rate, rate * times))
    for key, offer in one.items():
        if offer.kind == PER_TOKEN:
            assert isclose((more[key].usd or 0.0), times * (offer.usd or 0.0), rel_tol=1e-9)


def test_business_hours_cost_their_share_of_always() -> None:
    office = {"kind": "business-hours", "time_zone": "Europe/Berlin", "start": "08:00", "end": "18:00"}
    always, part = by_name(found(serve())), by_name(found(serve(schedule=office)))
    for key, offer in always.items():
        if offer.usd is not None and part[key].usd is not None:
            assert isclose(part[key].usd or 0.0, offer.usd * 50 / 168, rel_tol=1e-9)


def test_a_rare_request_meets_a_cold_start_and_a_tight_tail_is_refused_with_the_number() -> None:
    offers = found(serve(arrival="0.003 req/s", goals={"ttft": {"p99": "2s"}}))
    cold = [one for one in offers if one.kind == SERVERLESS and any("cold start" in words(why) for why in one.refused)]
    kept = [one for one in offers if one.kind == SERVERLESS and one.allowed]
    assert all(one.warm_instances >= 1 for one in kept)  # without an instance kept warm the goal cannot hold
    assert all(one.goals[0].met for one in kept)
    for one in cold:
        assert any("the goal 2 s" in words(why) for why in one.refused)


def test_people_who_can_wait_need_nothing_kept_warm() -> None:
    offers = [one for one in found(case("chat-8b-rare")) if one.kind == SERVERLESS and one.allowed]
    cheapest = offers[0]
    assert cheapest.warm_instances == 0
    assert cheapest.cold_share > 0.5
    assert cheapest.goals[0].predicted_s > (cheapest.seconds_per_request or 0.0)


@pytest.mark.parametrize(("tight", "loose"), [("5s", "60s"), ("30s", "300s")])
def test_a_looser_goal_never_costs_more_nor_refuses_more(tight: str, loose: str) -> None:
    strict, easy = (by_name(found(serve(goals={"latency": {"p95": limit}}))) for limit in (tight, loose))
    for key, offer in strict.items():
        if offer.allowed:
            assert easy[key].allowed
            assert (easy[key].usd or 0.0) <= (offer.usd or 0.0) * (1 + 1e-9)


def test_nobody_states_the_speed_of_managed_services_so_goals_stay_unchecked() -> None:
    offers = [one for one in found(serve(goals={"ttft": {"p95": "1s"}})) if one.kind == PER_TOKEN]
    assert offers
    assert all(one.unchecked and not one.goals for one in offers)


def test_where_data_must_stay_a_service_of_unknown_region_is_refused() -> None:
    offers = found(serve(limits={"residency": "DEU"}))
    assert not any(one.allowed for one in offers)
    assert all(any("asked for DEU" in words(why) for why in one.refused) for one in offers)
    american = [one for one in found(serve(limits={"residency": "USA"})) if one.allowed]
    assert {one.service for one in american} == {"aws bedrock"}  # its prices name us-east-1


def test_compliance_and_clouds_are_kept() -> None:
    allowed = [one for one in found(case("health-chat")) if one.allowed]
    assert {one.provider for one in allowed} == {"aws"}
    assert all(any("hipaa" in word for word in one.assumed) for one in allowed)
    clouds = {one.provider for one in found(serve(limits={"clouds": ["gcp", "runpod"]})) if one.allowed}
    assert clouds <= {"gcp", "runpod"}
    assert clouds


def test_owned_only_and_other_chips_refuse_what_is_rented_or_unknown() -> None:
    assert not any(one.allowed for one in found(serve(limits={"where": "owned"})))
    chips = {one.chips for one in found(serve(limits={"chips": "l4"})) if one.allowed}
    assert chips == {("L4",)}


def test_a_model_that_does_not_fit_says_how_much_is_missing() -> None:
    offers = found(serve(model="llama-3.1-70b", precision="bf16"))
    small = next(one for one in offers if one.chips == ("L4",) and one.provider == "modal")
    assert small.cost is None
    assert "GiB a chip are missing" in words(small.refused[0])
    lambda_ = next(one for one in offers if one.service == "Lambda")
    assert isinstance(lambda_.refused[0], HoldsTooLittle)


def test_another_training_of_the_shape_is_refused() -> None:
    offers = [one for one in found(serve(model="deepseek-v3")) if one.kind == PER_TOKEN]
    assert any(isinstance(why, OtherWeights) for one in offers for why in one.refused)
    assert all("r1" not in one.model.casefold() for one in offers if one.allowed)


def test_a_small_classifier_runs_on_functions_for_cents() -> None:
    offers = found(case("classifier-rare"))
    assert not offers[0].chips
    assert (offers[0].usd or 0.0) < 10
    assert {one.kind for one in offers} == {SERVERLESS, PER_HOUR}


def test_from_the_break_even_rate_on_the_machine_is_cheaper() -> None:
    first = next(one for one in found(serve()) if one.kind == PER_TOKEN and one.allowed)
    assert first.break_even is not None
    rate = first.break_even.first
    assert rate is not None
    below, above = (
        next(one for one in found(serve(arrival={"rate": rate * k})) if one.model == first.model and one.kind == PER_TOKEN)
        for k in (0.98, 1.02)
    )
    assert (below.usd or 0.0) < MACHINE[0][0] < (above.usd or 0.0)
    assert first.told_break_even == f"a dedicated machine is cheaper above {rate:.3g} requests a second"


@pytest.mark.parametrize(
    ("kind", "provider", "chip", "goals"),
    [
        (PER_TOKEN, "aws", "rtx-pro-6000-se", "{ttft: {p90: 1s}, tpot: {p90: 60ms}}"),
        (SERVERLESS, "runpod", "h100-sxm", "{latency: {p90: 300s}}"),  # of people who wait for a cold start
    ],
)
def test_over_a_day_the_break_even_is_that_of_plans_for_other_rates_of_the_same_shape(
    kind: str, provider: str, chip: str, goals: str
) -> None:
    """Planned again at rates around it: below the service costs less than the machines, above the machines do."""

    def at(peak: float) -> tuple[float, float, BreakEven]:
        text = (
            f"kind: serve\nname: chat\nmodel: llama-3.1-8b\narrival: {{peak: {peak:g} req/s, low: {peak / 18:g} req/s, "
            "shape: office-hours}\ninput_tokens: 1000\noutput_tokens: 300\n"
            f"goals: {goals}\nlimits: {{clouds: [{provider}], chips: [{chip}], interruptible: false}}\n"
        )
        machines = plan(SESSION, "day.yaml", text=text).winner
        assert machines is not None
        work = check(SESSION, "day.yaml", None, text=text).workload
        assert isinstance(work, Serve)
        work = with_recording(SESSION.known, work, "day.yaml")
        offers = services_for(SESSION.known, work, machines, "day.yaml")
        service = next(one for one in offers if one.kind == kind and one.provider == provider)
        assert service.usd is not None
        assert service.break_even is not None
        assert work.arrival.rate is not None
        means.append(peak / work.arrival.rate)
        return machines.usd, service.usd, service.break_even

    means: list[float] = []
    *_, crossing = at(9.0)
    assert crossing.first is not None
    machines_usd, service_usd, _ = at(0.9 * crossing.first * means[0])
    assert service_usd < machines_usd
    machines_usd, service_usd, _ = at(1.15 * (crossing.always or crossing.first) * means[0])
    assert machines_usd < service_usd


def test_an_endpoint_on_whole_machines_is_no_serverless_service_and_needs_no_more_of_them_than_the_plan() -> None:
    chat = serve(arrival="20 req/s", input_tokens=1000, output_tokens=300, limits={"clouds": ["aws"]})
    offers = [one for one in found(chat) if one.hardware.startswith("ml.") and one.cost is not None]
    assert {one.kind for one in offers} == {PER_HOUR}
    assert all((one.instances or 0.0) >= 1.0 for one in found(serve()) if one.kind == PER_HOUR and one.cost is not None)
    text = CHAT.replace("0.01 req/s", "20 req/s").replace("500", "1000").replace("150", "300")
    for name, chip in (("ml.p4d.24xlarge", "a100-40"), ("ml.g5.12xlarge", "a10g")):
        same = next(one for one in offers if one.hardware == name)
        machines = plan(SESSION, "chat.yaml", text=f"{text}limits: {{clouds: [aws], chips: [{chip}]}}\n").choices
        own = next(one for one in machines if f"ml.{one.machine}" == name)
        assert same.instances is not None
        assert same.instances <= own.machines + 0.5


def test_a_service_has_the_age_of_its_price_and_an_old_one_says_so_first() -> None:
    endpoint = next(one for one in found(serve()) if one.hardware.startswith("ml.g5"))
    assert endpoint.price_days == (date(2026, 11, 15) - date(2025, 1, 26)).days
    limited = found(serve(limits={"max_price_age": "90d"}))
    assert not any(one.allowed for one in limited if one.price_days > 90)
    assert any(one.allowed for one in limited)
    later = Session(Config(Path("none/config"), Path("none/data")), date(2027, 6, 1), [])
    answer = plan(later, "chat.yaml", text=CHAT)
    assert answer.service is not None
    assert answer.service.price_days > 180
    assert "old: ask for today's" in headline(answer)
    fresh = plan(
        Session(Config(Path("none/config"), Path("none/data")), date(2026, 11, 15), []), "chat.yaml", text=CHAT
    ).service
    assert fresh is not None
    assert fresh.low_usd <= fresh.usd <= fresh.high_usd
    assert answer.service.high_usd / answer.service.usd >= fresh.high_usd / fresh.usd > 1.0
    assert usd_interval(answer.service.low_usd, answer.service.high_usd, answer.service.usd) in headline(answer)


def test_a_cheaper_machine_breaks_even_no_later() -> None:
    dear, cheap = (by_name(found(serve(), ((usd, 1.0),))) for usd in (800.0, 300.0))
    pairs = [(dear[key].break_even, cheap[key].break_even) for key in dear]
    compared = [(one.first, other.first) for one, other in pairs if one and other]
    assert compared
    assert all(b is not None and b <= a * (1 + 1e-6) for a, b in compared if a is not None)


def test_of_several_machines_the_one_that_is_cheaper_first_counts() -> None:
    both, cheap = (by_name(found(serve(), machines)) for machines in (((800.0, 1.0), (300.0, 1.0)), ((300.0, 1.0),)))
    for key, one in both.items():
        other = cheap[key].break_even
        assert (one.break_even and one.break_even.first) == (other and other.first)


def test_the_plans_choice_is_what_services_are_held_against() -> None:
    path = str(CASES / "chat-8b-low.yaml")
    choice = plan(SESSION, path).winner
    assert choice is not None
    offers = services_for(SESSION.known, case("chat-8b-low"), choice, path)
    compared = [one for one in offers if one.break_even is not None]
    assert compared
    assert all(one.told_break_even for one in compared)


def test_without_machines_nothing_is_compared() -> None:
    assert all(one.break_even is None for one in found(serve(), ()))


def test_arrivals_without_a_rate_are_not_reckoned() -> None:
    with pytest.raises(BadInput, match="arrivals at a rate"):
        found(serve(arrival={"concurrency": 4}))


def test_values_are_frozen() -> None:
    one = found(serve())[0]
    with pytest.raises(AttributeError):
        one.kind = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["chat-8b-low", "chat-8b-busy"])
def test_what_is_left_out_is_dearer_than_what_is_listed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    listed = [one for one in services_for(SESSION.known, case(name)) if one.kind == SERVERLESS and one.allowed]
    monkeypatch.setattr(planning_services, "LISTED", 10**6)
    every = [one for one in services_for(SESSION.known, case(name)) if one.kind == SERVERLESS and one.allowed]
    cheapest = sorted(one.usd or 0.0 for one in every)[:LISTED]
    assert sorted(one.usd or 0.0 for one in listed)[: len(cheapest)] == cheapest


def test_a_model_that_nobody_sells_by_the_token_is_told_with_the_nearest() -> None:
    (note,) = unsold_note(SESSION.known, serve(model="falcon-40b"))
    assert note.startswith("Nobody whose prices are known sells falcon-40b per token; the nearest in size that is sold: ")
    near = note.partition("sold: ")[2].partition(",")[0]
    sizes = [SESSION.find_model(name).shape.active_parameters for name in ("falcon-40b", near)]
    assert 0.5 < sizes[0] / sizes[1] < 2
    assert unsold_note(SESSION.known, serve()) == ()
    assert unsold_note(SESSION.known, serve(model="bert-base", output_tokens=None)) == ()


def test_bursts_cost_a_service_more_starts_and_are_said() -> None:
    plain, bursty = (by_name(found(serve(arrival={"rate": 0.02, "burstiness": c}), ())) for c in (1, 6))
    compared = 0
    for key, offer in plain.items():
        burst = bursty.get(key)
        if offer.kind != SERVERLESS or offer.usd is None or burst is None or burst.usd is None:
            continue
        compared += 1
        assert burst.instances != offer.instances
        assert any("bursts counted as phases" in one for one in burst.assumed)
        assert not any("bursts counted" in one for one in offer.assumed)
    assert compared > 3


def test_a_service_that_beats_all_machines_says_which_number_formats_were_compared() -> None:
    text = """
kind: serve
name: chat
model: llama-3.1-8b
input_tokens: 500
output_tokens: 150
arrival: {rate: 3}
limits: {clouds: [aws]}
"""
    found_plan = plan(SESSION, "case.yaml", text=text)
    assert found_plan.winner is not None
    told = [one.break_even for one in found_plan.services if one.break_even.startswith("a dedicated machine is not")]
    assert told
    assert all(f"machines in {found_plan.winner.precision}" in one for one in told)
    narrow = any(one.kind is RuleKind.PRECISION for one in found_plan.alternatives)
    assert narrow == any("; in fp8 " in one for one in told)


def test_services_above_the_budget_are_refused_and_come_last() -> None:
    free = plan(SESSION, "w.yaml", text=CHAT)
    prices = sorted(one.usd for one in free.services if not one.refused)
    assert len(prices) >= 2
    budget = (prices[0] + prices[-1]) / 2
    held = plan(SESSION, "w.yaml", text=f"{CHAT}goals: {{budget: {budget}}}\n").services
    assert all(one.refused for one in held if one.usd > budget)
    assert any(isinstance(why, OverBudget) for one in held for why in one.refused)
    assert [bool(one.refused) for one in held] == sorted(bool(one.refused) for one in held)
