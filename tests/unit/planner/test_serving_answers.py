"""What a plan of a service says beside its answer holds: what certainty costs, what is paid whatever the speed, what another
load would change."""

from __future__ import annotations

import re
from functools import cache

import pytest
import yaml

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.planner.explain.asking import LATENCY
from chipwise.planner.values.plan import Plan

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
    assert found.winner.load_chance > 0.85
