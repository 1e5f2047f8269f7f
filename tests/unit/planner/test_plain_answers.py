"""Sentences under a plan that people read first: what waits, what ties, what a rival takes, and rates that are small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.money.break_even import BreakEven
from chipwise.planner.explain.reason_words import words
from chipwise.planner.explain.words import headline, objective_words, rate_words
from chipwise.planner.lifting import without_limits
from chipwise.planner.preference import Advantage
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.services.offer import ServiceOffer
from chipwise.planner.single import _within_limit
from chipwise.planner.values.plan import NearTie
from chipwise.planner.why_lost import beaten
from chipwise.workload.kinds import Serve
from plans import HOUR, choice, plan

SERVICE = ServiceOffer(
    kind="serverless",
    provider="koyeb",
    service="Serverless GPU",
    hardware="H100",
    chips=("H100-SXM",),
    model="llama-3.1-8b",
    precision="bf16",
    cost=None,
    usd_per_million_tokens=None,
    goals=(),
    unchecked=(),
    refused=(),
    assumed=(),
    certain=True,
    price_of="2026-08-17",
    price_days=1,
)


def test_waiting_for_spot_is_told_with_the_time_where_it_is_much_of_it() -> None:
    calm = plan(choices=(choice(first_wait_s=1 * HOUR),))
    waiting = plan(choices=(choice(first_wait_s=4 * HOUR, later_wait_s=1 * HOUR),))
    assert "waiting" not in headline(calm)
    assert "10 h (5 h of it waiting for spot) for " in headline(waiting)


def test_a_rival_that_is_cheaper_after_porting_is_told_with_its_time() -> None:
    rival = choice(chip="TPU-v5e", family="Google TPU", usd=25.0, seconds=250 * HOUR, needs_porting=True)
    slow = headline(plan(porting=rival))
    assert "75% less, after porting to JAX or PyTorch/XLA, but take 10.4 d, not 10 h." in slow
    assert "but take" not in headline(plan(porting=replace(rival, seconds=9 * HOUR)))


def test_a_price_that_is_uncertain_is_named_as_what_the_answer_was_chosen_over() -> None:
    tie = NearTie(choice(usd=82.4, doubt="currency not stated"), (Advantage.SURER,))
    assert "chosen over gcp a3-highgpu-8g, spot, which is 17.6% cheaper but whose price is uncertain" in headline(
        plan(near_tie=tie)
    )


@pytest.mark.parametrize(
    ("rate", "text"),
    [(6.34, "6.34 requests a second"), (0.0305, "110 requests an hour"), (0.0001, "8.64 requests a day")],
)
def test_small_rates_are_told_by_the_hour_or_the_day(rate: float, text: str) -> None:
    assert rate_words(rate, "serve") == text


def test_an_objective_reads_as_words() -> None:
    assert (objective_words("cost"), objective_words("balanced")) == ("by cost", "balanced objective")


def test_what_costs_the_same_ties_and_porting_that_saves_too_little_says_how_much() -> None:
    winner = choice(usd=100.0)
    assert words(beaten(winner, choice(usd=100.0, kg=30.0), "cost", "job")).startswith("ties on cost ($100 a job)")
    ported = words(beaten(winner, choice(usd=80.3, needs_porting=True), "cost", "job"))
    assert ported.endswith("but porting must save at least 20% (here 19.7%)")
    large = words(beaten(winner, choice(usd=70.0, needs_porting=True), "cost", "job"))
    assert large.endswith("but porting must save at least $1,000 (here $30.00)")


def test_a_break_even_that_does_not_last_is_not_called_one() -> None:
    never, some = BreakEven(None, None, "why"), BreakEven(17.0, None, "")
    assert replace(SERVICE, break_even=never).told_break_even == "a dedicated machine is not cheaper at any rate: why"
    told = replace(SERVICE, break_even=some).told_break_even
    assert told == "a dedicated machine is cheaper at some rates only, the lowest of them 17 requests a second"


def test_a_break_even_beyond_the_chips_that_are_allowed_is_none() -> None:
    machine = choice(chips=1, machines=2, rate=20.0, replicas=2)  # each carries 10 a second
    offer = replace(SERVICE, break_even=BreakEven(15.0, 35.0, ""))
    assert _within_limit(offer, machine, None) is offer
    within = _within_limit(offer, machine, 2).break_even
    assert within is not None
    assert (within.first, within.always) == (15.0, None)
    beyond = _within_limit(offer, machine, 1).told_break_even or ""
    assert "not cheaper at any rate: the 1 chip of limits.chip_count.max carries 10 requests a second" in beyond


def test_limits_that_people_stated_are_lifted_before_defaults() -> None:
    work = Serve.model_validate(
        {
            "name": "chat",
            "model": "llama-3.1-8b",
            "arrival": "1 req/s",
            "limits": {"clouds": ["aws"], "avoid": {"chips": ["a100"]}},
        }
    )
    freed = without_limits(work, [RuleKind.UNREAL, RuleKind.CLOUD, RuleKind.AVOIDED_CHIP, RuleKind.INTERRUPTIBLE])
    assert freed is not None
    assert (freed.limits.clouds, freed.limits.avoid.chips, freed.limits.interruptible) == ((), (), None)
    spot = without_limits(work, [RuleKind.INTERRUPTIBLE])
    assert spot is not None
    assert spot.limits.interruptible
    assert without_limits(work, [RuleKind.UNREAL, RuleKind.RETIRED]) is None
