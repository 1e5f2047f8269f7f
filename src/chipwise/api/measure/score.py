"""Scores predictions against a file of measurements, and repeats the file with what was predicted."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from chipwise.api.measure.measured import MeasurementFile, read
from chipwise.api.session.wiring import Session
from chipwise.calibration import score as scoring
from chipwise.calibration.crossvalidate import LEAVE_OUT, group_key
from chipwise.calibration.guesses import guesses
from chipwise.calibration.measurements import packaged
from chipwise.calibration.score import Figures as Figures
from chipwise.calibration.score import Scored
from chipwise.calibration.unseen import FOLDS, identity, unseen
from chipwise.errors import BadInput
from chipwise.perf.model import MEASURED
from chipwise.perf.model import packaged as packaged_model

GROUPINGS = dict(zip(("chip", "model", "engine", "metric", "source"), scoring.COLUMNS, strict=True))
ADDED = ("predicted", "low", "high", "predicted_peak_gb", "provenance", "reason")
_PAIRED = 1500  # rows of one group
Report = Callable[[int, int | None, str], None]


@dataclass(frozen=True, slots=True)
class Ask:
    """How rows are answered: by the packaged factors, or as if what is left out had never been seen."""

    leave_out: str | None = None
    folds: int | None = None
    own: bool = True  # the user's calibration and profiles count


@dataclass(frozen=True)
class Score:
    """A file's rows with their answers; figures are of rows that were both measured and answered."""

    measured: MeasurementFile
    answers: tuple[Scored, ...]
    own: bool  # the user's calibration or profiles had a say
    notes: tuple[str, ...]

    @cached_property
    def overall(self) -> Figures | None:
        return scoring.figures(self.measured.rows, self.answers)

    @cached_property
    def groups(self) -> dict[str, dict[str, Figures]]:
        found = scoring.figures_by(self.measured.rows, self.answers)
        return {name: found[column] for name, column in GROUPINGS.items()}

    @cached_property
    def refused(self) -> list[tuple[str, int]]:
        return sorted(scoring.refused(self.answers).items(), key=lambda pair: -pair[1])

    @cached_property
    def guessed(self) -> list[tuple[str, int]]:
        """What of answered rows was guessed, with the number of rows."""
        counts: dict[str, int] = {}
        for row, answer in zip(self.measured.rows, self.answers, strict=True):
            for reason in guesses(row) if answer.predicted is not None else ():
                counts[reason] = counts.get(reason, 0) + 1
        return sorted(counts.items(), key=lambda pair: -pair[1])

    @cached_property
    def pairs(self) -> tuple[int, int]:
        """Of a very large group the first rows speak: pairs grow with the square."""
        seen: dict[tuple[str, str], int] = {}
        selected = []
        for index, row in enumerate(self.measured.rows):
            group = group_key(row), row.text("metric_name")
            seen[group] = seen.get(group, 0) + 1
            if seen[group] <= _PAIRED:
                selected.append(index)
        rows, answers = [self.measured.rows[at] for at in selected], [self.answers[at] for at in selected]
        return scoring.order_kept(rows, answers, group_key)

    @property
    def peak_errors(self) -> list[float]:
        """Of rows that state peak_gb."""
        return [
            abs(answer.peak_gb / row.number("peak_gb", 0.0) - 1.0)
            for row, answer in zip(self.measured.rows, self.answers, strict=True)
            if answer.peak_gb is not None and row.number("peak_gb", 0.0) > 0
        ]


def score(session: Session, path: str, typed: bytes | None, ask: Ask, report: Report) -> Score:
    """`typed` is standard input where the path is a dash."""
    if ask.leave_out is not None and ask.leave_out not in LEAVE_OUT:
        raise BadInput(f"{ask.leave_out[:40]!r} cannot be left out.", remedy=f"Choose one of {', '.join(LEAVE_OUT)}.")
    parts = session.parts
    measured = read(session, path, typed)
    notes = [*measured.notes]
    model = packaged_model()
    if ask.leave_out is None:
        if ask.own:
            model = session.known.model
        answers = scoring.predict(measured.rows, parts, model)
        notes += _in_sample(measured, answers)
    else:
        count = ask.folds or FOLDS[ask.leave_out]
        answers = unseen(measured.rows, packaged(), parts, model, ask.leave_out, count, report)
    return Score(measured, tuple(map(_finite, answers)), model is not packaged_model(), (*notes, *_replaced(measured)))


