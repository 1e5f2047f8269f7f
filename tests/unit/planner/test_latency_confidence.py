"""Latency goals of a service are kept with the asked confidence: a chip that may be too slow for a request alone, which more
machines would not mend, comes after all that are surely fast enough."""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import yaml

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.planner.chances import NINE_OF_TEN, chance_within
from chipwise.planner.explain.asking import answers
from chipwise.planner.explain.asking_latency import Asked
from chipwise.planner.explain.risks import risk_line
from chipwise.planner.explain.turning import turns
from chipwise.planner.ranking import Values, order
from chipwise.planner.reasons.goals import UnsureLatency
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.values.plan import Plan
from chipwise.workload.goals import Goals

PICTURES = {"kind": "serve", "name": "pictures", "model": "sdxl", "arrival": {"rate": 0.02}, "steps": 30}
CHAT = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 2},
    "input_tokens": 500,
    "output_tokens": 200,
}
ASKED: dict[str, dict[str, Any]] = {"pictures": PICTURES, "chat": CHAT}
NAMES = {"pictures": "latency", "chat": "tpot"}


@cache
def planned(kind: str, limit_s: float, confidence: float = 0.9) -> Plan:
    goals = {NAMES[kind]: f"{limit_s * 1e3:g}ms", "confidence": confidence}
    return plan(open_session(), "case.yaml", None, text=yaml.safe_dump({**ASKED[kind], "goals": goals}))


def test_the_law_goes_through_the_expected_time_and_the_ninth_of_ten() -> None:
    one = np.ones(1)
    assert chance_within(2 * one, 2 * one, 1.5 * one)[0] == pytest.approx(0.5)
    assert chance_within(3 * one, 2 * one, 1.5 * one)[0] == pytest.approx(0.9)
    assert chance_within(4.5 * one, 2 * one, 1.5 * one)[0] == pytest.approx(NormalDist().cdf(2 * NINE_OF_TEN))
    assert chance_within(0 * one, 2 * one, 1.5 * one)[0] == 0.0
    assert chance_within(one, 2 * one, one)[0] == 0.0  # without a spread it is as it says
    assert chance_within(3 * one, 2 * one, one)[0] == 1.0


@pytest.mark.parametrize(("kind", "limits"), [("pictures", (2.0, 4.0, 8.0, 16.0)), ("chat", (0.015, 0.03, 0.2))])
def test_a_surer_answer_costs_no_less_and_is_as_sure_as_asked(kind: str, limits: tuple[float, ...]) -> None:
    costs = []
    for limit in limits:
        for confidence in (0.5, 0.9):
            found = planned(kind, limit, confidence)
            assert found.winner is not None
            assert found.winner.goals_chance is not None
            assert found.winner.goals_chance >= confidence
            costs.append(found.winner.usd)
    bold, sure = np.array(costs[::2]), np.array(costs[1::2])
    assert (bold <= 1.04 * sure).all()  # of near ties another may lead
    assert (bold < 0.97 * sure).any(), "no limit tells the two apart"
    bolder = next(one for limit in limits for one in planned(kind, limit).alternatives if one.kind is RuleKind.CONFIDENCE)
    assert (bolder.choice.goals_chance or 1.0) < 0.9
    lost = [loss.why for limit in limits for loss in planned(kind, limit).losses]
    assert any(isinstance(why, UnsureLatency) and why.chance < why.confidence for why in lost)


def test_where_nothing_is_sure_the_best_is_shown_with_its_risk() -> None:
    found = planned("chat", 0.006)
    assert found.winner is not None
    assert found.winner.goals_chance is not None
    assert 0.0 < found.winner.goals_chance < 0.9
    assert f"{found.winner.goals_chance:.0%} chance of being met" in risk_line(found)


