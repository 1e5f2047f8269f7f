"""Autoscalers as their documentation has them, and ours."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from chipwise.scale.policies import (
    hpa,
    keda,
    knative,
    learned_headroom,
    queue_depth,
    seasonal,
    target_tracking,
)
from chipwise.scale.serving import BeginScaling, Scale, ScaledService, ServeSignals
from chipwise.scale.simulator.pooled import PooledQueue
from chipwise.scale.simulator.scaling import play
from chipwise.scale.simulator.synthetic_load import SyntheticLoad, synthetic_load

SERVICE = ScaledService(replica_per_s=2.0, concurrency=10.0)
EVERY = (hpa, keda, knative, learned_headroom, queue_depth, seasonal, target_tracking)


def at(now_s: float, ready: int, starting: int = 0, **signals: float) -> ServeSignals:
    usual = {"arrived": 0.0, "waiting": 0.0, "in_flight": 0.0, "utilisation": 0.0, "wait_s": 0.0}
    return ServeSignals(now_s=now_s, clock_s=now_s, ready=ready, starting=starting, **{**usual, **signals})


def asked(decide: Scale, ticks: int, signals: Callable[[float], ServeSignals]) -> list[float]:
    return [decide(signals(15.0 * (tick + 1))) for tick in range(ticks)]


def test_hpa_follows_utilisation_over_its_target() -> None:
    begin = partial(hpa.begin, target=50.0)
    assert begin(SERVICE)(at(15, 4, utilisation=1.0)) == 8
    assert begin(SERVICE)(at(15, 4, utilisation=0.54)) == 4, "within the tolerance"
    assert begin(SERVICE)(at(15, 4, 4, utilisation=0.9)) == 8, "replicas that start count as idle"
    assert begin(SERVICE)(at(15, 100, utilisation=1.0)) == 200


def test_hpa_goes_down_after_five_minutes() -> None:
    wanted = asked(partial(hpa.begin, target=50.0)(SERVICE), 22, lambda now: at(now, 8, utilisation=0.25))
    assert wanted[:20] == [8.0] * 20
    assert wanted[-1] == 4.0


def test_the_rule_of_thumb_takes_one_step_at_a_time() -> None:
    decide = queue_depth.begin(SERVICE)
    assert decide(at(15, 3, waiting=6.0, utilisation=1.0)) == 4
    assert decide(at(30, 3, waiting=5.0, utilisation=1.0)) == 3
    wanted = asked(decide, 44, lambda now: at(30 + now, 3, utilisation=0.1))
    assert wanted[:39] == [3.0] * 39
    assert wanted.count(2.0) == 1


def test_knative_divides_what_is_in_flight_by_seven_tenths_of_the_concurrency() -> None:
    decide = knative.begin(SERVICE)
    assert decide(at(15, 10, in_flight=70.0)) == 10
    assert decide(at(30, 10, in_flight=280.0)) == 40, "panic: the last seconds alone"
    assert decide(at(45, 10, in_flight=70.0)) == 40, "nobody is taken away in panic"
    assert decide(at(200, 40, in_flight=70.0)) == 20, "half at most"


def test_keda_divides_messages_by_what_a_replica_handles() -> None:
    decide = keda.begin(SERVICE)
    assert decide(at(15, 4, in_flight=75.0)) == 8
    assert decide(at(30, 4, in_flight=10.0)) == 8, "read every 30 s, and down after five minutes"


def test_target_tracking_waits_for_three_minutes_above_and_fifteen_below() -> None:
    decide = target_tracking.begin(SERVICE)  # half of 2/s: 60 a minute
    above = asked(decide, 12, lambda now: at(now, 4, arrived=8 * 15.0))
    assert above[:11] == [4.0] * 11
    assert above[11] == 8.0
    below = asked(target_tracking.begin(SERVICE), 60, lambda now: at(now, 8, arrived=4 * 15.0))
    assert below[:59] == [8.0] * 59
    assert below[59] == 4.0


def test_the_seasonal_forecast_orders_what_came_the_day_before() -> None:
    def busy(now_s: float) -> ServeSignals:
        return at(now_s, 1, arrived=30.0 * (14.0 if now_s % 86_400.0 > 43_200.0 else 7.0))

    wanted = asked(seasonal.begin(SERVICE), 2 * 5760, busy)
    noon = 5760 + 2880
    assert wanted[noon - 100] == pytest.approx(10.0)
    assert wanted[noon - 10] == pytest.approx(20.0), "a cold start ahead"


@pytest.mark.parametrize("module", EVERY, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_policy_answers_whatever_comes(module: object) -> None:
    begin: BeginScaling = module.begin  # type: ignore[attr-defined]
    assert module.RENDERS  # type: ignore[attr-defined]
    decide, chance = begin(SERVICE), np.random.default_rng(1)
    for tick in range(60):
        load = float(chance.choice([0.0, 1.0, 1e6]))
        signals = at(
            15.0 * (tick + 1),
            int(chance.integers(0, 3)),
            int(chance.integers(0, 3)),
            arrived=load,
            waiting=load,
            in_flight=2 * load,
            utilisation=float(chance.random()),
            wait_s=load,
        )
        assert math.isfinite(decide(signals))


def test_ours_keeps_the_goal_on_a_steady_load_for_less_than_hpa_at_70_percent() -> None:
    load = synthetic_load(SyntheticLoad(hours=3.0, rate=20.0, swing=0.2, bursts=0.0), 11)
    service = ScaledService(replica_per_s=1.0)
    ours, theirs = (play(load, service, begin, PooledQueue) for begin in (learned_headroom.begin, hpa.begin))
    assert ours.within_goal >= 0.99
    assert ours.replica_hours < 0.9 * theirs.replica_hours
    assert play(load, service, learned_headroom.begin, PooledQueue).replica_hours == ours.replica_hours
