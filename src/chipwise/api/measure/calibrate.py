"""Fits factors to a user's own runs, keeps them in the data directory, and hands out the model that uses them."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from chipwise import __version__
from chipwise.api.measure.measured import MeasurementFile, read
from chipwise.api.session.calibration import FORMAT
from chipwise.api.session.wiring import Session
from chipwise.calibration import own
from chipwise.calibration.crossvalidate import samples
from chipwise.calibration.fingerprint import fingerprint
from chipwise.calibration.guesses import guesses
from chipwise.calibration.own import OwnFactors, Trial
from chipwise.calibration.score import predict, refused
from chipwise.errors import NoResult
from chipwise.perf.model import packaged


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


def calibrate(session: Session, path: str, typed: bytes | None, *, dry_run: bool = False, force: bool = False) -> Calibration:
    """Fits the runs of a file and stores the result in place of an earlier one, unless held-out runs come out worse."""
    parts = session.parts
    measured = read(session, path, typed)
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
    stored = None
    if not why_not:
        from chipwise.adapters.stores import whole

        stored = session.config.calibration
        stored.parent.mkdir(parents=True, exist_ok=True)
        whole.write(stored, _packed(session.today, measured.name, len(runs), factors, trial))
    return Calibration(
        measured=measured, factors=factors, trial=trial, used=len(runs), far=far, refused=reasons, path=stored, why_not=why_not
    )


def forget(session: Session) -> Path:
    from chipwise.adapters.stores import whole

    path = session.config.calibration
    if not whole.remove(path):
        raise NoResult("There is no calibration to forget.", remedy="chipwise calibrate MEASURED.csv makes one.")
    return path


def _packed(today: date, name: str, rows: int, factors: OwnFactors, trial: Trial | None) -> str:
    document = {
        "format": FORMAT,
        "date": today.isoformat(),
        "file": Path(name).name,
        "rows": rows,
        "versions": {"chipwise": __version__, "factors": fingerprint()},
        "cautious": factors.cautious,
        "spread": dict(factors.spread),
        "held_out": {name: value for name, value in asdict(trial).items() if name != "spread"} if trial else None,
        "cells": [asdict(cell) for cell in factors.cells],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
