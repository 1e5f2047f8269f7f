"""Replicas come at once when work does, and go one by one when it stays away."""

from __future__ import annotations

from chipwise.serving.scaling import ScalingRule, ScalingSignals, decide

RULE = ScalingRule(fewest_replicas=1, most_replicas=5, at_once=10, filled=0.7, down_after_s=60.0)


def test_more_work_than_replicas_take_brings_as_many_as_it_needs() -> None:
    decision = decide(ScalingSignals(0.0, 1, 20), RULE)
    assert decision.replicas == 3
    assert decision.reason == "from 1 to 3 replicas: 20 requests at once, and one replica takes 7"


def test_there_are_never_more_or_fewer_than_the_limits() -> None:
    assert decide(ScalingSignals(0.0, 5, 10_000), RULE).replicas == 5
    assert decide(ScalingSignals(1e6, 1, 0), RULE, fewer_since=0.0).replicas == 1


def test_fewer_come_only_after_a_while_and_one_at_a_time() -> None:
    first = decide(ScalingSignals(100.0, 4, 1), RULE)
    assert (first.replicas, first.fewer_since) == (4, 100.0)
    early = decide(ScalingSignals(150.0, 4, 1), RULE, first.fewer_since)
    assert (early.replicas, early.fewer_since) == (4, 100.0)
    late = decide(ScalingSignals(160.0, 4, 1), RULE, early.fewer_since)
    assert late.replicas == 3
    assert late.reason == "from 4 to 3 replicas: 1 requests at once, and one replica takes 7, for 60 s"


def test_work_that_comes_back_starts_the_while_anew() -> None:
    assert decide(ScalingSignals(130.0, 4, 25), RULE, fewer_since=100.0).fewer_since is None
