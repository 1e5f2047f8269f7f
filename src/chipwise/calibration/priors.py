"""How much names may differ: the blocks' standard deviations, learnt from predictions of what was left out.

A fit with given deviations is, around its own solution, a linear mixed model with covariance
  K = W^-1 noise^2 + sum over blocks of sd^2 S_b,      S_b[i, j] = slope_i slope_j where rows i and j share the block's name,
and what it would have said of the rows G, had they not been there, needs no second fit:
  error_G = (K^-1[G, G])^-1 (K^-1 y)[G]                      (as in Rasmussen and Williams 2006, section 5.4.2, for sets)
So the loss is what users meet: how far off are models on chips, configurations and chips that were left out. It is lowered by
gradient steps on the logarithms of the deviations (Adam, Kingma and Ba 2015). A block that does not help shrinks away.
Limits: derivatives and the robust weights are those of the fit with all rows, so a few rounds of fit and descent are made.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array
from chipwise.perf.fitting import Column, Problem, columns_of, fit, linearise
from chipwise.perf.pooling import FactorBlock

KNEE = 0.05  # errors well below are squared, well above counted as they are: medians and tails both matter
PULL = 0.001  # towards where the descent began: what the rows do not tell stays
RATE, MOMENTUM, MEMORY = 0.1, 0.9, 0.99
SMALLEST, LARGEST = 0.003, 1.5
Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """One way of leaving rows out: sets of rows that go together, what each row's error counts, and what the whole counts."""

    sets: tuple[Index, ...]
    weight: Array
    share: float

    @classmethod
    def of(cls, keys: Sequence[Hashable], counts: Array, crowd: float, share: float) -> LeaveOut:
        """Rows with one key go together; a set of n rows counts n ** (1 - crowd) times one row."""
        members: dict[Hashable, list[int]] = {}
        for row, key in enumerate(keys):
            members.setdefault(key, []).append(row)
        sets = tuple(np.array(rows, dtype=np.intp) for rows in members.values())
        weight = np.zeros(len(keys))
        for rows in sets:
            weight[rows] = counts[rows] * float(len(rows)) ** -crowd
        return cls(sets, weight / weight.sum(), share)


@dataclass(frozen=True, slots=True)
class Turn:
    """After a step of the descent: the loss by way of leaving out."""

    number: int
    losses: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Linear:
    """A fit around its solution: V and y of  y = V u + noise."""

    columns: tuple[Column, ...]
    slopes: tuple[Array, ...]
    target: Array
    variance: Array  # of every row's noise, relative to the noise's own

    def covariance(self, sd: Array, noise: float) -> Array:
        total = np.diag(self.variance * noise**2)
        for column, slope, deviation in zip(self.columns, self.slopes, sd, strict=True):
            scaled = slope * deviation
            for rows in column.members:
                total[np.ix_(rows, rows)] += np.outer(scaled[rows], scaled[rows])
        return total

    def derivative(self, by_covariance: Array, sd: Array, noise: float) -> Array:
        """Of the loss by the logarithm of every block's deviation and, last, of the noise."""
        slopes = [
            2.0
            * deviation**2
            * sum(float(slope[rows] @ by_covariance[np.ix_(rows, rows)] @ slope[rows]) for rows in column.members)
            for column, slope, deviation in zip(self.columns, self.slopes, sd, strict=True)
        ]
        return np.array([*slopes, 2.0 * noise**2 * float(np.diag(by_covariance) @ self.variance)])


def learn(
    problem: Problem, blocks: Sequence[FactorBlock], noise: float, ways: Sequence[LeaveOut], rounds: int = 3, steps: int = 40
) -> Iterator[tuple[Turn, list[FactorBlock], float]]:
    """After every step: the losses before it, and the blocks and noise after it. `ways` are over the rows with weight."""
    start = np.log(np.array([*(block.sd for block in blocks), noise]))
    theta = start.copy()
    for turn in range(rounds):
        now = [replace(block, sd=float(np.exp(one))) for block, one in zip(blocks, theta[:-1], strict=True)]
        linear = _linear(problem, now, float(np.exp(theta[-1])))
        drift, size = np.zeros_like(theta), np.zeros_like(theta)
        for step in range(1, steps + 1):
            losses, slope = loss(linear, np.exp(theta[:-1]), float(np.exp(theta[-1])), ways)
            slope = slope + PULL * (theta - start)
            drift, size = MOMENTUM * drift + (1 - MOMENTUM) * slope, MEMORY * size + (1 - MEMORY) * slope**2
            move = drift / (1 - MOMENTUM**step) / (np.sqrt(size / (1 - MEMORY**step)) + 1e-4)
            theta = np.clip(theta - RATE * move, np.log(SMALLEST), np.log(LARGEST))
            updated = [replace(block, sd=float(np.exp(one))) for block, one in zip(blocks, theta[:-1], strict=True)]
            yield Turn(turn * steps + step, losses), updated, float(np.exp(theta[-1]))


def loss(linear: _Linear, sd: Array, noise: float, ways: Sequence[LeaveOut]) -> tuple[tuple[float, ...], Array]:
    """The losses, and the derivative of their weighted sum."""
    inverse = np.linalg.inv(linear.covariance(sd, noise))
    solved = inverse @ linear.target
    by_solved = np.zeros_like(solved)
    by_inverse = np.zeros_like(inverse)
    losses = []
    for way in ways:
        error = np.zeros_like(solved)
        for rows in way.sets:
            error[rows] = np.linalg.solve(inverse[np.ix_(rows, rows)], solved[rows])
        bent = np.sqrt(error**2 + KNEE**2)
        losses.append(float(way.weight @ (bent - KNEE)))
        slope = way.share * way.weight * error / bent
        for rows in way.sets:
            back = np.linalg.solve(inverse[np.ix_(rows, rows)], slope[rows])
            by_solved[rows] += back
            by_inverse[np.ix_(rows, rows)] -= np.outer(back, error[rows])
    by_inverse += np.outer(by_solved, linear.target)
    by_covariance = -inverse @ by_inverse @ inverse
    return tuple(losses), linear.derivative((by_covariance + by_covariance.T) / 2, sd, noise)


def _linear(problem: Problem, blocks: Sequence[FactorBlock], noise: float) -> _Linear:
    factors = fit(problem, blocks, noise)
    columns = columns_of(problem, blocks)
    values = [np.array([factors.values[column.block.key][name][0] for name in column.names]) for column in columns]
    slopes, target, weight = linearise(problem, columns, values, noise)
    return _Linear(tuple(columns), tuple(slopes), target, 1.0 / weight)