def _in_sample(measured: MeasurementFile, answers: list[Scored]) -> list[str]:
    notes = []
    if any(row.text("row_id") for row in measured.rows):
        fitted = {identity(row) for row in packaged()}
        seen = sum(identity(row) in fitted for row in measured.rows)
        if seen:
            notes.append(
                f"{seen:,} of {len(measured.rows):,} rows are among those the packaged factors were fitted on: these figures"
                " are in-sample. Use --leave-out group for what the model says of rows it has not seen."
            )
    run = sum(one.provenance == MEASURED for one in answers)
    if run:
        notes.append(f"{run:,} rows are of configurations in your own calibration; --no-own leaves it out.")
    return notes


def _replaced(measured: MeasurementFile) -> list[str]:
    there = [name for name in ADDED if name in measured.table.columns]
    return [f"The file has columns called {', '.join(there)}; --out replaces what they hold."] if there else []


def _finite(answer: Scored) -> Scored:
    """An answer that is no number is none."""
    if answer.predicted is None or all(math.isfinite(value or 0.0) for value in (answer.predicted, answer.low, answer.high)):
        return answer if answer.peak_gb is None or math.isfinite(answer.peak_gb) else replace(answer, peak_gb=None)
    return Scored(reason="settings: the formula has no finite answer for them")


def view(score: Score) -> dict[str, Any]:
    """What --json prints; errors and shares are fractions, null where nothing could be scored."""
    overall = score.overall
    figures = asdict(overall) if overall else dict.fromkeys(Figures.__slots__)
    scored = figures.pop("rows") or 0
    right, pairs = score.pairs
    peaks = score.peak_errors
    return {
        "file": score.measured.name,
        "rows": len(score.measured.rows),
        "answered": sum(one.predicted is not None for one in score.answers),
        "scored": scored,
        "own": score.own,
        **figures,
        "by": {name: {value: asdict(one) for value, one in found.items()} for name, found in score.groups.items()},
        "refused": [{"reason": reason, "rows": count} for reason, count in score.refused],
        "guessed": [{"reason": reason, "rows": count} for reason, count in score.guessed],
        "pairs": {"right": right, "pairs": pairs},
        "peak_memory": {
            "rows": len(peaks),
            "median_ape": float(np.median(peaks)) if peaks else None,
            "worst_ape": max(peaks) if peaks else None,
        },
        "notes": list(score.notes),
    }


def predictions(score: Score) -> str:
    """The file's rows in its order as CSV, every cell as it was, with what was predicted."""
    header, *rows = _raw(score.measured)
    names = [name.strip().lstrip("\ufeff") for name in header]
    place = {name: names.index(name) if name in names else None for name in ADDED}
    new = [name for name in ADDED if place[name] is None]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*header, *new])
    for cells, answer in zip(rows, score.answers, strict=True):
        added = _cells(answer)
        merged = list(cells)
        for name, index in place.items():
            if index is not None:
                merged[index] = added[name]
        writer.writerow([*merged, *(added[name] for name in new)])
    return out.getvalue()


def _raw(measured: MeasurementFile) -> list[list[str]]:
    """Header and rows by position: two columns without a name are two columns."""
    if measured.text.lstrip().startswith("{"):
        columns = list(measured.table.columns)
        return [columns, *([row.cells.get(name, "") for name in columns] for row in measured.table.rows)]
    table = list(csv.reader(io.StringIO(measured.text, newline=""), strict=True))
    return [table[0], *(cells for cells in table[1:] if any(cell.strip() for cell in cells))]


def _cells(answer: Scored) -> Mapping[str, str]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.6g}"

    return {
        "predicted": number(answer.predicted),
        "low": number(answer.low),
        "high": number(answer.high),
        "predicted_peak_gb": number(answer.peak_gb),
        "provenance": answer.provenance,
        "reason": answer.reason,
    }
