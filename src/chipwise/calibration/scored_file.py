"""Predictions scored against a file of measurements."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from chipwise.calibration import score as scoring
from chipwise.calibration.crossvalidate import LEAVE_OUT, group_key
from chipwise.calibration.guesses import guesses
from chipwise.calibration.measured import MeasurementFile
from chipwise.calibration.measurements import packaged
from chipwise.calibration.score import Figures, Scored
from chipwise.calibration.unseen import FOLDS, identity, unseen
from chipwise.errors import BadInput
from chipwise.perf.model import MEASURED, Model
from chipwise.perf.model import packaged as packaged_model
from chipwise.perf.part import Parts

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


def check_ask(ask: Ask) -> None:
    """Whether it can be asked at all, before a file is read."""
    if ask.leave_out is not None and ask.leave_out not in LEAVE_OUT:
        raise BadInput(f"{ask.leave_out[:40]!r} cannot be left out.", remedy=f"Choose one of {', '.join(LEAVE_OUT)}.")


def score_file(measured: MeasurementFile, ask: Ask, parts: Parts, own_model: Callable[[], Model], report: Report) -> Score:
    """`own_model`: the performance model with the user's own measurements, where they count."""
    notes = [*measured.notes]
    model = packaged_model()
    if ask.leave_out is None:
        if ask.own:
            model = own_model()
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
