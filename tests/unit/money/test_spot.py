from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from chipwise.errors import InvalidSettings
from chipwise.money.spot import best_interval_s, daly_interval_s, run
from effort import cases, some

H = 3600.0


def simulated(
    work: float, rate: float, save: float, restart: float, wait: float, interval: float, runs: int, seed: int
) -> tuple[float, float, float]:
    """Mean and standard deviation of the time, and mean losses: every run, loss by loss."""
    draw = np.random.default_rng(seed)
    took, lost = [], []  # of those that ended
    time, left, losses, again = np.zeros(runs), np.full(runs, work), np.zeros(runs), np.zeros(runs)
    while len(time):
        last = left <= interval + save + 1e-9 * work
        need = np.where(last, left, interval + save) + again
        lives = draw.exponential(1 / rate, len(time))
        passed = lives >= need
        time += np.where(passed, need, lives + draw.exponential(wait, len(time)))
        losses += ~passed
        left -= np.where(passed, interval, 0.0)
        again = np.where(passed, 0.0, restart)
        if (ended := passed & last).any():
            took.append(time[ended])
            lost.append(losses[ended])
            time, left, losses, again = (one[~ended] for one in (time, left, losses, again))
    all_took, all_lost = np.concatenate(took), np.concatenate(lost)
    return float(all_took.mean()), float(all_took.std()), float(all_lost.mean())


GRID = [
    (work * H, mean * H, save, restart, wait)
    for work, mean, save, restart, wait in product((1, 24, 200), (0.4, 3, 30, 3000), (20, 600), (90, 900), (0, 2 * H))
]


@pytest.mark.chance
@pytest.mark.parametrize(("work", "mean", "save", "restart", "wait"), some(GRID))
def test_against_a_simulation(work: float, mean: float, save: float, restart: float, wait: float) -> None:
    found = run(work, 1 / mean, 1, save, restart, wait_s=wait)
    runs = 2500 if found.checkpoints >= 200 else 20000 if found.interruptions > 1 else 200000
    expected, spread, losses = simulated(work, 1 / mean, save, restart, wait, float(found.interval_s), runs, seed=7)
    assert float(found.expected_s) == pytest.approx(expected, rel=0.02)
    chance = 2.0 / np.sqrt(max(losses * runs, 1.0))  # of a spread that so many losses make
    assert float(found.spread_s) == pytest.approx(spread, rel=max(0.05, chance), abs=0.01 * expected)
    assert float(found.interruptions) == pytest.approx(losses, rel=0.05, abs=0.02)


@pytest.mark.parametrize(
    ("work", "mean", "save", "restart", "wait", "interval"),
    [
        (10 * H, 2 * H, 60, 300, 600, 3 * H),  # far too seldom
        (10 * H, 2 * H, 60, 300, 600, 100),  # far too often
        (2 * H, 0.4 * H, 30, 60, 0, 5 * H),  # never
        (7 * H, 1 * H, 900, 1800, 0, 2000),  # saving and restarting near the time between losses
    ],
)
def test_against_a_simulation_with_a_given_interval(
    work: float, mean: float, save: float, restart: float, wait: float, interval: float
) -> None:
    found = run(work, 1 / mean, 1, save, restart, interval, wait_s=wait)
    expected, spread, _ = simulated(work, 1 / mean, save, restart, wait, interval, 20000, seed=3)
    assert float(found.expected_s) == pytest.approx(expected, rel=0.02)
    assert float(found.spread_s) == pytest.approx(spread, rel=0.05, abs=0.01 * expected)


def test_the_parts_make_up_the_whole() -> None:
    work = np.array([1.0, 30.0, 500.0]) * H
    found = run(work, 1e-4, 4, 30, 120, wait_s=300)
    parts = work + found.lost_s + found.saved_s + found.restarting_s + found.waiting_s
    assert found.expected_s == pytest.approx(parts)


def test_without_losses_nothing_is_saved_or_waited_for() -> None:
    found = run(10 * H, 0.0, 8, 60, 300, wait_s=600)
    assert found.expected_s == found.needed_s == found.interval_s == 10 * H
    assert found.spread_s == 0
    assert found.interruptions == found.checkpoints == 0


def test_n_machines_together_are_one_of_n_times_the_rate() -> None:
    many, one = run(20 * H, 1e-6, 16, 60, 300), run(20 * H, 16e-6, 1, 60, 300)
    assert many.expected_s == one.expected_s
    assert many.spread_s == one.spread_s


def test_machines_on_a_common_queue_lose_only_their_own_work() -> None:
    apart, one = run(20 * H, 1e-5, 16, 60, 300, together=False), run(20 * H, 1e-5, 1, 60, 300)
    together = run(20 * H, 1e-5, 16, 60, 300)
    assert apart.expected_s == one.expected_s < together.expected_s
    assert apart.interruptions == pytest.approx(16 * float(one.interruptions))
    assert apart.spread_s == pytest.approx(float(one.spread_s) / 4)


