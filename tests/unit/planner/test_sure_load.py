"""A stated confidence counts for the load too: machines are bought until one request is fast enough and all that come are
answered with that probability, and everybody is measured by the same one."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

import chipwise
from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.planner.chances import carried, sure_factor
from chipwise.planner.explain.asking_latency import likely_words
from chipwise.planner.explain.risks import risk_line
from chipwise.planner.reasons.goals import UnsureLatency
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import width
from chipwise.views.plan import plan_view

CHAT: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-70b",
    "arrival": {"rate": 20},
    "input_tokens": 1000,
    "output_tokens": 300,
    "limits": {"chips": ["h100", "a100", "l40s"], "clouds": ["aws", "gcp", "azure"]},
}
CALLERS = CHAT | {"arrival": {"concurrency": 200}}
PICTURES: dict[str, Any] = {
    "kind": "serve",
    "name": "pictures",
    "model": "sdxl",
    "arrival": {"rate": 3},
    "steps": 30,
    "limits": {"chips": ["h100", "a100", "l4"]},
}
GOALS = {"chat": {"ttft": "800ms", "tpot": "70ms"}, "callers": {"tpot": "60ms"}, "pictures": {"latency": "20s"}}
WORKS = {"chat": CHAT, "callers": CALLERS, "pictures": PICTURES}


@cache
def planned(kind: str, confidence: float | None = None) -> Plan:
    goals = GOALS[kind] | ({} if confidence is None else {"confidence": confidence})
    return plan(open_session(), "case.yaml", None, text=yaml.safe_dump({**WORKS[kind], "goals": goals}))


def test_the_factor_is_the_spread_at_nine_of_ten() -> None:
    assert sure_factor(1.5, 0.9) == pytest.approx(1.5)
    assert sure_factor(1.5, 0.5) == pytest.approx(1.0)
    assert carried(10.0, 10.0 * sure_factor(1.4, 0.97), 1.4) == pytest.approx(0.97)
    assert carried(10.0, 15.0, 1.0) == 1.0


@pytest.mark.parametrize("kind", ["chat", "callers", "pictures"])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_a_stated_confidence_counts_for_the_load(kind: str, confidence: float) -> None:
    found = planned(kind, confidence)
    for choice in found.choices:
        assert choice.load_chance is not None
        assert choice.load_chance >= confidence
        assert choice.goals_chance == min(choice.load_chance, choice.request_chance or 1.0)
    assert found.winner is not None
    assert (found.winner.goals_chance or 0.0) >= confidence


def test_more_confidence_buys_no_fewer_machines_of_a_kind() -> None:
    needed: dict[str, list[int]] = {}
    for confidence in (None, 0.8, 0.9, 0.95, 0.99):
        for choice in planned("chat", confidence).choices:
            needed.setdefault(f"{choice.provider} {choice.machine} {width(choice.split)}", []).append(choice.machines)
    assert any(len(set(counts)) > 1 for counts in needed.values())
    assert all(counts == sorted(counts) for counts in needed.values())


def test_without_one_the_headroom_counts_and_the_answer_says_so() -> None:
    work = CHAT | {"arrival": {"rate": 22}, "goals": GOALS["chat"]}
    found = plan(open_session(), "case.yaml", None, text=yaml.safe_dump(work))
    winner = found.winner
    assert winner is not None
    assert winner.load_chance is not None
    assert winner.load_chance < 0.9, "this case shows nothing"
    said = " ".join(one.told for one in found.answers)
    assert "is asked for" not in said, "nobody asked"
    assert f"A single request meets them with {likely_words(winner.request_chance or 0.0)}" in said
    assert f"carry 22 req/s with {winner.load_chance:.0%} probability" in said
    assert "Planned at their expected speed with 25% headroom, the machines carry" in said
    assert "--confidence 0.9" in said or "carries it with" in said
    assert f"{winner.load_chance:.0%} chance of carrying the load" in risk_line(found)


def test_losers_are_measured_as_the_winner_is() -> None:
    for confidence in (0.95, 0.99):
        found = planned("chat", confidence)
        assert found.winner is not None
        for loss in found.losses:
            if isinstance(loss.why, UnsureLatency):
                assert loss.choice is not None
                assert loss.why.chance == loss.choice.goals_chance
                assert loss.why.chance < confidence <= (found.winner.goals_chance or 0.0)


def test_text_data_and_python_say_one_probability() -> None:
    found = planned("chat", 0.95)
    winner = found.winner
    assert winner is not None
    view = plan_view(found)
    assert view["confidence"] == {"goals": 0.95, "load": 0.95}
    assert plan_view(planned("chat"))["confidence"] == {"goals": 0.9, "load": None}
    assert view["winner"]["goals_probability"] == winner.goals_chance
    assert view["winner"]["request_probability"] == winner.request_chance
    assert view["winner"]["load_probability"] == winner.load_chance
    said = " ".join(one["text"] for one in view["answers"])
    chance = winner.goals_chance or 0.0
    assert f"met with {f'{chance:.0%}' if chance < 0.99 else 'more than 99%'} probability" in said
    assert said.count("% probability") == 1
    public = chipwise.plan(
        "llama-3.1-70b",
        serve=True,
        rps=20,
        input=1000,
        output=300,
        ttft="800ms",
        tpot="70ms",
        confidence=0.95,
        chip=["h100", "a100", "l40s"],
        cloud=["aws", "gcp", "azure"],
    )
    assert public.best is not None
    assert public.best.goals_probability == winner.goals_chance
    assert public.best.load_probability == winner.load_chance


def test_the_load_that_machines_take_is_what_they_take_with_that_probability() -> None:
    """Another count follows from the same capacity: what is asked twice over takes the machines that its own plan takes."""
    found = planned("chat", 0.99)
    twice = plan(
        open_session(),
        "case.yaml",
        None,
        text=yaml.safe_dump({**CHAT, "arrival": {"rate": 40}, "goals": GOALS["chat"] | {"confidence": 0.99}}),
    )
    winner = found.winner
    assert winner is not None
    said = " ".join(one.told for one in found.answers)
    same = next(one for one in twice.choices if (one.provider, one.machine) == (winner.provider, winner.machine))
    assert f"40 req/s: {same.machines} machines" in said
