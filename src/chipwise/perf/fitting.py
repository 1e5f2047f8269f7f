"""Fits pooled factors to measurements: penalised least squares on logarithms, robust against rows that do not belong.

Minimises  sum_i w_i (log y_i - log f_i(u))^2 / s^2 + sum_j u_j^2 / sd_j^2  by Gauss-Newton steps, where f is the formula
with its kinds of work scaled by exp(u) and w_i falls for rows far off (Student's t with 4 degrees of freedom). A
coefficient's variance says how much the rows told about it, given the others; what that is worth is left to the intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.pooling import WHOLE, Block, Factors

DEGREES = 4.0
ROW_SD = 0.2  # what one row says of a coefficient: rows of one table err together
Formula = Callable[[Mapping[str, Array]], Array]  # exponents of the bases -> logarithm of the prediction


@dataclass(frozen=True, slots=True)
class Problem:
    """What a fit needs: the formula over all rows, and for every row its names, features, weight and measured value."""

    formula: Formula
    bases: tuple[str, ...]
    levels: Mapping[str, Coded]
    features: Mapping[str, Array]
    measured: Array  # logarithms
    weight: Array  # 1 / relative variance; 0 leaves a row out of the fit


def shares(problem: Problem, exponents: Mapping[str, Array], step: float = 0.02) -> tuple[Array, dict[str, Array]]:
    """The prediction's logarithm, and its derivative by every base's exponent."""
    zero = {base: exponents.get(base, np.zeros(1)) for base in (*problem.bases, WHOLE)}
    centre = problem.formula(zero)
    found = {}
    for base in zero:
        moved = problem.formula({**zero, base: zero[base] + step})
        found[base] = (moved - centre) / step
    return centre, found


def fit(problem: Problem, blocks: Sequence[Block], noise: float = 0.06, rounds: int = 8, exact: bool = False) -> Factors:
    """Rows are fewer than coefficients, so each step is solved over rows: (V D V' + W^-1) a = r, u = D V' a.

    V holds the derivative of every row by every coefficient, D the priors' variances, W the rows' weights.
    """
    used = np.flatnonzero(problem.weight > 0)
    columns = [_Column.of(block, problem, used) for block in blocks]
    kept = [np.zeros(len(column.names)) for column in columns]
    spread = [np.full(len(column.names), column.block.sd**2) for column in columns]
    for _ in range(rounds):
        factors = _factors(columns, kept, spread)
        exponents = factors.exponents(problem.levels, problem.features)
        centre, part = shares(problem, exponents)
        rest = (problem.measured - centre)[used]
        slopes = [column.slope(part, used) for column in columns]
        target = rest + sum(
            (slope * value[column.place] for column, slope, value in zip(columns, slopes, kept, strict=True)),
            np.zeros(len(used)),
        )
        weight = problem.weight[used] * (DEGREES + 1) / (DEGREES + np.minimum((rest / noise) ** 2, 1e6)) / noise**2
        covariance = np.diag(1.0 / weight)
        for level in dict.fromkeys(block.level for block in blocks):
            here = [(column, slope) for column, slope in zip(columns, slopes, strict=True) if column.block.level == level]
            scaled = np.stack([slope * column.block.sd for column, slope in here], axis=1)
            for rows in here[0][0].members:
                if len(rows) == len(used):
                    covariance += scaled @ scaled.T
                else:
                    covariance[np.ix_(rows, rows)] += scaled[rows] @ scaled[rows].T
        solved = np.linalg.solve(covariance, target)
        for at, (column, slope) in enumerate(zip(columns, slopes, strict=True)):
            fresh = column.block.sd**2 * np.bincount(column.place, slope * solved, len(column.names))
            kept[at] = kept[at] + np.clip(fresh - kept[at], -0.7, 0.7)
        if exact:
            inverse: Array = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
            spread = [column.joint_posterior(slope, inverse) for column, slope in zip(columns, slopes, strict=True)]
        else:
            spread = [column.posterior(slope, problem.weight[used]) for column, slope in zip(columns, slopes, strict=True)]
    return _factors(columns, kept, spread)


@dataclass(frozen=True, slots=True)
class _Column:
    """One block over the rows of a fit: which of its names each row has."""

    block: Block
    names: tuple[str, ...]
    place: NDArray[np.intp]
    feature: Array
    members: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, block: Block, problem: Problem, used: NDArray[np.intp]) -> _Column:
        coded = problem.levels[block.level]
        index = np.broadcast_to(coded.index, problem.measured.shape)[used]
        present, place = np.unique(index, return_inverse=True)
        feature = np.ones(1) if block.feature == "1" else problem.features[block.feature]
        members = tuple(np.flatnonzero(place == one) for one in range(len(present)))
        values = np.broadcast_to(feature, problem.measured.shape)[used]
        return cls(block, tuple(coded.names[one] for one in present), place, values, members)

    def slope(self, part: Mapping[str, Array], used: NDArray[np.intp]) -> Array:
        share = part[self.block.base]
        return self.feature * (share if len(share) == 1 else share[used])

    def posterior(self, slope: Array, weight: Array) -> Array:
        """Variance that rows leave to each coefficient, the other blocks taken as known."""
        heard = np.bincount(self.place, weight * slope**2, len(self.names)) / ROW_SD**2
        return np.asarray(1.0 / (1.0 / self.block.sd**2 + heard))

    def joint_posterior(self, slope: Array, inverse: Array) -> Array:
        """Variance of each coefficient with all others free, as `learn_spreads` needs it."""
        sd = self.block.sd
        found = [sd**2 - sd**4 * float(slope[rows] @ inverse[np.ix_(rows, rows)] @ slope[rows]) for rows in self.members]
        return np.asarray(np.maximum(np.array(found), 0.0))


def learn_spreads(problem: Problem, blocks: Sequence[Block], noise: float = 0.06, turns: int = 10) -> list[Block]:
    """Standard deviations of the blocks from the data (expectation-maximisation for variance components).

    A block's variance becomes the mean of square plus variance of its coefficients: one that nothing supports shrinks
    away, one whose names differ grows.
    """
    found = list(blocks)
    for _ in range(turns):
        factors = fit(problem, found, noise, rounds=4, exact=True)
        for at, block in enumerate(found):
            values = factors.values[block.key]
            if values:
                moment = sum(value**2 + variance for value, variance in values.values()) / len(values)
                found[at] = Block(block.level, block.base, block.feature, float(np.clip(np.sqrt(moment), 0.005, 1.0)))
    return found


def _factors(columns: Sequence[_Column], values: Sequence[Array], variances: Sequence[Array]) -> Factors:
    found = {
        column.block.key: {
            name: (float(value), float(variance)) for name, value, variance in zip(column.names, kept, spread, strict=True)
        }
        for column, kept, spread in zip(columns, values, variances, strict=True)
    }
    return Factors(tuple(column.block for column in columns), found)
