"""Replicas come at once when work does, and go one by one when it stays away; all go only after a while without requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.serving.scaling import (
    GatewayCounts,
    PolicyAnswer,
    RateMeter,
    ScalingRule,
    ScalingSignals,
    ScalingState,
    decide,
)

RULE = ScalingRule(fewest_replicas=1, most_replicas=5, at_once=10, filled=0.7, down_after_s=60.0)
TO_ZERO = replace(RULE, fewest_replicas=0, idle_s=300.0)


def test_more_work_than_replicas_take_brings_as_many_as_it_needs() -> None:
    decision = decide(ScalingSignals(0.0, 1, 20), RULE)
    assert decision.replicas == 3
    assert decision.reason == "from 1 to 3 replicas: 20 requests at once, and one replica takes 7"


def test_there_are_never_more_or_fewer_than_the_limits() -> None:
    assert decide(ScalingSignals(0.0, 5, 10_000), RULE).replicas == 5
    assert decide(ScalingSignals(1e6, 1, 0), RULE, ScalingState(fewer_since=0.0)).replicas == 1


def test_fewer_come_only_after_a_while_and_one_at_a_time() -> None:
    first = decide(ScalingSignals(100.0, 4, 1), RULE)
    assert (first.replicas, first.state.fewer_since) == (4, 100.0)
    early = decide(ScalingSignals(150.0, 4, 1), RULE, first.state)
    assert (early.replicas, early.state.fewer_since) == (4, 100.0)
    late = decide(ScalingSignals(160.0, 4, 1), RULE, early.state)
    assert late.replicas == 3
    assert late.reason == "from 4 to 3 replicas: 1 request at once, and one replica takes 7, for 60 s"


def test_work_that_comes_back_starts_the_while_anew() -> None:
    assert decide(ScalingSignals(130.0, 4, 25), RULE, ScalingState(fewer_since=100.0)).state.fewer_since is None


def test_the_last_replica_goes_when_nothing_was_asked_for_so_long() -> None:
    first = decide(ScalingSignals(0.0, 1, 0), TO_ZERO)
    assert first.replicas == 1
    assert decide(ScalingSignals(299.0, 1, 0), TO_ZERO, first.state).replicas == 1
    last = decide(ScalingSignals(300.0, 1, 0), TO_ZERO, first.state)
    assert (last.replicas, last.reason) == (0, "from 1 to 0 replicas: no request for 5 min")


def test_a_request_between_two_looks_is_a_request() -> None:
    """It came and was answered, and no look saw it."""
    first = decide(ScalingSignals(0.0, 1, 0, 7), TO_ZERO)
    second = decide(ScalingSignals(200.0, 1, 0, 8), TO_ZERO, first.state)
    assert decide(ScalingSignals(310.0, 1, 0, 8), TO_ZERO, second.state).replicas == 1


def test_a_parked_request_brings_the_first_replica_and_many_bring_as_many_as_they_need() -> None:
    assert decide(ScalingSignals(0.0, 0, 0), TO_ZERO) == (0, "", ScalingState(None, 0.0, 0))
    assert decide(ScalingSignals(0.0, 0, 1, 1), TO_ZERO).replicas == 1
    assert decide(ScalingSignals(0.0, 0, 15, 15), TO_ZERO).replicas == 3


def test_a_policy_is_followed_within_the_limits_and_says_why() -> None:
    decision = decide(ScalingSignals(0.0, 2, 0), RULE, answer=PolicyAnswer(3.2, "hpa:50 wants 3.2"))
    assert (decision.replicas, decision.reason) == (4, "from 2 to 4 replicas: hpa:50 wants 3.2")
    assert decide(ScalingSignals(0.0, 2, 0), RULE, answer=PolicyAnswer(99.0, "")).replicas == 5


def test_a_policy_does_not_take_the_last_replica_before_nothing_was_asked_for_so_long() -> None:
    answer = PolicyAnswer(0.0, "hpa:50 wants 0")
    first = decide(ScalingSignals(0.0, 1, 0), TO_ZERO, answer=answer)
    assert first.replicas == 1
    assert decide(ScalingSignals(300.0, 1, 0), TO_ZERO, first.state, answer).replicas == 0


def test_the_speed_of_a_replica_is_what_its_filled_places_answered() -> None:
    """Two replicas of 4 places, half filled for 10 s, answered 40: filled ones would answer 4 a second each."""
    meter = RateMeter()
    meter.after(GatewayCounts(100, 90, 50.0), 10.0, 2, 4.0)
    rates = meter.after(GatewayCounts(150, 130, 90.0), 10.0, 2, 4.0)
    assert (rates.arrived, rates.utilisation) == (50.0, 0.5)
    assert rates.per_replica == pytest.approx(4.0)


def test_a_gateway_that_begins_anew_counts_from_zero() -> None:
    meter = RateMeter()
    meter.after(GatewayCounts(100, 90, 50.0), 10.0, 2, 4.0)
    assert meter.after(GatewayCounts(6, 5, 4.0), 10.0, 2, 4.0).arrived == 6.0
    assert meter.after(GatewayCounts(6, 5, 4.0), 10.0, 2, 4.0).per_replica is None  # too few to say
