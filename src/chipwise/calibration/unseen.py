"""What the model would have said of a file's rows, had it seen neither them nor their kin.

The fit may also learn from rows beside those that are asked about (the packaged ones), so that a file of ten rows is
answered by the whole model without its groups and not by a model of ten rows. Only folds that hold a row of the file are
fitted. A row without a measured value is answered like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.calibration.crossvalidate import Sample, key_of, left_out, samples
from chipwise.calibration.families import family_for, find_part
from chipwise.calibration.score import Scored, predict
from chipwise.perf import bands
from chipwise.perf.arrays import Array, Coded
from chipwise.perf.model import Model, widened
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row
from chipwise.perf.seen import FORMULA, Seen
from chipwise.spelling import fold

FOLDS = {"group": 6, "configuration": 5, "chip": 8, "source": 10}
Tell = Callable[[int, int, str], None]  # done, of how many, what


def identity(row: Row) -> tuple[str, str, str]:
    """By which a row of a file is found among the packaged ones; nothing is known of one without a row_id."""
    return row.text("row_id"), row.text("model"), row.text("metric_name")


def unseen(
    rows: Sequence[Row], extra: Iterable[Row], parts: Parts, model: Model, leave_out: str, count: int, tell: Tell
) -> list[Scored]:
    """Predictions of `rows` from fits on `rows` and `extra` without the fold; intervals as packaged, for rows as near to
    measurements as the fit has them."""
    answered = predict(rows, parts, model)
    targets = [_askable(row) for row in rows]
    place = {id(row): at for at, row in enumerate(targets)}
    plans = [
        _plan(sample, [at for at, row in enumerate(sample.rows) if id(row) in place], parts, leave_out, count)
        for sample in samples([*targets, *_extra_rows(rows, extra)], parts)
        if any(id(row) in place for row in sample.rows)
    ]
    total, finished = sum(plan.fits for plan in plans), 0
    for plan in plans:
        sample = plan.sample
        tell(finished, total, sample.family.name)
        fits = left_out(sample, plan.fold)
        for _ in range(plan.fits):
            _, predicted = next(fits)
            finished += 1
            tell(finished, total, sample.family.name)
        kind = Coded.of([sample.family.kind_of(sample.cases[at]) for at in plan.targets])
        near, beyond = _near(plan, model)
        if near is not None:
            kind = kind.cross(near)
        value, seconds, spread = (column[plan.targets] for column in (predicted.value, predicted.log_seconds, predicted.spread))
        scale, power = (
            np.broadcast_to(values, predicted.value.shape)[plan.targets]
            for values in (sample.question.scale, sample.question.power)
        )
        spread = widened(spread, beyond)
        ends = [scale * (np.exp(seconds) * side) ** power for side in bands.limits(model.bands, kind, spread)]
        low, high = np.minimum(*ends), np.maximum(*ends)
        for index, row in enumerate(plan.targets):
            before = answered[place[id(sample.rows[row])]]
            answered[place[id(sample.rows[row])]] = Scored(
                predicted=float(value[index]),
                low=float(low[index]),
                high=float(high[index]),
                peak_gb=before.peak_gb,
                provenance=before.provenance if near is None else near.name_at(index),
            )
    return answered


def _near(plan: _Plan, model: Model) -> tuple[Coded | None, Array]:
    """How near each asked row is to what its own fit has seen; None where that is not known of a family."""
    sample, family = plan.sample, plan.sample.family.name
    if family not in model.nearness:
        return None, np.zeros(1)
    names, beyond = np.full(len(plan.fold), FORMULA, dtype=object), np.zeros(len(plan.fold))
    for number in range(plan.fits):
        out = plan.fold == number
        rest = ~out & (sample.weight > 0)
        if not rest.any():
            continue
        place, distance = Seen.of(family, sample.question, rest).place(sample.question)
        names[out] = np.array(place.texts(), dtype=object)[out]
        beyond[out] = np.broadcast_to(distance, out.shape)[out]
    return Coded.of([str(names[at]) for at in plan.targets]), beyond[plan.targets]


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which rows of a sample are asked about, and the fold of each row; folds from `fits` on are never left out."""

    sample: Sample
    targets: list[int]
    fold: NDArray[np.intp]
    fits: int


def _plan(sample: Sample, targets: list[int], parts: Parts, leave_out: str, count: int) -> _Plan:
    grouped = all(sample.rows[at].text("group") for at in targets)
    keys = [_key(row, parts, leave_out, grouped) for row in sample.rows]
    names = sorted({keys[at] for at in targets})
    np.random.default_rng(1).shuffle(names)
    number = {name: at % count for at, name in enumerate(names)}
    fits = len(set(number.values()))
    return _Plan(sample, targets, np.array([number.get(key, fits) for key in keys], dtype=np.intp), fits)


def _extra_rows(rows: Sequence[Row], extra: Iterable[Row]) -> list[Row]:
    """What else may be learned from: the same families, and never a row that is asked about."""
    families = {family.name for family in map(family_for, rows) if family is not None}
    identities = {identity(row) for row in rows if row.text("row_id")}
    usable = []
    for row in extra:
        family = family_for(row)
        if family is not None and family.name in families and identity(row) not in identities:
            usable.append(row)
    return usable


def _askable(row: Row) -> Row:
    """A row without a value takes part with no weight: one of quality D is fitted by nobody."""
    if row.number("metric_value", 0.0) > 0:
        return Row(row.cells)  # an object of its own: a caller may have given one row twice
    return Row({**row.cells, "metric_value": "1", "quality": "D"})


def _key(row: Row, parts: Parts, leave_out: str, grouped: bool) -> str:
    """As `crossvalidate` names folds, with a chip and a model by one spelling whatever the file calls them."""
    part = find_part(row, parts)
    cells = {**row.cells, "chip": part.name if part else row.text("chip"), "model": fold(row.text("model"))}
    if not grouped:
        cells.pop("group", None)
    return key_of(leave_out)(Row(cells))
