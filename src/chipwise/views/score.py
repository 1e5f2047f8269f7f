"""Predictions beside a file of measurements: what `chipwise score --json` prints, and the file with what was predicted."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from chipwise.calibration.measured import MeasurementFile
from chipwise.calibration.score import Figures as Figures
from chipwise.calibration.score import Scored
from chipwise.calibration.scored_file import ADDED, Score


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
