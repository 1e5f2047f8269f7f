"""Deviations learnt from what is left out: the closed form against real refits, and that it learns what is there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from chipwise.calibration import priors
from chipwise.calibration.priors import LeaveOut, learn
from chipwise.perf.arrays import Array, Coded
from chipwise.perf.fitting import Problem, columns_of, fit, linearise
from chipwise.perf.pooling import FactorBlock

NOISE = 0.05
GROUPS = 12
EACH = 6


def problem_of(rng: np.random.Generator, spread: float) -> Problem:
    """Rows of twelve groups whose means differ by `spread`; pairs of rows across groups have an idle name too."""
    group = np.repeat(np.arange(GROUPS), EACH)
    idle = rng.permutation(GROUPS * EACH) // 2
    measured = rng.normal(0.0, spread, GROUPS)[group] + rng.normal(0.0, NOISE, GROUPS * EACH)
    levels = {
        "group": Coded(tuple(f"g{at}" for at in range(GROUPS)), group.astype(np.intp)),
        "idle": Coded(tuple(f"i{at}" for at in range(GROUPS * EACH // 2)), idle.astype(np.intp)),
    }

    def formula(exponents: Mapping[str, Array]) -> Array:
        return np.broadcast_to(exponents["*"], measured.shape)

    return Problem(formula, (), levels, {}, measured, np.ones(len(measured)))


BLOCKS = [FactorBlock("group", "*", "1", 0.2), FactorBlock("idle", "*", "1", 0.2)]


def single_rows(count: int) -> LeaveOut:
    return LeaveOut.of(list(range(count)), np.ones(count), crowd=0.0, share=1.0)


def test_the_error_of_a_left_out_set_is_that_of_a_refit() -> None:
    problem = problem_of(np.random.default_rng(1), 0.3)
    linear = priors._linear(problem, BLOCKS, NOISE)
    inverse = np.linalg.inv(linear.covariance(np.array([block.sd for block in BLOCKS]), NOISE))
    solved = inverse @ linear.target
    rows = np.arange(0, 2 * EACH)
    closed = np.linalg.solve(inverse[np.ix_(rows, rows)], solved[rows])
    # The same weights in the refit: without them the comparison would be of two robust fits.
    weight = 1.0 / linear.variance
    weight[rows] = 0.0
    kept = np.flatnonzero(weight > 0)
    covariance = linear.covariance(np.array([block.sd for block in BLOCKS]), NOISE)
    predicted = covariance[np.ix_(rows, kept)] @ np.linalg.solve(covariance[np.ix_(kept, kept)], linear.target[kept])
    assert closed == pytest.approx(linear.target[rows] - predicted, abs=1e-9)


def test_the_derivative_is_that_of_the_loss() -> None:
    problem = problem_of(np.random.default_rng(2), 0.3)
    linear = priors._linear(problem, BLOCKS, NOISE)
    ways = [LeaveOut.of(list(np.repeat(np.arange(GROUPS), EACH)), np.ones(GROUPS * EACH), 0.3, 1.0), single_rows(GROUPS * EACH)]
    sd = np.array([block.sd for block in BLOCKS])
    before, slope = priors.loss(linear, sd, NOISE, ways)
    for at in range(3):
        moved, noise = sd.copy(), NOISE
        if at < 2:
            moved[at] *= np.exp(1e-5)
        else:
            noise *= float(np.exp(1e-5))
        after, _ = priors.loss(linear, moved, noise, ways)
        assert (sum(after) - sum(before)) / 1e-5 == pytest.approx(slope[at], rel=1e-3, abs=1e-8)


def test_a_block_that_means_something_stays_and_one_that_does_not_shrinks() -> None:
    problem = problem_of(np.random.default_rng(3), 0.4)
    *_, (turn, found, _) = learn(problem, BLOCKS, NOISE, [single_rows(GROUPS * EACH)], rounds=2, steps=60)
    real, idle = (block.sd for block in found)
    assert turn.number == 120
    assert real > 0.15
    assert idle < 0.5 * BLOCKS[1].sd


def test_a_linear_problem_is_its_own_linearisation() -> None:
    problem = problem_of(np.random.default_rng(4), 0.2)
    factors = fit(problem, BLOCKS, NOISE)
    columns = columns_of(problem, BLOCKS)
    values = [np.array([factors.values[column.block.key][name][0] for name in column.names]) for column in columns]
    _, target, _ = linearise(problem, columns, values, NOISE)
    assert target == pytest.approx(problem.measured, abs=1e-9)
