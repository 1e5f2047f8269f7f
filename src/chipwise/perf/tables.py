"""The performance model's own tables: CSV files in `data/perf`, a row as a mapping of its cells."""

from __future__ import annotations

import csv
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data" / "perf"


def rows(name: str) -> list[dict[str, str]]:
    """Rows of `data/perf/NAME`; read anew each time, so who asks often keeps what it made of them."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        names = next(reader)
        return [dict(zip(names, cells, strict=True)) for cells in reader]
