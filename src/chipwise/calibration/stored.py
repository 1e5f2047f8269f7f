"""A calibration as it is stored: written and read, and never trusted."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

from chipwise.calibration import own
from chipwise.calibration.fingerprint import fingerprint
from chipwise.calibration.own import Cell, OwnFactors, Trial
from chipwise.errors import InvalidFile, Problem

_LARGEST = 16_000_000  # bytes; a calibration of thousands of runs has some hundred kB
FORMAT = 1


_REMEDY = "Remove it with: chipwise calibrate --forget, and calibrate again."


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


def stored(path: Path) -> Stored | None:
    """The calibration in the data directory; None where there is none, InvalidFile where it cannot be read."""
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
        reason = f"{type(error).__name__}: {str(error)[:120]}"
        raise _damaged(path, reason) from error


def _damaged(path: Path, why: str) -> InvalidFile:
    return InvalidFile(str(path), [Problem("", f"this stored calibration cannot be read ({why})")], remedy=_REMEDY)


def _unpacked(document: Any) -> Stored:
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']!r}, and this version reads {FORMAT}")
    cells = tuple(_cell(one) for one in document["cells"])
    spread = {_text(name): _number(value) for name, value in document["spread"].items()}
    held_out = document["held_out"]
    trial = None
    if held_out is not None:
        numbers = {name: _number(held_out[name]) for name in ("median_before", "median_after", "mean_before", "mean_after")}
        trial = Trial(groups=int(_number(held_out["groups"])), **numbers, spread=spread)
    versions = document["versions"]
    return Stored(
        date=date.fromisoformat(document["date"]).isoformat(),
        file=_text(document["file"]),
        rows=int(_number(document["rows"])),
        chipwise=_text(versions["chipwise"]),
        factors_digest=_text(versions["factors"]),
        factors=OwnFactors(cells, document["cautious"] is True, spread),
        trial=trial,
    )


def _cell(data: Any) -> Cell:
    if set(data) != {field.name for field in fields(Cell)}:
        raise ValueError(f"a cell has the fields {', '.join(sorted(map(str, data)))[:80]}")
    family, chip, software, model = (_text(data[name]) for name in ("family", "chip", "software", "model"))
    rows, weight, residual = (_number(data[name]) for name in ("rows", "weight", "residual"))
    if weight < 0 or rows < 1 or abs(residual) > 2 * own.FARTHEST:
        raise ValueError(f"a cell of {chip[:40]} has impossible numbers")
    return Cell(family=family, chip=chip, software=software, model=model, rows=int(rows), weight=weight, residual=residual)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is not text")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 1e9:
        raise TypeError(f"{str(value)[:40]!r} is not a number that can be")
    return float(value)


def packed(today: date, version: str, name: str, rows: int, factors: OwnFactors, trial: Trial | None) -> str:
    document = {
        "format": FORMAT,
        "date": today.isoformat(),
        "file": Path(name).name,
        "rows": rows,
        "versions": {"chipwise": version, "factors": fingerprint()},
        "cautious": factors.cautious,
        "spread": dict(factors.spread),
        "held_out": {name: value for name, value in asdict(trial).items() if name != "spread"} if trial else None,
        "cells": [asdict(cell) for cell in factors.cells],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