def test_machines_that_are_lost_at_the_same_time_do_not_make_up_for_each_other() -> None:
    one = run(20 * H, 1e-5, 1, 60, 300)
    for alone, counted in ((1.0, 16), (0.5, 4), (0.0, 1)):
        apart = run(20 * H, 1e-5, 16, 60, 300, together=False, alone=alone)
        assert apart.expected_s == one.expected_s
        assert apart.spread_s == pytest.approx(float(one.spread_s) / np.sqrt(counted))


def test_youngs_and_dalys_intervals_are_the_limits_of_the_best() -> None:
    rare = best_interval_s(10.0, 1e7)
    assert rare == pytest.approx(np.sqrt(2 * 10.0 * 1e7), rel=1e-3)
    saves, mean = np.array([1.0, 60.0, 600.0, 3000.0]), 2 * H
    assert daly_interval_s(saves, mean) == pytest.approx(best_interval_s(saves, mean), rel=0.02)
    assert best_interval_s(1e5, 1.0) == pytest.approx(1.0)


@settings(max_examples=cases(60), deadline=None)
@given(st.floats(600, 1e6), st.floats(300, 1e7), st.floats(1, 2000), st.floats(0, 2000), st.floats(0, 7200))
@example(434447.0, 331.0, 2000.0, 2000.0, 1230.0)  # nearly for ever
def test_no_other_interval_is_better(work: float, mean: float, save: float, restart: float, wait: float) -> None:
    best = run(work, 1 / mean, 1, save, restart, wait_s=wait)
    others = np.geomspace(work / 3000, work, 200)
    tried = run(work, 1 / mean, 1, save, restart, others, wait_s=wait)
    assert (best.expected_s <= tried.expected_s * (1 + 1e-9)).all()
    same = run(work, 1 / mean, 1, save, restart, best.interval_s, wait_s=wait)
    assert same.expected_s == pytest.approx(best.expected_s, rel=1e-9)


quantities = st.tuples(st.floats(60, 3e6), st.floats(1e-9, 3e-3), st.floats(0, 3000), st.floats(0, 3000), st.floats(0, 1e4))


@settings(max_examples=cases(150), deadline=None)
@given(quantities, st.integers(0, 4), st.floats(1.001, 5))
def test_more_of_anything_never_ends_sooner(quantity: tuple[float, ...], which: int, times: float) -> None:
    more = list(quantity)
    more[which] *= times
    assume(quantity[1] * (quantity[2] + quantity[3]) < 20)
    (work, rate, save, restart, wait), (work2, rate2, save2, restart2, wait2) = quantity, more
    before = run(work, rate, 1, save, restart, wait_s=wait)
    after = run(work2, rate2, 1, save2, restart2, wait_s=wait2)
    # Free checkpoints are written so often that the rest no longer matters, to a thousandth.
    assert after.expected_s >= before.expected_s * (1 - (2e-3 if save == 0 else 1e-9))
    assert before.expected_s >= work * (1 - 1e-12)
    assert before.needed_s >= work * (1 - 1e-12)
    fixed = run(work, rate, 1, save, restart, work / 7, wait_s=wait)
    if which in (1, 3, 4) and np.isfinite(fixed.expected_s):  # with more work or saving the last checkpoint may fall away
        later = run(work, rate2, 1, save2, restart2, work / 7, wait_s=wait2)
        assert later.expected_s >= fixed.expected_s * (1 - 1e-9)


def test_a_hopeless_run_is_long_and_not_an_error() -> None:
    found = run(np.array([100 * H, 100 * H]), 1 / 60, 64, 600, np.array([900, 9e6]))
    assert (found.expected_s > 1e15).all()
    assert (found.spread_s == found.expected_s).all()  # by luck alone: exponential


def test_candidates_broadcast_and_keep_their_shape() -> None:
    found = run(np.full((3, 1), 10 * H), np.array([1e-7, 1e-5]), 2, 30, 60)
    assert found.expected_s.shape == found.spread_s.shape == (3, 2)
    assert float(found.spread_s[0, 1]) == pytest.approx(float(run(10 * H, 1e-5, 2, 30, 60).spread_s))


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("work_s", (-1, 1e-5, 1, 1, 1)),
        ("rate_per_s", (1, float("nan"), 1, 1, 1)),
        ("machines", (1, 1e-5, 0, 1, 1)),
        ("save_s", (1, 1e-5, 1, -1, 1)),
        ("restart_s", (1, 1e-5, 1, 1, float("inf"))),
    ],
)
def test_impossible_numbers_are_named(field: str, values: tuple[float, float, float, float, float]) -> None:
    with pytest.raises(InvalidSettings) as caught:
        run(*values)
    assert [problem.field for problem in caught.value.problems] == [field]
    assert caught.value.problems[0].allowed


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="interval_s"):
        run(1, 1e-5, 1, 1, 1, 0.0)
