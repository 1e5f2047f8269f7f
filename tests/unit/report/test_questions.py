"""The flowchart tells the questions that decided, each with whom it sent away."""

from __future__ import annotations

from dataclasses import replace

import pytest

import plans
from chipwise.planner.reasons.abilities import Unpredicted
from chipwise.planner.reasons.limits import Misplaced, RuleKind
from chipwise.planner.remedies import Advice
from chipwise.planner.values.plan import Missing, Obstacle, Plan
from chipwise.report.questions import questions


def asked(plan: Plan) -> dict[str, str]:
    return {one.text: " | ".join(one.away) for one in questions(plan)}


def test_every_family_is_sent_away_by_one_question() -> None:
    found = asked(plans.plan())
    assert list(found) == ["May it be used?", "Can it run it?", "Are the goals met?", "Which costs least?", "Spot or not?"]
    for family, question in (
        ("NVIDIA Kepler", "May it be used?"),
        ("NVIDIA Pascal", "Can it run it?"),
        ("NVIDIA Turing", "Are the goals met?"),
        ("NVIDIA Ampere", "Which costs least?"),
    ):
        assert [name for name, away in found.items() if family in away] == [question]


def test_a_question_that_sent_nobody_away_is_left_out() -> None:
    found = asked(plans.plan(losses=(), refused=()))
    assert list(found) == ["Which costs least?", "Spot or not?"]


def test_spot_is_held_against_the_same_machine_bought_otherwise() -> None:
    assert asked(plans.plan())["Spot or not?"].startswith("on-demand: gcp a3-highgpu-8g in europe-west4, $300 a job")


def test_where_spot_was_refused_the_question_says_so() -> None:
    assert "438 offers refused" in asked(plans.service())["Spot or not?"]


def test_without_a_choice_there_is_no_question_of_spot() -> None:
    plan = plans.plan()
    assert "Spot or not?" not in asked(replace(plan, choices=plan.choices[:3]))


def test_the_last_question_is_about_the_objective() -> None:
    assert "Which emits least?" in asked(plans.plan(objective="carbon"))
    assert "Which is best by hope?" in asked(plans.plan(objective="hope"))


@pytest.mark.parametrize(
    ("what", "question"),
    [
        ("offers", "May it be used?"),
        ("memory", "Can it run it?"),
        ("precision", "Can it run it?"),
        ("deadline", "Are the goals met?"),
        ("budget and deadline", "Are the goals met?"),
        ("latency", "Are the goals met?"),
    ],
)
def test_where_nothing_fits_the_chart_ends_at_what_was_missing(what: str, question: str) -> None:
    found = questions(plans.nothing(Missing(Obstacle(what), Unpredicted("so much"), (Advice("this"),))))
    assert found[-1].text == question
    assert found[-1].stopped
    assert f"{what}: so much. Would help: this." in found[-1].away
    assert not any(one.stopped for one in found[:-1])


def test_what_is_paid_per_use_is_asked_about_unless_it_is_part_of_the_answer() -> None:
    dearer, cheaper = plans.per_use(usd=250.0), plans.per_use(usd=5.0)
    asks = "Machines, or paid per use?"
    assert "a machine is cheaper from 3 req/s" in asked(plans.service(services=(dearer,)))[asks]
    unplaced = plans.per_use(refused=(Misplaced(RuleKind.REGION, "nebius", "", ()),))
    assert "its region is not stated" in asked(plans.service(services=(unplaced,)))[asks]
    assert asks not in asked(plans.service(services=(cheaper,)))
    assert asks not in asked(plans.service())
