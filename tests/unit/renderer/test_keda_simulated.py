"""What KEDA's formula does with a rollout, a burst and a quiet night, on the autoscaler's own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import yaml

from autoscaling import TOLERANCE, Autoscaler, Service, evaluate, run
from chipwise.renderer.deployment import Deployment, Scaling
from chipwise.renderer.targets import keda
from fixed_deployments import CASES

SERVE = replace(CASES["serve"], starts="", stops="")
ANSWER_S = 8.9
START_S = 900.0
HOUR = 3600


def spec_of(planned: Deployment) -> dict[str, Any]:
    every = [one for file in keda.render(planned) for one in yaml.safe_load_all(file.text)]
    return next(dict(one["spec"]) for one in every if one["kind"] == "ScaledObject")


def service(start_s: float = START_S) -> Service:
    return Service(slots=128, answer_s=ANSWER_S, start_s=start_s)


def seen(now: Mapping[str, float], wanted: int) -> Mapping[str, float]:
    return {"waiting": now["waiting"], "load": now["running"] + now["waiting"], "copies": wanted}


def by_use(now: Mapping[str, float], wanted: int) -> Mapping[str, float]:
    """Of a program that says nothing of its requests: half of what runs is used."""
    return {"waiting": now["waiting"], "used": 0.5, "copies": wanted}


def scaled(least: int, most: int) -> Deployment:
    assert SERVE.scaling is not None
    return replace(SERVE, scaling=replace(SERVE.scaling, minimum=least, usual=least, maximum=most))


def test_the_formula_is_read_as_keda_reads_it() -> None:
    nested = (
        "hours < 1 ? 0 : max(hours, max(load / 42, waiting > 5 ? copies * 2 : (load < 12.3 * copies ? copies / 2 : copies)))"
    )
    assert evaluate(nested, hours=0, load=99, waiting=9, copies=4) == 0
    assert evaluate(nested, hours=2, load=420, waiting=0, copies=4) == 10
    assert evaluate(nested, hours=2, load=80, waiting=6, copies=4) == 8
    assert evaluate(nested, hours=2, load=10, waiting=0, copies=6) == 3
    assert evaluate(nested, hours=2, load=80, waiting=0, copies=6) == 6


@pytest.mark.parametrize(("replicas", "surge"), [(4, 1), (4, 0), (14, 1), (14, 0)])
@pytest.mark.parametrize("signals", [seen, by_use], ids=["engine", "own program"])
def test_a_rollout_changes_no_number(replicas: int, surge: int, signals: Any) -> None:
    planned = scaled(2, 30)
    if signals is by_use:
        planned = replace(planned, software=replace(planned.software, engine="", is_custom=True))
    scaler = Autoscaler(spec_of(planned), replicas)
    rate = 0.5 * replicas * 42 / ANSWER_S  # between a fifth and the target
    story = run(scaler, service(), 5 * HOUR, lambda _: rate, signals, (600, surge))
    assert {wanted for _, wanted, _ in story} == {replicas}


def test_counting_pods_would_go_to_the_most_during_a_rollout() -> None:
    """What the formula was before: pods that there are, those of the rollout and those that end among them."""
    spec = spec_of(scaled(2, 12))
    spec["advanced"]["scalingModifiers"]["formula"] = "waiting > 5 ? copies * 2 : (used < 0.2 ? copies / 2 : copies)"

    def pods(now: Mapping[str, float], _: int) -> Mapping[str, float]:
        return {"waiting": now["waiting"], "used": 0.5, "copies": now["pods"]}

    story = run(Autoscaler(spec, 4, tolerance=TOLERANCE), service(), 8 * HOUR, lambda _: 10.0, pods, (600, 1))
    assert max(wanted for _, wanted, _ in story) == 12


def test_with_the_usual_tolerance_ten_or_more_would_grow_during_a_rollout() -> None:
    """Why the file states a tolerance: within a tenth the autoscaler takes the pods that are reported."""
    scaler = Autoscaler(spec_of(scaled(2, 30)), 14, tolerance=TOLERANCE)
    story = run(scaler, service(), 5 * HOUR, lambda _: 0.5 * 14 * 42 / ANSWER_S, seen, (600, 1))
    assert max(wanted for _, wanted, _ in story) > 14


def test_a_burst_is_met_before_requests_wait() -> None:
    """From two replicas at half their load to four times as much within an hour: machines take a quarter of an hour."""
    low, high = 2 * 42 * 0.5 / ANSWER_S, 8 * 42 * 0.5 / ANSWER_S
    story = run(
        Autoscaler(spec_of(scaled(2, 12)), 2),
        service(),
        4 * HOUR,
        lambda now: low + (high - low) * min(max(now - HOUR, 0) / HOUR, 1.0),
        seen,
    )
    assert max(waiting for _, _, waiting in story) == 0, "the queue stays empty"
    first = next(at for at, wanted, _ in story if wanted > 2)
    assert first < 2 * HOUR
    assert story[-1][1] == 4
    assert max(wanted for _, wanted, _ in story) <= 5, "no more than the load takes"


def test_a_sudden_burst_is_worked_off_and_not_overshot_for_ever() -> None:
    burst = 8 * 42 / ANSWER_S
    story = run(
        Autoscaler(spec_of(scaled(2, 12)), 2),
        service(),
        6 * HOUR,
        lambda now: burst if HOUR < now < 3 * HOUR else 2.0,
        seen,
    )
    during = [waiting for at, _, waiting in story if 2 * HOUR < at < 3 * HOUR]
    assert max(during) == 0, "an hour later nothing waits"
    assert story[-1][1] == 2, "and afterwards they go"


def test_a_quiet_night_takes_all_but_the_least_one_by_one() -> None:
    story = run(Autoscaler(spec_of(scaled(2, 12)), 10), service(), 4 * HOUR, lambda now: 30.0 if now < HOUR else 0.2, seen)
    wanted = [each for _, each, _ in story]
    assert wanted[-1] == 2
    assert all(later >= earlier - 1 for earlier, later in pairwise(wanted))
    left = next(at for at, each, _ in story if each < wanted[0] and at > HOUR)
    assert left - HOUR >= 600, "only after ten minutes"


def test_the_target_is_that_of_the_plan_and_not_of_the_slots() -> None:
    scaling = Scaling(1, 2, 12, per_replica=6.9, slots=128, concurrency=6.9 * ANSWER_S)
    assert scaling.busy == int(0.7 * 6.9 * ANSWER_S) == 42
