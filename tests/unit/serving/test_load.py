"""Arrivals, and what a load test says of what it saw."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.errors import BadInput
from chipwise.serving.arrivals import bursty, constant, poisson, replayed
from chipwise.serving.load_report import LoadGoals, Shots, summarise


def squared_variation(times: np.ndarray) -> float:
    gaps = np.diff(times)
    return float(gaps.var() / gaps.mean() ** 2)


def test_arrivals_have_their_rate_and_burstiness() -> None:
    chance = np.random.default_rng(5)
    for times, variation in (
        (constant(100.0, 200.0), 0.0),
        (poisson(100.0, 200.0, chance), 1.0),
        (bursty(100.0, 200.0, 4.0, chance), 4.0),
        (bursty(100.0, 200.0, 0.25, chance), 0.25),
    ):
        assert len(times) == pytest.approx(20_000, rel=0.05)
        assert times[-1] < 200.0
        assert np.all(np.diff(times) >= 0.0)
        assert squared_variation(times) == pytest.approx(variation, rel=0.15, abs=1e-9)


def test_a_recording_keeps_its_gaps() -> None:
    assert replayed([5.0, 3.0, 9.0], speed=2.0).tolist() == [0.0, 1.0, 3.0]
    with pytest.raises(BadInput):
        replayed([])
    with pytest.raises(BadInput):
        constant(0.0, 10.0)


def test_times_start_when_a_request_was_due() -> None:
    """A service that stands still for a second has slow answers, however late they were sent."""
    due = np.array([0.0, 0.5, 1.0, 1.5])
    shots = Shots(
        due_s=due,
        sent_s=due + np.array([0.0, 0.4, 0.0, 0.0]),
        first_s=due + 1.0,
        end_s=due + 2.0,
        tokens=np.array([11.0, 11.0, 11.0, 1.0]),
        events=np.array([11.0, 11.0, 0.0, 1.0]),
        errors=["", "", "", "status_500"],
    )
    report = summarise(shots, LoadGoals(first_token_s=1.5))
    assert report.errors == {"status_500": 1}
    assert report.answered == 3
    assert report.first_token is not None
    assert report.first_token.p50 == 1.0
    assert report.per_token is not None
    assert report.per_token.count == 2
    assert report.per_token.p50 == pytest.approx(0.1)
    assert report.lateness is not None
    assert report.lateness.highest == pytest.approx(0.4)
    assert report.good_per_s == report.answered_per_s
    assert summarise(shots, LoadGoals(first_token_s=0.5)).good_per_s == 0.0
    assert summarise(shots, LoadGoals(), warm_up_s=0.9).requests == 2
