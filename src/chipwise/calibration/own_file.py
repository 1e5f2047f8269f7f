"""Factors fitted to a file of a user's own runs, and whether held-out runs say that they help."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from chipwise.calibration import own
from chipwise.calibration.crossvalidate import samples
from chipwise.calibration.guesses import guesses
from chipwise.calibration.measured import MeasurementFile
from chipwise.calibration.own import OwnFactors, Trial
from chipwise.calibration.score import predict, refused
from chipwise.errors import NoResult
from chipwise.perf.model import packaged
from chipwise.perf.part import Parts


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a file of runs said. `trial` is None where held-out runs cannot tell; `path` where nothing was stored."""

    measured: MeasurementFile
    factors: OwnFactors
    trial: Trial | None
    used: int
    far: int  # runs more than three times off
    refused: tuple[tuple[str, int], ...]
    path: Path | None
    why_not: str  # why it was not stored


def fit_file(measured: MeasurementFile, parts: Parts, *, dry_run: bool = False, force: bool = False) -> Calibration:
    """Fits the runs of a file; nothing is stored yet. `why_not`: not where held-out runs come out worse, unless `force`."""
    answers = predict(measured.rows, parts, packaged())
    assumptions = [guesses(row) if one.predicted is not None else () for row, one in zip(measured.rows, answers, strict=True)]
    counts = Counter(refused(answers)) + Counter(reasons[0] for reasons in assumptions if reasons)
    reasons = tuple(sorted(counts.items(), key=lambda pair: -pair[1]))
    known = [row for row, guessed in zip(measured.rows, assumptions, strict=True) if not guessed]
    runs = own.runs_of(samples(known, parts), packaged())
    if not len(runs):
        blank = sum(row.number("metric_value", 0.0) <= 0 for row in measured.rows)
        cause = f"{blank} have no metric_value" if blank else f"{reasons[0][0]}" if reasons else "there is none"
        raise NoResult(
            f"None of the {len(measured.rows)} rows of {measured.name} can be compared: {cause}.",
            remedy="A run needs model, task, chip, metric_name and metric_value.",
        )
    trial = own.try_out(runs)
    factors = own.fit(runs, cautious=trial is None, spread=trial.spread if trial else None)
    why_not = "a dry run" if dry_run else "held-out runs come out worse" if trial and trial.worse and not force else ""
    far = int((abs(runs.residual) > math.log(3.0)).sum())
    return Calibration(
        measured=measured, factors=factors, trial=trial, used=len(runs), far=far, refused=reasons, path=None, why_not=why_not
    )
