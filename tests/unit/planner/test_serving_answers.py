"""What a plan of a service says beside its answer holds: what certainty costs, what is paid whatever the speed, what another
load would change."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import yaml

import chipwise
from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.money.cost import Cost
from chipwise.planner.explain.asking import LATENCY, SCALING
from chipwise.planner.explain.turning import _doubtful
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.public.plans import NoPlan

pytestmark = pytest.mark.real_catalog

CHAT = {"kind": "serve", "name": "chat", "model": "llama-3.1-70b", "input_tokens": 1000, "output_tokens": 300}
GOALS = {"ttft": "800ms", "tpot": "50ms"}


@cache
def chat(rate: float, confidence: float | None = None) -> Plan:
    goals = GOALS if confidence is None else {**GOALS, "confidence": confidence}
    return plan(open_session(), "case.yaml", None, text=yaml.safe_dump({**CHAT, "arrival": {"rate": rate}, "goals": goals}))


def latency(found: Plan) -> str:
    return next(one.told for one in found.answers if one.question == LATENCY)


@pytest.mark.parametrize("rate", [4.0, 8.0, 10.0])
def test_a_price_of_certainty_is_what_the_stated_confidence_answers(rate: float) -> None:
    text = latency(chat(rate))
    surely = chat(rate, 0.9).winner
    assert surely is not None
    assert "of them, about" not in text
    for price in re.findall(r"carries it with \d+% for (\$[\d,]+)", text):
        assert price == f"${surely.usd:,.0f}"


def test_of_what_costs_nearly_the_same_the_one_leads_that_surely_carries_the_load() -> None:
    found = chat(8.0)
    assert found.winner is not None
    assert found.winner.load_chance is not None
    assert found.rows is not None
    near = [found.rows.choice(at) for at in found.rows.eligible[:30].tolist()]
    cheapest = min(one.usd for one in near)
    surest = max(one.load_chance or 0.0 for one in near if one.usd <= 1.03 * cheapest)
    assert found.winner.load_chance > min(surest, 0.9) - 0.1


@cache
def office(peak: float) -> Plan:
    day = {"peak": peak, "low": 0.5, "shape": "office-hours"}
    work = {**CHAT, "model": "llama-3.1-8b", "arrival": day, "goals": {"ttft": "1s", "tpot": "50ms"}}
    return plan(open_session(), "case.yaml", None, text=yaml.safe_dump(work))


@pytest.mark.parametrize("peak", [4.0, 9.0])
def test_the_low_end_of_a_cost_holds_the_machine_that_is_always_up(peak: float) -> None:
    found = office(peak)
    winner = found.winner
    assert winner is not None
    assert winner.over_time is not None
    alone = winner.over_time.always_cost.usd / winner.machines
    assert winner.low_usd >= 0.999 * alone
    assert found.load is None or found.load.low_usd >= 0.999 * alone


def test_one_more_machine_costs_at_most_its_hours() -> None:
    found = office(9.0)
    winner = found.winner
    assert winner is not None
    assert winner.over_time is not None
    text = next(one.told for one in found.turns if one.what == "headroom")
    assert f"One more machine would cost at most ${winner.over_time.always_cost.usd / winner.machines:,.0f} a month" in text


def turns_of(found: Plan) -> dict[str, str]:
    return {one.what: one.told for one in found.turns}


@pytest.mark.parametrize("found", [lambda: chat(8.0), lambda: chat(10.0), lambda: office(4.0), lambda: office(9.0)])
def test_loads_that_change_the_answer_are_on_their_side_of_the_asked_one(found: Callable[[], Plan]) -> None:
    turns, rows = turns_of(found()), found().rows
    assert rows is not None
    for what, side in (("more load", 1.0), ("less load", -1.0)):
        for rate in re.findall(r"(?:above|up to) ([\d.]+) requests a second", turns.get(what, "")):
            assert side * (float(rate) - rows.load) > 0.0
            assert "seeweb" not in turns[what], "its price is more doubtful than the answer's"


def costing(choice: Choice, share: float) -> Cost:
    return Cost.of(replace(line, usd=share * line.usd) for line in choice.cost.lines)


def test_the_price_that_changes_the_answer_mentions_a_nearer_doubtful_one() -> None:
    winner = chat(10.0).winner
    assert winner is not None
    rival = replace(winner, machine="rival", cost=costing(winner, 1.3))
    doubtful = replace(winner, machine="nearer", cost=costing(winner, 1.05), doubt="currency not stated", doubt_share=1.0)
    said = _doubtful(winner, rival, (winner, doubtful, rival))
    assert said.endswith("nearer costs 5% more, but its price is doubtful (currency not stated)")
    assert _doubtful(winner, rival, (winner, replace(doubtful, cost=costing(winner, 1.4)), rival)) == "", "it is farther away"
    assert _doubtful(winner, rival, (winner, rival)) == ""


def test_a_little_less_load_that_saves_a_machine_is_named_with_what_it_saves() -> None:
    work = {**CHAT, "goals": GOALS, "limits": {"clouds": ["aws"], "chips": ["h100"]}}
    any_load = plan(open_session(), "case.yaml", None, text=yaml.safe_dump({**work, "arrival": {"rate": 10}}))
    assert any_load.winner is not None
    with_headroom = re.findall(r"([\d.]+) with headroom", next(one.told for one in any_load.answers if one.question == SCALING))
    slightly_more = 1.03 * float(with_headroom[0]) / any_load.winner.machines  # more than a hair, which would be spared
    found = plan(open_session(), "case.yaml", None, text=yaml.safe_dump({**work, "arrival": {"rate": slightly_more}}))
    text = next(one.told for one in found.answers if one.question == SCALING)
    rate, saved = re.findall(r"1 machine carries up to ([\d.]+) req/s: so much less load saves \$([\d,]+)\.", text)[0]
    less = plan(open_session(), "case.yaml", None, text=yaml.safe_dump({**work, "arrival": {"rate": float(rate)}}))
    assert found.winner is not None
    assert less.winner is not None
    assert found.winner.usd - less.winner.usd == pytest.approx(float(saved.replace(",", "")), rel=0.001)


def test_nothing_within_a_budget_names_the_options_that_are_and_the_service() -> None:
    goals = {**GOALS, "budget": "15k/month"}
    found = chipwise.plan({**CHAT, "arrival": {"rate": 10}, "goals": goals})
    assert isinstance(found, NoPlan)
    text = str(found)
    for words in ('precision="fp8"', 'market="any"', "Use deepinfra, paid per token"):
        assert words in text, text
    assert chipwise.plan({**CHAT, "arrival": {"rate": 10}, "goals": goals, "precision": "fp8"})
