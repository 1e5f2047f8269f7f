"""A drift is named with what changed, and noise is none."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from chipwise.runner.accuracy.drift import drifts
from chipwise.runner.accuracy.runs import MeasuredRun
from chipwise.views.accuracy import drift_words
from effort import cases
from finished_runs import PREDICTED, SPEC, finished, watched


def noisy(number: int, speed: float, **more: object) -> MeasuredRun:
    """Half a percent off, now above and now below."""
    return finished(number, speed * (1.005 if number % 2 else 0.995), **more)  # type: ignore[arg-type]


CHANGES = {
    "driver": (watched(), watched(driver="570.2"), "the driver from 560.1 to 570.2"),
    "program": (
        watched(),
        watched(program="train.py 0b0b0b0b"),
        "the program's files from train.py 0a0a0a0a to train.py 0b0b0b0b",
    ),
    "neighbour": (
        watched(host={"cpu_of_others": 0.02}),
        watched(host={"cpu_of_others": 0.45}),
        "neighbours' share of the cores from 2.0% to 45.0%",
    ),
    "heat": (
        watched(),
        watched(devices={"nvidia:0": {"name": "NVIDIA H200", "temperature_max_c": 88.0}}),
        "the highest temperature of its devices, in C, from 60 to 88",
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_changed_between_the_runs_before_and_after_is_named(kind: str) -> None:
    before, after, words = CHANGES[kind]
    runs = [noisy(day, 100.0, conditions=before) for day in range(5)]
    runs += [noisy(day, 85.0, conditions=after) for day in range(5, 10)]
    [drift] = drifts(runs)
    assert (drift.before, drift.after, drift.first.job.id) == (5, 5, "train-5")
    assert drift.low < drift.speed < drift.high
    assert drift.speed == pytest.approx(0.85, rel=0.02)
    assert len(drift.changes) == 1, drift.changes
    said = drift_words(drift)
    assert words in said
    assert "slower" in said


def test_settings_and_commands_of_the_job_count_as_conditions() -> None:
    runs = [noisy(day, 100.0) for day in range(4)]
    runs += [noisy(day, 140.0, env={"BATCH": "64"}, command=("python", "train.py", "--compile")) for day in range(4, 8)]
    [drift] = drifts(runs)
    assert [change.name for change in drift.changes] == ["command", "settings"]
    assert "faster" in drift_words(drift)


def test_a_prediction_that_changed_is_named_as_such() -> None:
    """After a calibration the same speed is another ratio."""
    other = replace(SPEC, predicted={**PREDICTED, "throughput": 80.0})
    runs = [*(noisy(day, 80.0) for day in range(4)), *(noisy(day, 80.0, spec=other) for day in range(4, 8))]
    [drift] = drifts(runs)
    assert [(change.name, change.before, change.after) for change in drift.changes] == [("prediction", "100", "80")]


def test_where_nothing_recorded_changed_it_says_so() -> None:
    runs = [*(noisy(day, 100.0) for day in range(4)), *(noisy(day, 70.0) for day in range(4, 8))]
    [drift] = drifts(runs)
    assert drift.changes == ()
    assert "nothing that is recorded of the runs changed then" in drift_words(drift)


def test_two_drifts_of_a_series_are_both_found_and_other_work_is_another_series() -> None:
    speeds = [100.0] * 5 + [80.0] * 5 + [100.0] * 5
    runs = [noisy(day, speed) for day, speed in enumerate(speeds)]
    runs += [noisy(day, 300.0, name="other") for day in range(5)]
    assert [drift.first.job.id for drift in drifts(runs)] == ["train-10", "train-5"]


def test_a_change_too_small_or_of_too_few_runs_is_none() -> None:
    few = [*(noisy(day, 100.0) for day in range(8)), *(noisy(day, 60.0) for day in range(8, 10))]
    small = [*(noisy(day, 100.0) for day in range(8)), *(noisy(day, 97.0) for day in range(8, 16))]
    assert drifts(few) == drifts(small) == ()


def test_noise_alone_is_seldom_called_a_drift() -> None:
    generator = random.Random(20)
    rounds = cases(150)
    alarms = sum(
        bool(drifts([finished(day, 100.0 * generator.lognormvariate(0.0, 0.08)) for day in range(14)])) for _ in range(rounds)
    )
    assert alarms <= max(0.05 * rounds, 1)  # 1.7% of 1,500 series of 14 runs; about one in 1,000 runs of a long one
