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
from chipwise.perf.pooling import ALL_TERMS, FactorBlock, Factors

DEGREES = 4.0
FAR_BASES = ("prefill", "request", "queue")  # what sources may differ in by far,
FAR_LEVELS = ("source", "source|vendor")
SOURCE_DEGREES, USUAL_FAR = 4.0, 2.0  # and how readily: degrees of freedom, and squared deviations that are usual
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
    zero = {base: exponents.get(base, np.zeros(1)) for base in (*problem.bases, ALL_TERMS)}
    centre = problem.formula(zero)
    slopes = {}
    for base in zero:
        moved = problem.formula({**zero, base: zero[base] + step})
        slopes[base] = (moved - centre) / step
    return centre, slopes


def fit(
    problem: Problem, blocks: Sequence[FactorBlock], noise: float = 0.06, rounds: int = 8, start: Factors | None = None
) -> Factors:
    """Rows are fewer than coefficients, so each step is solved over rows: (V D V' + W^-1) a = r, u = D V' a.

    V holds the derivative of every row by every coefficient, D the priors' variances, W the rows' weights.
    `start` is a fit of nearly the same rows, from which fewer rounds are enough.
    """
    columns = columns_of(problem, blocks)
    known = start.values if start is not None else {}
    coefficients = [
        np.array([known.get(column.block.key, {}).get(name, (0.0, 0.0))[0] for name in column.names]) for column in columns
    ]
    deviations = _drawn_out(columns, coefficients)
    spread = [deviation**2 for deviation in deviations]
    for _ in range(rounds):
        slopes, target, weight = linearise(problem, columns, coefficients, noise)
        covariance = np.diag(noise**2 / weight)
        for level in dict.fromkeys(block.level for block in blocks):
            at = [place for place, column in enumerate(columns) if column.block.level == level]
            scaled = np.stack([slopes[place] * deviations[place][columns[place].place] for place in at], axis=1)
            for rows in columns[at[0]].members:
                if len(rows) == len(target):
                    covariance += scaled @ scaled.T
                else:
                    covariance[np.ix_(rows, rows)] += scaled[rows] @ scaled[rows].T
        solved = np.linalg.solve(covariance, target)
        for index, (column, slope) in enumerate(zip(columns, slopes, strict=True)):
            fresh = deviations[index] ** 2 * np.bincount(column.place, slope * solved, len(column.names))
            coefficients[index] = coefficients[index] + np.clip(fresh - coefficients[index], -0.7, 0.7)
        deviations = _drawn_out(columns, coefficients)
        trust = problem.weight[problem.weight > 0]
        spread = [column.posterior(slope, trust) for column, slope in zip(columns, slopes, strict=True)]
    return _factors(columns, coefficients, spread)


def _drawn_out(columns: Sequence[Column], values: Sequence[Array]) -> list[Array]:
    """Prior deviations of every coefficient. What a source takes until a first token may be far from all others (Student's t
    over all of it): caches of prefixes, clients, networks and waves are seldom stated; and on one vendor's chips, whose
    software was young when it measured. It is then the source's own, and does not move what all share."""

    def drawn(level: str) -> Array:
        apart: Array = sum(
            ((value / column.block.sd) ** 2 for column, value in zip(columns, values, strict=True) if _is_far(column, level)),
            np.zeros(1),
        )
        return np.sqrt(np.maximum((SOURCE_DEGREES + apart) / (SOURCE_DEGREES + USUAL_FAR), 1.0))

    by_level = {level: drawn(level) for level in FAR_LEVELS}
    return [
        column.block.sd * (by_level[column.block.level] if _is_far(column) else np.ones(len(column.names)))
        for column in columns
    ]


def _is_far(column: Column, *level: str) -> bool:
    return column.block.level in (level or FAR_LEVELS) and column.block.base.startswith(FAR_BASES)


def columns_of(problem: Problem, blocks: Sequence[FactorBlock]) -> list[Column]:
    used = np.flatnonzero(problem.weight > 0)
    return [Column.of(block, problem, used) for block in blocks]


def linearise(
    problem: Problem, columns: Sequence[Column], values: Sequence[Array], noise: float
) -> tuple[list[Array], Array, Array]:
    """Around given coefficients, over the rows with weight: derivatives by every block, what they should add up to, and the
    rows' weights, which fall for rows far off."""
    used = np.flatnonzero(problem.weight > 0)
    exponents = _factors(columns, values, values).exponents(problem.levels, problem.features)
    centre, part = shares(problem, exponents)
    rest = (problem.measured - centre)[used]
    slopes = [np.broadcast_to(column.slope(part, used), used.shape) for column in columns]
    target = rest + sum(
        (slope * value[column.place] for column, slope, value in zip(columns, slopes, values, strict=True)), np.zeros(len(used))
    )
    weight = problem.weight[used] * (DEGREES + 1) / (DEGREES + np.minimum((rest / noise) ** 2, 1e6))
    return slopes, target, weight


@dataclass(frozen=True, slots=True)
class Column:
    """One block over the rows of a fit: which of its names each row has."""

    block: FactorBlock
    names: tuple[str, ...]
    place: NDArray[np.intp]
    feature: Array
    members: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, block: FactorBlock, problem: Problem, used: NDArray[np.intp]) -> Column:
        coded = problem.levels[block.level]
        index = np.broadcast_to(coded.index, problem.measured.shape)[used]
        present, place = np.unique(index, return_inverse=True)
        feature = np.ones(1) if block.feature == "1" else problem.features[block.feature]
        members = tuple(np.flatnonzero(place == one) for one in range(len(present)))
        values = np.broadcast_to(feature, problem.measured.shape)[used]
        return cls(block=block, names=tuple(coded.names[one] for one in present), place=place, feature=values, members=members)

    def slope(self, part: Mapping[str, Array], used: NDArray[np.intp]) -> Array:
        share = part[self.block.base]
        return self.feature * (share if len(share) == 1 else share[used])

    def posterior(self, slope: Array, weight: Array) -> Array:
        """Variance that rows leave to each coefficient, the other blocks taken as known."""
        information = np.bincount(self.place, weight * slope**2, len(self.names)) / ROW_SD**2
        return np.asarray(1.0 / (1.0 / self.block.sd**2 + information))


def _factors(columns: Sequence[Column], values: Sequence[Array], variances: Sequence[Array]) -> Factors:
    coefficients = {
        column.block.key: {
            name: (float(value), float(variance)) for name, value, variance in zip(column.names, means, spread, strict=True)
        }
        for column, means, spread in zip(columns, values, variances, strict=True)
    }
    return Factors(tuple(column.block for column in columns), coefficients)
