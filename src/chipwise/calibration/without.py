"""What the model would have said of a source that it had never seen: fits without all its rows.

A source is who measured: a repository, an author's repositories of one campaign, a submitter of MLPerf. Its rows share a
machine, a stack and habits, so rows of one source say little of the next one. Sources are dealt out over folds, large ones
first; every row is predicted by a fit that has seen none of its source, and is as near to measurements as the rest makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
from chipwise.perf.seen import CLASSES, INTERPOLATED, Seen

FOLDS, ROUNDS = 10, 3
FEWEST_ROWS, FEWEST_SOURCES = 30, 3  # of a class of provenance that has intervals of its own
CROWD = 0.7  # a source of n rows counts n ** (1 - CROWD) times one row
BINS, SOURCES_OF_BIN = 3, 6
TARGET_SHARE, DRAWN = 0.8, (0.8, 1.6)  # what intervals hold, and how far percentiles may be drawn out for it
NARROWEST = 0.03  # what an interval has on either side
BORROWED = 1.2  # times the intervals of its kin that a kind of few sources has
_KIN = {"at once": "throughput", "first token unloaded": "prefill", "prefill": "first token unloaded", "decode": "token"}


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
    """Intervals by kind of answer and class of provenance, from `rows`. A kind of few sources borrows from its kin; a class of
    few sources has the intervals of its kind, and only what is near measurements may have narrower ones."""
    kinds = np.array([sample.family.kind_of(case) for case in sample.cases])
    sources = np.array([source_of(row) for row in sample.rows])

    def enough(members: NDArray[np.bool_]) -> bool:
        return int(members.sum()) >= FEWEST_ROWS and len(set(sources[members])) >= FEWEST_SOURCES

    by_kind: dict[str, bands.Band] = {}
    for kind in sorted(set(kinds)):
        of_kind = rows & (kinds == kind)
        if len(set(sources[kinds == kind])) < 2:
            continue  # without its only source nothing is known of such work: what its configurations say stays
        drawn = 1.0
        if not enough(of_kind):
            plain = str(kind).removesuffix(" neuron")
            of_kind = rows & ((kinds == kind) | (kinds == plain) | (kinds == _KIN.get(plain, "")))
            drawn = BORROWED if kind in _KIN else 1.0
        by_kind[str(kind)] = kind_band = _drawn(_band(errors, sources, of_kind), drawn)
        for name in CLASSES:
            members = of_kind & (errors.near == name)
            if enough(members):
                band = _drawn(_band(errors, sources, members), drawn)
                if name == INTERPOLATED or _width(band) >= _width(kind_band):
                    by_kind[f"{kind}|{name}"] = band
    return by_kind


def _width(band: bands.Band) -> float:
    return float(np.mean(np.subtract(band.high, band.low)))


def _band(errors: Residuals, sources: NDArray[np.str_], rows: NDArray[np.bool_]) -> bands.Band:
    """The percentiles of rows of other sources hold less often than they say. So every fold is rank against the band of the
    others, and the band of all is drawn out by what it takes to hold four times of five."""
    plain = _plain(errors, sources, rows)
    needed, weight = np.zeros(0), np.zeros(0)
    for number in np.unique(errors.fold[rows]):
        out = rows & (errors.fold == number)
        if (rows & ~out).sum() < FEWEST_ROWS:
            continue
        low, high = _plain(errors, sources, rows & ~out).limits(errors.spread[out])
        residual = errors.residual[out]
        times = np.where(residual > 0, residual / np.maximum(high, 0.02), residual / np.minimum(low, -0.02))
        needed, weight = np.append(needed, times), np.append(weight, _counted(sources[out]))
    if not len(needed):
        return plain
    order = np.argsort(needed)
    rank = np.searchsorted(np.cumsum(weight[order]) / weight.sum(), TARGET_SHARE)
    return _drawn(plain, float(np.clip(needed[order[min(int(rank), len(order) - 1)]], *DRAWN)))


def _drawn(band: bands.Band, times: float) -> bands.Band:
    return replace(band, low=tuple(one * times for one in band.low), high=tuple(one * times for one in band.high))


def _plain(errors: Residuals, sources: NDArray[np.str_], rows: NDArray[np.bool_]) -> bands.Band:
    bins = int(np.clip(len(set(sources[rows])) // SOURCES_OF_BIN, 1, BINS))
    band = bands.calibrate(errors.spread[rows], errors.residual[rows], bins, _counted(sources[rows]))
    return replace(
        band, low=tuple(min(one, -NARROWEST) for one in band.low), high=tuple(max(one, NARROWEST) for one in band.high)
    )


def _counted(sources: NDArray[np.str_]) -> Array:
    _, place, counts = np.unique(sources, return_inverse=True, return_counts=True)
    return np.asarray(counts[place] ** -CROWD)


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
