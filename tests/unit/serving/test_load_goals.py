"""A goal is held against all requests, and a few of them decide nothing."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.serving.load_goals import GoalVerdict, judged, needed_requests, trial_seconds
from chipwise.serving.load_report import Shots

P95 = ("ttft", 0.95)


def shots(count: int, *, failed: int = 0, slow: int = 0, tokens: float = 11.0) -> Shots:
    due = np.arange(count) / 10.0
    first = np.where(np.arange(count) < slow, 2.0, 0.1)
    return Shots(
        due_s=due,
        sent_s=due,
        first_s=due + first,
        end_s=due + first + 0.1 * (tokens - 1.0),
        tokens=np.full(count, tokens),
        events=np.full(count, tokens),
        errors=["status_500"] * failed + [""] * (count - failed),
    )


def verdict(seen: Shots, goal: tuple[str, float] = P95, limit_s: float = 0.5) -> GoalVerdict:
    [result] = judged(seen, {goal: limit_s})
    return result


def test_a_failed_request_misses_every_goal() -> None:
    good = verdict(shots(400, failed=16))
    assert good.holds
    assert good.kept_share == pytest.approx(0.96)
    for goal in (P95, ("tpot", 0.95), ("latency", 0.95)):
        assert not verdict(shots(400, failed=40), goal, limit_s=5.0).holds


def test_an_answer_of_one_token_says_nothing_about_the_time_per_token() -> None:
    assert verdict(shots(10, tokens=1.0), ("tpot", 0.95)).requests == 0
    assert not verdict(shots(10, tokens=1.0), ("tpot", 0.95)).holds


def test_a_percentile_needs_ten_requests_beyond_it() -> None:
    assert needed_requests(0.95) == 200
    assert needed_requests(0.99) == 1000
    few, many = verdict(shots(48)), verdict(shots(200))
    assert few.holds
    assert not few.is_sure
    assert many.holds
    assert many.is_sure
    assert not verdict(shots(48, slow=3)).is_sure  # 3 of 48 too late: as likely as not with a p95 within the goal
    clear = verdict(shots(48, slow=24))
    assert clear.is_sure
    assert not clear.holds


def test_any_percentile_is_judged() -> None:
    assert verdict(shots(1000, slow=20), ("ttft", 0.975)).holds
    assert not verdict(shots(1000, slow=30), ("ttft", 0.975)).holds


def test_a_trial_lasts_until_there_are_enough_requests() -> None:
    assert trial_seconds(None, 100.0, [0.95]) == 30.0
    assert 200.0 < trial_seconds(None, 1.0, [0.5, 0.95]) < 260.0
    assert trial_seconds(None, 0.01, [0.999]) == 600.0  # the longest
    assert trial_seconds(5.0, 1.0, [0.95]) == 5.0
