"""What a cheaper choice lost by is named with its figure, and figures that are compared can be told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import plans
from chipwise.planner.explain.reason_words import words
from chipwise.planner.explain.words import headline
from chipwise.planner.preference import Advantage
from chipwise.planner.reasons.goals import TooSlow
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import NearTie
from chipwise.planner.why_lost import beaten
from chipwise.text import durations_apart
from chipwise.views.plan import plan_view

WINNER = plans.choice(usd=100.0, price_days=90, machines=2)


def lost(**changes: Any) -> str:
    return words(beaten(WINNER, plans.choice(**({"usd": 98.0, "price_days": 90, "machines": 2} | changes)), "cost", "job"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"usd": 81.0, "doubt": "from one source only", "doubt_share": 0.25},
            "its price is uncertain (from one source only): what costs up to 25% more for certain ranks first; 19% cheaper",
        ),
        ({"price_days": 430}, "its price is 14 months old against 3 months; 2% cheaper"),
        ({"seconds": 13 * plans.HOUR}, "it takes 13 h against 10 h; 2% cheaper"),
        ({"machines": 4}, "4 machines against 2; 2% cheaper"),
        ({"usd": 60.0, "request_chance": 0.71}, "a single request meets the latency goals with 71% against 96%; 40% cheaper"),
    ],
)
def test_a_cheaper_choice_lost_by_something_that_is_named(changes: dict[str, Any], said: str) -> None:
    winner = replace(WINNER, request_chance=0.96) if "request_chance" in changes else WINNER
    loser = plans.choice(**({"usd": 98.0, "price_days": 90, "machines": 2} | changes))
    text = words(beaten(winner, loser, "cost", "job"))
    assert text.startswith(said), text


def test_what_is_dearer_lost_by_its_cost() -> None:
    assert lost(usd=150.0, doubt="from one source only").startswith("50% more expensive")


@pytest.mark.parametrize(
    ("advantage", "changes", "said"),
    [
        (Advantage.SURER, {"doubt": "from one source only"}, "a price that is more certain (the other: from one source only)"),
        (Advantage.FRESHER, {"price_days": 430}, "fresher price (3 months old, not 14 months)"),
        (Advantage.SOONER, {"seconds": 13 * plans.HOUR}, "sooner (10 h, not 13 h)"),
        (Advantage.FEWER, {"machines": 4}, "fewer machines (2, not 4)"),
    ],
)
def test_a_preference_has_its_reason(advantage: Advantage, changes: dict[str, Any], said: str) -> None:
    cheaper: Choice = plans.choice(**({"usd": 98.0, "price_days": 90, "machines": 2} | changes))
    found = replace(plans.plan(), choices=(WINNER,), near_tie=NearTie(cheaper, (advantage,)))
    in_words = "cheaper but whose price is uncertain (from one source only)" if advantage is Advantage.SURER else said
    assert in_words in headline(found)
    assert plan_view(found)["near_tie"]["reasons"] == [said]


def test_two_times_that_are_compared_can_be_told_apart() -> None:
    assert durations_apart(0.80004, 0.8) == ("800.04 ms", "800 ms")
    assert durations_apart(3.0, 0.8) == ("3 s", "800 ms")
    assert durations_apart(1.0, 1.0) == ("1 s", "1 s")
    assert words(TooSlow("ttft p90", 1.0004, 1.0)) == "ttft p90 is 1.0004 s at best, above 1 s"


def test_a_goal_that_one_request_alone_keeps_is_not_called_missed_at_best() -> None:
    said = words(TooSlow("ttft p90", 0.991, 1.0))
    assert said == "ttft p90 is 991 ms for one request alone, and above 1 s as soon as others come"
