"""Fits factors to a user's own runs, keeps them in the data directory, and hands out the model that uses them."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

from chipwise import __version__
from chipwise.api.measured import Measured, read
from chipwise.api.wiring import Session
from chipwise.calibrate import own
from chipwise.calibrate.calibrated import calibrated
from chipwise.calibrate.crossvalidate import samples
from chipwise.calibrate.fingerprint import fingerprint
from chipwise.calibrate.guesses import guesses
from chipwise.calibrate.own import Cell, OwnFactors, Trial
from chipwise.calibrate.score import predict, refused
from chipwise.errors import InvalidFile, NoResult, Problem
from chipwise.perf.model import Model, packaged

FORMAT = 1
_REMEDY = "Remove it with: chipwise calibrate --forget, and calibrate again."
_LARGEST = 16_000_000  # bytes; a calibration of thousands of runs has some hundred kB


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a file of runs said. `trial` is None where held-out runs cannot tell; `path` where nothing was stored."""

    measured: Measured
    factors: OwnFactors
    trial: Trial | None
    used: int
    far: int  # runs more than three times off
    refused: tuple[tuple[str, int], ...]
    path: Path | None
    why_not: str  # why it was not stored


@dataclass(frozen=True, slots=True)
class Stored:
    """A calibration as it lies in the data directory."""

    date: str
    file: str
    rows: int
    chipwise: str
    factors_digest: str
    factors: OwnFactors
    trial: Trial | None


def store_path(session: Session) -> Path:
    return session.config.calibration


def calibrate(session: Session, path: str, typed: bytes | None, *, dry_run: bool = False, force: bool = False) -> Calibration:
    """Fits the runs of a file and stores the result in place of an earlier one, unless held-out runs come out worse."""
    parts = session.parts
    measured = read(session, path, typed)
    answers = predict(measured.rows, parts, packaged())
    told = [guesses(row) if one.predicted is not None else () for row, one in zip(measured.rows, answers, strict=True)]
    counts = Counter(refused(answers)) + Counter(reasons[0] for reasons in told if reasons)
    reasons = tuple(sorted(counts.items(), key=lambda pair: -pair[1]))
    known = [row for row, guessed in zip(measured.rows, told, strict=True) if not guessed]
    runs = own.runs_of(samples(known, parts), packaged())
    if not len(runs):
        blank = sum(row.number("metric_value", 0.0) <= 0 for row in measured.rows)
        why = f"{blank} have no metric_value" if blank else f"{reasons[0][0]}" if reasons else "there is none"
        raise NoResult(
            f"None of the {len(measured.rows)} rows of {measured.name} can be compared: {why}.",
            remedy="A run needs model, task, chip, metric_name and metric_value.",
        )
    trial = own.try_out(runs)
    factors = own.fit(runs, cautious=trial is None, spread=trial.spread if trial else None)
    why_not = "a dry run" if dry_run else "held-out runs come out worse" if trial and trial.worse and not force else ""
    far = int((abs(runs.residual) > math.log(3.0)).sum())
    stored = None
    if not why_not:
        from chipwise.adapters.stores import whole

        stored = store_path(session)
        stored.parent.mkdir(parents=True, exist_ok=True)
        whole.write(stored, _packed(session.today, measured.name, len(runs), factors, trial))
    return Calibration(measured, factors, trial, len(runs), far, reasons, stored, why_not)


def forget(session: Session) -> Path:
    from chipwise.adapters.stores import whole

    path = store_path(session)
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


def stored(session: Session) -> Stored | None:
    """The calibration in the data directory; None where there is none, InvalidFile where it cannot be read."""
    path = store_path(session)
    if path.exists() and not path.is_file():
        raise _damaged(path, "it is not a file")
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1).decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise _damaged(path, "it is not text") from error
    if len(text) > _LARGEST:
        raise _damaged(path, "it is too long")
    try:
        return _unpacked(json.loads(text))
    except (ArithmeticError, AttributeError, ValueError, TypeError, LookupError, RecursionError) as error:
        why = f"{type(error).__name__}: {str(error)[:120]}"
        raise _damaged(path, why) from error


def _damaged(path: Path, why: str) -> InvalidFile:
    return InvalidFile(str(path), [Problem("", f"this stored calibration cannot be read ({why})")], remedy=_REMEDY)


def _unpacked(found: Any) -> Stored:
    if found["format"] != FORMAT:
        raise ValueError(f"its format is {found['format']!r}, and this version reads {FORMAT}")
    cells = tuple(_cell(one) for one in found["cells"])
    spread = {_text(name): _number(value) for name, value in found["spread"].items()}
    held = found["held_out"]
    trial = None
    if held is not None:
        numbers = {name: _number(held[name]) for name in ("median_before", "median_after", "mean_before", "mean_after")}
        trial = Trial(groups=int(_number(held["groups"])), **numbers, spread=spread)
    versions = found["versions"]
    return Stored(
        date.fromisoformat(found["date"]).isoformat(),
        _text(found["file"]),
        int(_number(found["rows"])),
        _text(versions["chipwise"]),
        _text(versions["factors"]),
        OwnFactors(cells, found["cautious"] is True, spread),
        trial,
    )


def _cell(found: Any) -> Cell:
    if set(found) != {field.name for field in fields(Cell)}:
        raise ValueError(f"a cell has the fields {', '.join(sorted(map(str, found)))[:80]}")
    family, chip, software, model = (_text(found[name]) for name in ("family", "chip", "software", "model"))
    rows, weight, residual = (_number(found[name]) for name in ("rows", "weight", "residual"))
    if weight < 0 or rows < 1 or abs(residual) > 2 * own.FARTHEST:
        raise ValueError(f"a cell of {chip[:40]} has numbers that cannot be")
    return Cell(family, chip, software, model, int(rows), weight, residual)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is not text")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 1e9:
        raise TypeError(f"{str(value)[:40]!r} is not a number that can be")
    return float(value)


def own_model(session: Session) -> Model:
    """The packaged model with the user's runs and profiles on top; the packaged one itself where there are none."""
    from chipwise.api.profiling import offsets

    found = stored(session)
    if found is not None and found.factors_digest != fingerprint():
        session.problems.append(
            f"Your calibration of {found.date} was made with other factors than chipwise {__version__} has."
            f" Run: chipwise calibrate {found.file}"
        )
    return calibrated(packaged(), found.factors if found else None, offsets(session))
