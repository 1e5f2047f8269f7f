"""What runs together say of predictions: coverage with its own interval, and the trend."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.runner.accuracy.report import accuracy, coverage
from chipwise.runner.accuracy.runs import measured_run
from chipwise.runner.job import Phase
from chipwise.runner.record import Happened
from chipwise.views.accuracy import coverage_words, reason_words, run_view, view
from finished_runs import SPEC, events, finished


def test_runs_are_held_against_their_intervals() -> None:
    result = accuracy([finished(0, 105.0), finished(1, 50.0), finished(2, 100.0)])
    assert [run.job.id for run in result.runs] == ["train-2", "train-1", "train-0"]
    assert result.overall is not None
    assert result.overall.coverage is not None
    assert (result.overall.coverage.inside, result.overall.coverage.runs) == (2, 3)
    assert result.overall.error == pytest.approx(1 - 100 / 105)
    shown = run_view(result.runs[1])
    assert (shown["ratio"], shown["inside"], shown["low"], shown["high"], shown["unit"]) == (0.5, False, 90.0, 110.0, "tokens")


def test_the_coverage_has_an_interval_of_its_own() -> None:
    few, many = coverage([True, True, False, True]), coverage([True] * 30 + [False] * 70)
    assert few is not None
    assert many is not None
    assert few.is_as_meant
    assert not many.is_as_meant
    assert many.low == pytest.approx(0.219, abs=0.001)
    assert many.high == pytest.approx(0.396, abs=0.001)
    assert "too narrow" in coverage_words(many)
    assert coverage([None]) is None


def test_intervals_are_called_wrong_only_where_chance_does_not_explain_it() -> None:
    """As many runs inside as would be there by chance one time in forty, on either side."""
    cases = {(1, 3): "", (0, 2): "", (0, 3): "too narrow", (3, 8): "too narrow", (4, 8): "", (16, 16): "", (17, 17): "too wide"}
    wrong = {}
    for (inside, count), words in cases.items():
        seen = coverage([True] * inside + [False] * (count - inside))
        sentence = coverage_words(seen)
        if ("too" in sentence) != bool(words) or words not in sentence:
            wrong[inside, count] = sentence
    assert not wrong


def test_a_run_that_cannot_be_compared_says_truly_why() -> None:
    result = accuracy(
        [
            finished(0, 100.0, spec=replace(SPEC, workload="", predicted={"usd": 1.0})),
            finished(1, 100.0, spec=replace(SPEC, predicted={"why_not": "its chip is not known"})),
            finished(2, 100.0, spec=replace(SPEC, predicted={"usd": 1.0})),
            finished(3, 100.0, spec=replace(SPEC, predicted={"seconds": 9.0})),
        ]
    )
    assert {reason for reason, _ in result.reasons} == {
        "run as a command, without a workload file",
        "not predicted: its chip is not known",
        "submitted without a prediction",
        "ended before anything that was predicted was measured",
    }
    assert reason_words(result.reasons[:1]) == "run as a command, without a workload file (1 run)"


def test_the_trend_is_of_runs_that_followed_one_another() -> None:
    result = accuracy([finished(day, 60.0 if day < 6 else 95.0) for day in range(12)])
    assert [period.runs for period in result.periods] == [3, 3, 3, 3]
    assert [round(period.speed, 2) for period in result.periods] == [0.6, 0.6, 0.95, 0.95]
    assert not accuracy([finished(day, 60.0) for day in range(5)]).periods


def test_a_run_without_a_prediction_is_counted_and_not_shown() -> None:
    bare = replace(SPEC, predicted={"why_not": "nobody knows its chip"})
    result = accuracy([finished(0, 100.0), finished(1, 100.0, spec=bare)])
    assert (len(result.runs), result.unpredicted) == (1, 1)
    assert view(accuracy([]))["overall"] is None


def test_a_time_longer_than_predicted_is_a_lower_speed() -> None:
    timed = replace(SPEC, predicted={"seconds": 100.0})
    job, measurement = events(timed, {"seconds": 200.0}, 1)
    run = measured_run(job, [Happened(1, job.id, 0.0, measurement)])
    assert run is not None
    assert run.log_speed == pytest.approx(-0.693, abs=0.001)
    assert measured_run(replace(job, phase=Phase.RUNNING), [Happened(1, job.id, 0.0, measurement)]) is None
