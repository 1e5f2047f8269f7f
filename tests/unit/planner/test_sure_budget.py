"""A budget is kept by the expected cost, and the answer says how far it may be exceeded; with a stated confidence it is kept
with that probability."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.planner.reasons.goals import OverBudget
from chipwise.planner.values.plan import Plan
from chipwise.views.plan import plan_view

TRAIN: dict[str, Any] = {
    "kind": "finetune",
    "name": "tune",
    "model": "llama-3.1-8b",
    "method": "lora",
    "tokens": "200M",
    "limits": {"chips": ["h100", "a100", "l40s"], "interruptible": False},
}
SERVE: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 5},
    "input_tokens": 500,
    "output_tokens": 200,
    "limits": {"chips": ["h100", "a100", "l4"]},
}
WORKS = {"job": TRAIN, "month": SERVE}


@cache
def planned(per: str, budget: float | None = None, confidence: float | None = None) -> Plan:
    goals: dict[str, Any] = {} if budget is None else {"budget": f"${budget:.2f}{'/month' if per == 'month' else ''}"}
    goals |= {} if confidence is None else {"confidence": confidence}
    return plan(open_session(), "case.yaml", None, text=yaml.safe_dump({**WORKS[per], "goals": goals}))


def said(found: Plan) -> str:
    return next(one.told for one in found.answers if one.question == "Budget:")


@pytest.mark.parametrize("per", ["job", "month"])
def test_the_expected_cost_counts_and_the_answer_says_how_far_it_may_go(per: str) -> None:
    free = planned(per).winner
    assert free is not None
    budget = 1.001 * free.usd
    found = planned(per, budget)
    assert found.winner is not None
    assert found.winner.usd <= budget < found.winner.high_usd
    assert "It may be exceeded: one time in ten the cost is above $" in said(found)
    ample = planned(per, 3.0 * free.high_usd)
    assert "may be exceeded" not in said(ample)
    assert plan_view(found)["winner"]["usd_at_confidence"] is None


@pytest.mark.parametrize("per", ["job", "month"])
def test_a_stated_confidence_counts_for_the_budget(per: str) -> None:
    free = planned(per, None, 0.95).winner
    assert free is not None
    assert free.sure_usd is not None
    assert free.sure_usd > free.usd
    ample = planned(per, 1.001 * free.sure_usd, 0.95)
    assert ample.winner is not None
    assert ample.winner.sure_usd is not None
    assert ample.winner.sure_usd <= 1.001 * free.sure_usd
    assert "with 95% confidence" in said(ample)
    least = min(one.sure_usd or 0.0 for one in planned(per, None, 0.95).choices)
    short = planned(per, 0.5 * min(least, free.usd), 0.95)
    assert short.winner is None
    reason = next(one.reason for one in short.missing if isinstance(one.reason, OverBudget))
    assert reason.confidence == 0.95
    assert reason.usd > reason.limit_usd


def test_a_budget_between_the_expected_and_the_sure_cost_tells_the_two_apart() -> None:
    free = planned("job", None, 0.95).winner
    assert free is not None
    assert free.sure_usd is not None
    between = (free.usd * free.sure_usd) ** 0.5
    assert planned("job", between).winner is not None
    strict = planned("job", between, 0.95).winner
    assert strict is None or (strict.sure_usd or 0.0) <= between
