"""What the model would have said of a source that it had never seen: fits without all its rows.

A source is who measured: a repository, an author's repositories of one campaign, a submitter of MLPerf. Its rows share a
machine, a stack and habits, so rows of one source say little of the next one. Sources are dealt out over folds, large ones
first; every row is predicted by a fit that has seen none of its source, and is as near to measurements as the rest makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.calibration import random_effects
from chipwise.calibration.crossvalidate import NOISE, Sample
from chipwise.calibration.sources import source_of
from chipwise.perf import bands
from chipwise.perf.arrays import Array
from chipwise.perf.blocks import blocks
from chipwise.perf.fitting import fit
from chipwise.perf.model import widened
from chipwise.perf.pooling import Factors
from chipwise.perf.question import answer
from chipwise.perf.rows import Row
from chipwise.perf.seen import Seen

FOLDS, ROUNDS = 10, 3


def fold_of(rows: Sequence[Row], count: int = FOLDS) -> NDArray[np.intp]:
    """Large sources first, each to the fold that has the fewest rows."""
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[source_of(row)] = sizes.get(source_of(row), 0) + 1
    filled, place = [0] * count, {}
    for source, size in sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0])):
        place[source] = int(np.argmin(filled))
        filled[place[source]] += size
    return np.array([place[source_of(row)] for row in rows], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Residuals:
    """Of every row, from a fit without its source: log(measured / predicted seconds), what the fit left open, and how near."""

    fold: NDArray[np.intp]
    residual: Array
    spread: Array
    near: NDArray[np.str_]


def residuals(sample: Sample, start: Factors, tell: Callable[[str], None] = lambda text: None) -> Residuals:
    """`start` is the fit of all rows: each fold's begins there, and is solved anew without the fold."""
    family, question = sample.family.name, sample.question
    fold, truth = fold_of(sample.rows), np.log(question.time_of(sample.measured))
    residual, spread = (np.full(len(fold), np.nan) for _ in range(2))
    near = np.full(len(fold), "", dtype="<U16")
    for number in range(fold.max() + 1):
        out = fold == number
        problem = question.problem(sample.measured, np.where(out, 0.0, sample.weight))
        prediction = answer(question, fit(problem, blocks(family), NOISE[family], ROUNDS, start))
        place, beyond = Seen.of(family, question, ~out & (sample.weight > 0)).place(question)
        residual[out] = (truth - np.log(prediction.seconds))[out]
        spread[out] = widened(prediction.spread, beyond)[out]
        near[out] = np.array(place.texts())[out]
        tell(f"{family}: fold {number + 1} of {fold.max() + 1}, {out.sum()} rows")
    return Residuals(fold, residual, spread, near)


def calibrated(sample: Sample, errors: Residuals, rows: NDArray[np.bool_]) -> dict[str, bands.Band]:
    """Intervals by kind of answer and class of provenance, from `rows` (`random_effects`)."""
    kinds = np.array([sample.family.kind_of(case) for case in sample.cases])
    sources = np.array([source_of(row) for row in sample.rows])
    table = random_effects.Rows(
        kind=kinds, near=errors.near, source=sources, fold=errors.fold, residual=errors.residual, spread=errors.spread
    )
    # Without its only source nothing is known of such work: what its configurations say stays.
    single = {kind for kind in set(kinds) if len(set(sources[kinds == kind])) < 2}
    return {name: band for name, band in random_effects.intervals(table, rows).items() if name.split("|")[0] not in single}


def inside(sample: Sample, errors: Residuals) -> tuple[Array, Array]:
    """Limits of every row's residual, from the residuals of the other folds."""
    kinds = [sample.family.kind_of(case) for case in sample.cases]
    low, high = (np.full(len(errors.fold), np.nan) for _ in range(2))
    for number in np.unique(errors.fold):
        by_kind = calibrated(sample, errors, (errors.fold != number) & (sample.weight > 0))
        for row in np.flatnonzero(errors.fold == number):
            band = by_kind.get(f"{kinds[row]}|{errors.near[row]}") or by_kind.get(kinds[row]) or bands.WIDE
            ends = band.limits(errors.spread[row : row + 1])
            low[row], high[row] = ends[0][0], ends[1][0]
    return low, high