def test_where_nothing_is_sure_the_lowest_cost_of_a_kept_goal_leads() -> None:
    """The more probable of what costs nearly the same, and no fortune for a little more probability."""
    costs = np.array([100.0, 101.0, 1000.0])
    values = Values(costs, costs, costs, costs, costs, costs, chance=np.array([0.5, 0.8, 0.85]))
    assert order(values, "cost").tolist() == [1, 0, 2]
    found = planned("chat", 0.006)
    assert found.rows is not None
    assert found.winner is not None
    rows = [found.rows.choice(at) for at in found.rows.eligible[:200].tolist()]
    least = min(one.usd / (one.goals_chance or 1e-6) for one in rows)
    assert found.winner.usd / (found.winner.goals_chance or 1e-6) <= 1.03 * least
    assert [one.goals_chance for one in rows] != [None] * len(rows)


def test_without_latency_goals_there_is_no_chance_to_speak_of() -> None:
    found = plan(open_session(), "case.yaml", None, text=yaml.safe_dump(CHAT))
    assert found.winner is not None
    assert found.winner.goals_chance is None


def test_the_answer_says_how_likely_it_is() -> None:
    said = {one.question: one.told for one in answers(planned("chat", 0.2), Asked(rate=2.0, goals={"tpot p90": 0.2}))}
    text = " ".join(said.values())
    assert "probability (tpot p90" in text
    assert text.count("probability") == 1, "what is claimed is said once"


def test_goals_that_are_not_surely_met_are_not_called_met() -> None:
    found = planned("chat", 0.03, 0.5)
    assert found.winner is not None
    assert (found.winner.goals_chance or 1.0) < 0.95
    asked = Asked(rate=2.0, goals={"tpot p90": 0.03}, confidence=0.99, sure_enough=0.99, stated=True)
    said = " ".join(one.told for one in answers(found, asked))
    assert "expected to be met (tpot p90 " in said
    assert ", 99% is asked for: " in said


def test_a_budget_does_not_replace_the_confidence() -> None:
    """Where it pays for nothing as sure as asked, the surest that it pays for leads, and the answer says so."""
    goals: dict[str, Any] = {"tpot": "20ms", "confidence": 0.995}
    work = CHAT | {"goals": goals}
    free = plan(open_session(), "case.yaml", None, text=yaml.safe_dump(work)).winner
    assert free is not None
    assert (free.goals_chance or 0.0) >= 0.995
    goals["budget"] = f"${0.7 * free.usd:.0f}/month"
    found = plan(open_session(), "case.yaml", None, text=yaml.safe_dump(work))
    assert found.rows is not None
    assert found.winner is not None
    assert found.winner.usd <= 0.7 * free.usd
    kept = found.rows.ranked[: found.rows.kept].tolist()[:300]
    paid = {
        int(found.rows.priced.way[at]): at for at in kept
    }  # one of each way to run it, which is as sure wherever it is bought
    surest = max(found.rows.choice(at).goals_chance or 0.0 for at in paid.values())
    bold = plan(
        open_session(), "case.yaml", None, text=yaml.safe_dump(CHAT | {"goals": {"tpot": "20ms", "confidence": 0.5}})
    ).winner
    assert bold is not None
    assert found.winner.goals_chance is not None
    assert surest - 0.02 <= found.winner.goals_chance
    assert found.winner.goals_chance > (bold.goals_chance or 0.0) or bold.usd >= found.winner.usd
    assert "Nothing within it meets the latency goals with" in " ".join(one.told for one in found.answers)


def test_a_bolder_answer_is_a_flag_away() -> None:
    """And what it saves is a line of its own."""
    text = " ".join(turn.told for turn in turns(planned("chat", 0.03)) if turn.what == "confidence")
    assert "meets the latency goals with a probability of" in text
    stated = text.rpartition("--confidence ")[2]
    bold = planned("chat", 0.03, float(stated)).winner
    sure = planned("chat", 0.03).winner
    assert bold is not None
    assert sure is not None
    assert bold.usd < 0.8 * sure.usd


def test_a_usual_nine_in_ten_that_nobody_stated_is_as_it_is_printed() -> None:
    assert Goals().sure_enough == pytest.approx(0.895)
    assert Goals(confidence=0.9).sure_enough == 0.9
