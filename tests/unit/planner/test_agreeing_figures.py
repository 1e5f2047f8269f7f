"""The figures of one answer agree: the headline, the best choice, the load over time and the budget tell one plan and price."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plans
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.money.layering import Option
from chipwise.planner.explain.asking import BUDGET, LATENCY, answers
from chipwise.planner.explain.asking_latency import Asked
from chipwise.planner.explain.reason_words import words
from chipwise.planner.explain.scaling import Point, scaling_words
from chipwise.planner.explain.words import headline, leading_layers, sentence
from chipwise.planner.load.curve import Answering, Base, Carried, LoadCurve, MachineKind, carry
from chipwise.planner.load.plan import _leading
from chipwise.planner.reasons.goals import UnsureLatency
from chipwise.planner.reasons.sizes import NeedsChips
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Loss, Plan
from chipwise.planner.why_lost import beaten
from chipwise.units import HOUR, MONTH

PEOPLE = """kind: interactive
name: people
people: 8
idle_after: 30min
memory: 20GiB
schedule: {kind: business-hours, time_zone: Europe/Berlin}
data: {size: 2TB, place: "aws:eu-central-1"}
goals: {budget: $9k/month}
limits: {clouds: [lambda]}
"""
CURVE = LoadCurve(np.array([1.0, 8.0]), np.array([100.0, 68.0]))
DEPLOYED: dict[str, Any] = {"purchase": "on-demand", "rate": 10.0, "replicas": 1}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    home: Path = tmp_path_factory.mktemp("home")
    session = Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])
    return plan(session, "people.yaml", text=PEOPLE)


def carried(machine: str, *options: Option, base: Base | None = None) -> Carried:
    kind = MachineKind("gcp", machine, "europe-west4", "H100-SXM", Answering(1.0, 1, 1), options)
    return carry(CURVE, kind, base)


def test_what_is_bought_by_the_hour_is_what_the_ranking_took() -> None:
    """A cheaper machine that lost by its headroom, porting or doubts is no better for being counted over time."""
    winner = plans.choice()
    own, cheaper = carried(winner.machine, Option("on-demand", 2.0)), carried("other", Option("on-demand", 1.0))
    assert _leading(winner, [(cheaper, 0), (own, 1)]) == (own, 1)
    promised = carried("other", Option("on-demand", 1.0), Option("reserved-1y", 0.5, committed=True, term_years=1.0))
    assert _leading(winner, [(promised, 0), (own, 1)]) == (promised, 0)
    based = carried("other", Option("on-demand", 1.0), base=Base("mine", Answering(1.0, 1, 1), 0.1))
    assert _leading(winner, [(based, 0), (own, 1)]) == (based, 0)


def test_a_load_over_time_costs_what_the_best_choice_does_transfer_included(people: Plan) -> None:
    winner, load = people.winner, people.load
    assert winner is not None
    assert load is not None
    [transfer] = [line.usd for line in winner.cost.lines if line.name == "transfer"]
    assert load.other_usd == pytest.approx(transfer)
    assert transfer > 0
    assert load.usd == pytest.approx(winner.usd)
    assert leading_layers(people) is None
    assert headline(people) == sentence(people)
    assert any(f"costs ${winner.usd:,.0f} a month; for the peak in all scheduled hours" in note for note in people.notes)


def test_a_cost_of_all_hours_is_of_the_hours_that_are_named(people: Plan) -> None:
    winner = people.winner
    assert winner is not None
    assert winner.over_time is not None
    assert winner.over_time.hours_on == pytest.approx(MONTH / HOUR * 50 / 168)
    hours = winner.machines * winner.over_time.hours_on
    [compute] = [line.usd for line in winner.over_time.always_cost.lines if line.name == "compute"]
    assert compute == pytest.approx(hours * winner.hourly_usd)
    text = sentence(people)
    assert "as the load goes, none outside the schedule" in text
    assert f"; {winner.machines} in all scheduled hours $" in text
    assert "at all times" not in text
    always = replace(winner, over_time=replace(winner.over_time, hours_on=MONTH / HOUR))
    assert f"; {winner.machines} at all times $" in sentence(replace(people, choices=(always,)))


def test_more_machines_than_are_taken_unasked_are_named_with_what_allows_them() -> None:
    winner = plans.choice(chips=16, machines=32, chip="Trainium1")
    curve = [Point(512.0, 700.0, 9.0, 700.0, fleet=64.0), Point(1024.0, 340.0, 8.0, 340.0, fleet=128.0)]
    [steps, limit, _] = scaling_words(winner, curve, most_machines=64)
    assert steps.startswith("2x the chips")
    assert limit == "More than 512 Trainium1 (64 machines of 8 chips) are planned only with --large or a goal."
    assert len(scaling_words(winner, curve)) == 2
    slow = replace(winner, seconds=700 * 86400.0)
    larger = replace(winner, machines=128, seconds=200 * 86400.0)
    told = sentence(plans.plan(choices=(slow,), larger=larger))
    assert "Nothing of up to 512 chips (64 machines of 8) does it within 30 d. With --large, 2048 Trainium1 (128 x gcp " in told
    assert " would take 200 d for $100." in told
    assert "give a deadline, or more chips." in sentence(plans.plan(choices=(slow,)))


def test_a_wait_for_spot_machines_is_told_beside_the_work() -> None:
    curve = [Point(8.0, 100.0, 1.0, 100.0), Point(16.0, 31680.0, 1.0, 5796.0, 25200.0)]
    assert "(spot wait 7 h, work 1.61 h: " in scaling_words(plans.choice(), curve)[0]


def figures(found: Plan, **targets: Any) -> dict[str, str]:
    return {answer.question: answer.told for answer in answers(found, Asked(**targets))}


def service_plan(*choices: Choice, **changes: Any) -> Plan:
    return plans.plan(per="month", kind="serve", choices=choices, front=choices, near_tie=None, **changes)


def test_the_next_chip_is_one_that_no_cheaper_choice_has() -> None:
    first, cheaper = plans.choice(**DEPLOYED), plans.choice(**DEPLOYED, chip="L4", usd=98.0)
    costly, other = replace(cheaper, cost=first.cost, machine="large"), plans.choice(**DEPLOYED, chip="T4", usd=130.0)
    text = figures(service_plan(first, cheaper, costly, other), rate=5.0)[BUDGET]
    assert "Cheapest: $98.00" in text
    assert "The next chip, T4, costs $130." in text


def test_who_is_unlikely_to_meet_the_goals_is_named() -> None:
    first = plans.choice(**DEPLOYED, request_chance=0.95)
    losses = (Loss("AMD RDNA3", plans.choice(), UnsureLatency(0.676, 0.9)),)
    text = figures(service_plan(first, losses=losses), rate=5.0, goals={"ttft p90": 1.0})[LATENCY]
    assert "Too unlikely to meet them: AMD RDNA3 (67%)." in text
    assert "No family" not in text


def test_a_budget_line_says_that_it_is_of_machines_where_a_service_leads() -> None:
    service = plans.per_use(usd=50.0)
    found = service_plan(plans.choice(**DEPLOYED), services=(service,))
    assert found.service is not None
    assert figures(found, rate=5.0)[BUDGET].startswith("none given; the best machines cost $100 a month. Paid ")
    assert "10% of the $1,000 a month for the best machines." in figures(found, rate=5.0, budget_usd=1000.0)[BUDGET]


def test_an_equal_price_ties_and_is_no_next_best() -> None:
    first, equal = plans.choice(**DEPLOYED), plans.choice(**DEPLOYED, machine="other")
    text = sentence(service_plan(first, equal))
    assert "; ties with gcp other, on-demand." in text
    assert "next best" not in text


def test_a_cheaper_choice_without_all_headroom_lost_by_that() -> None:
    short = plans.choice(usd=87.0, headroom=0.235)
    assert words(beaten(plans.choice(), short, "cost", "month")).startswith("its headroom is 23.5%, not 25%; 13% cheaper")


def test_a_bound_that_nobody_stated_is_not_called_a_limit_of_theirs() -> None:
    told = words(NeedsChips(10656, 4096))
    assert told == "needs 10,656 chips; more than 4,096 are tried only where limits.chip_count.max states it"
    assert words(NeedsChips(12, 8)) == "needs 12 chips, 8 are allowed"
