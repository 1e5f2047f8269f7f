"""A budget is held against what a load takes over time, not against machines for its peak at all times."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.planner.explain.reason_words import missing_words, words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.explain.words import sentence
from chipwise.planner.reasons.goals import OverBudget
from chipwise.planner.values.plan import Plan

CHAT = """kind: serve
name: chat
model: llama-3.1-8b
arrival: {rate: 20 req/s, burstiness: 2}
schedule: {kind: bursts, times: 6, lasts: 2h, every: 1d}
input_tokens: 500
output_tokens: 200
limits: {clouds: [aws, gcp, azure]NATIVE}
"""
ANY_CHIP = CHAT.replace("NATIVE", "")
CHAT = CHAT.replace("NATIVE", ", chips: [A10G, L4, L40S, A100-80, H100]")  # the lowest cost leads, with nothing to port
STEADY = """kind: serve
name: steady
model: resnet-50
arrival: 50 req/s
limits: {clouds: aws}
"""
PEOPLE = """kind: interactive
name: people
people: 40
busy: 0.2
idle_after: 30min
memory: 20GiB
limits: {clouds: aws, interruptible: false}
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


PLANNED: dict[str, Plan] = {}  # by text: several laws ask what the load takes without a budget


def asked(session: Session, text: str, budget: float | None = None, goals: str = "") -> Plan:
    parts = [goals] if goals else []
    parts += [f"budget: ${budget:.2f}/month"] if budget is not None else []
    written = f"{text}goals: {{{', '.join(parts)}}}\n" if parts else text
    if written not in PLANNED:
        PLANNED[written] = plan(session, "workload.yaml", text=written)
    return PLANNED[written]


def layers(found: Plan) -> float:
    assert found.load is not None
    return found.load.usd


def always(found: Plan) -> float:
    """What the winner's machines for the peak cost at all times."""
    assert found.winner is not None
    assert found.winner.over_time is not None
    return found.winner.over_time.always_cost.usd


@pytest.mark.parametrize("text", [CHAT, PEOPLE])
def test_a_budget_between_the_layers_and_the_peak_finds_a_plan(session: Session, text: str) -> None:
    free = asked(session, text)
    assert layers(free) < 0.8 * always(free)
    budget = (layers(free) + always(free)) / 2
    found = asked(session, text, budget)
    assert found.winner is not None
    assert always(found) > budget
    assert found.winner.layered_usd is not None
    assert found.winner.layered_usd <= budget
    assert layers(found) <= budget
    assert "as the load goes" in sentence(found)
    assert any("budget is compared with the cost of the load over time" in note for note in found.notes)


def test_a_budget_under_the_layers_is_refused_with_their_cost(session: Session) -> None:
    free = asked(session, CHAT)
    found = asked(session, CHAT, layers(free) - 100)
    assert found.winner is None
    missing = next(one for one in found.missing if one.what == "budget")
    assert f": ${layers(free):,.0f} with machines that follow the load" in missing_words(missing)
    assert re.search(r"budget \$100(\.00)? higher", remedy_words(missing))
    assert asked(session, CHAT, layers(free) + 1).winner is not None


def test_machines_of_a_constant_load_are_not_said_to_follow_it(session: Session) -> None:
    refused = asked(session, STEADY, 1.0)
    assert refused.winner is None
    sentences = [missing_words(reason) for reason in refused.missing] + [
        words(reason.why) for reason in refused.losses if reason.why is not None
    ]
    assert any("exceeds the budget of $1.00" in reason for reason in sentences)
    assert not [reason for reason in sentences if "follow the load" in reason]


def test_everything_that_is_kept_can_be_paid(session: Session) -> None:
    budget = 1.2 * layers(asked(session, CHAT))
    found = asked(session, CHAT, budget)
    assert found.rows is not None
    assert 0 < found.rows.kept < len(found.rows.ranked)
    for at in found.rows.ranked[: found.rows.kept].tolist():
        one = found.rows.choice(at)
        assert one.layered_usd is not None
        assert one.layered_usd <= budget
    for loss in found.losses:
        if loss.choice is not None and isinstance(loss.why, OverBudget):
            assert loss.choice.layered_usd is not None
            assert loss.choice.layered_usd > budget
            assert loss.why.layered


def test_another_goal_still_refuses_what_the_budget_lets_pass(session: Session) -> None:
    found = asked(session, CHAT, 4000, "tpot: {p90: 1ms}")
    assert found.winner is None
    assert {one.what for one in found.missing} == {"latency"}


def test_of_a_load_that_never_changes_only_ways_to_pay_within_the_budget_are_shown(session: Session) -> None:
    free = asked(session, STEADY)
    assert free.winner is not None
    budget = 1.5 * free.winner.usd
    found = asked(session, STEADY, budget)
    assert found.winner is not None
    assert found.winner.where == free.winner.where
    assert all(one.layered_usd is not None and one.layered_usd <= budget for one in found.choices)
    assert sum(one.usd > budget for one in found.choices) == 0


def test_without_a_budget_nothing_is_layered_beside_the_plan(session: Session) -> None:
    found = asked(session, CHAT)
    assert all(one.layered_usd is None for one in found.choices)


def test_a_service_is_cheaper_only_where_it_beats_the_layers(session: Session) -> None:
    found = asked(session, ANY_CHIP, 5000)
    assert found.winner is not None
    assert found.load is not None
    cheapest = min(one.usd for one in found.services if all(isinstance(why, OverBudget) for why in one.refused))
    assert found.load.usd <= found.winner.usd < cheapest < always(found)
    assert found.service is None
