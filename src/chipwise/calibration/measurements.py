"""Reading measurement rows: the two published tables' columns in CSV, or one JSON object per line with the same names.

Columns nobody knows are kept and ignored; a column that is missing counts as blank. What a file must have is enough to say
what was run: model, task, chip and metric_name. `metric_value` may be blank when only predictions are wanted.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chipwise.errors import InvalidFile, Problem
from chipwise.perf.rows import Row
from chipwise.spelling import nearest
from chipwise.text import decimal_size

DATA = Path(__file__).resolve().parents[1] / "data" / "measurements"
NEEDED = ("model", "task", "chip", "metric_name")
NUMBERS = (
    "params_b",
    "layers",
    "hidden",
    "ffn_hidden",
    "heads",
    "kv_heads",
    "vocab",
    "seq_len",
    "moe_experts_total",
    "moe_experts_active",
    "chips",
    "chips_per_node",
    "tp",
    "pp",
    "cp",
    "ep",
    "micro_batch",
    "global_batch_sequences",
    "batch_or_concurrency",
    "input_len",
    "output_len",
    "metric_value",
    "peak_gb",
    "spread",
)
_MAY_BE_ZERO = (
    "input_len",
    "output_len",
    "metric_value",
    "moe_experts_total",
    "moe_experts_active",
    "peak_gb",
    "cp",
    "ep",
    "spread",
)
_MAXIMA = {"spread": 100.0}  # (90th - 10th percentile) / median
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
LARGEST = 64e6  # characters of a file
LARGEST_NUMBER = 1e15
MOST_COLUMNS = 2000
MOST_CELLS = 32_000_000  # as many as a CSV of that size can have


@dataclass(frozen=True, slots=True)
class MeasurementTable:
    """Rows in the order of the file, with its columns."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def parse(text: str, source: str) -> MeasurementTable:
    """Raises InvalidFile with every problem found (the first hundred)."""
    if len(text) > LARGEST:
        raise InvalidFile(source, [Problem("", f"{decimal_size(len(text))} of text", None, f"at most {decimal_size(LARGEST)}")])
    if not text.strip():
        raise InvalidFile(source, [Problem("", "the file is empty", None, f"a header with {', '.join(NEEDED)} and rows")])
    if text.lstrip().startswith("["):
        raise InvalidFile(source, [Problem("", "this is a JSON list", 1, "CSV, or one JSON object per line")])
    cells, columns = _json_lines(text, source) if text.lstrip().startswith("{") else _csv(text, source)
    if len(cells) * len(columns) > MOST_CELLS:  # lines of JSON may each have columns of their own
        message = f"{len(cells):,} rows with {len(columns):,} columns"
        raise InvalidFile(source, [Problem("", message, None, f"at most {MOST_CELLS:,} cells")])
    missing = [name for name in NEEDED if name not in columns]
    separator = next((mark for mark in _SEPARATORS if mark in columns[0]), None) if len(columns) == 1 else None
    if missing and separator:
        message = f"its cells are separated by {_SEPARATORS[separator]}"
        raise InvalidFile(source, [Problem("", message, 1, "commas between cells, or JSON lines")])
    if missing:
        problems = [
            Problem(
                field=name, message="no such column", line=None, allowed="the name of a column", nearest=nearest(name, columns)
            )
            for name in missing
        ]
        raise InvalidFile(source, problems)
    if not cells:
        raise InvalidFile(source, [Problem("", "there are no rows below the header", 1, "a row for each measurement")])
    problems = [problem for line, row in cells for problem in _check(line, row)]
    if problems:
        raise InvalidFile(source, problems[:100])
    return MeasurementTable(tuple(columns), tuple(Row(row) for _, row in cells))


def _csv(text: str, source: str) -> tuple[list[tuple[int, Mapping[str, str]]], list[str]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    rows: list[tuple[int, Mapping[str, str]]] = []
    try:
        columns = [name.strip().lstrip("\ufeff") for name in next(reader)]
        _bounded(len(columns), source)
        twice = {name for name, count in Counter(columns).items() if name and count > 1}
        if twice:
            raise InvalidFile(source, [Problem(name, "the column is there twice", 1) for name in sorted(twice)])
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                message = f"{len(cells)} cells where the header has {len(columns)}"
                raise InvalidFile(source, [Problem("", message, reader.line_num, "one cell per column")])
            rows.append((reader.line_num, dict(zip(columns, cells, strict=True))))
    except csv.Error as error:
        raise InvalidFile(source, [Problem("", f"not readable as CSV: {error}", reader.line_num)]) from error
    return rows, columns


def _bounded(columns: int, source: str) -> None:
    if columns > MOST_COLUMNS:
        raise InvalidFile(source, [Problem("", f"{columns:,} columns", None, f"at most {MOST_COLUMNS:,}")])


def _json_lines(text: str, source: str) -> tuple[list[tuple[int, Mapping[str, str]]], list[str]]:
    rows: list[tuple[int, Mapping[str, str]]] = []
    columns: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidFile(source, [Problem("", f"not a JSON object: {error}", number)]) from error
        if not isinstance(value, dict):
            raise InvalidFile(
                source, [Problem("", "not a JSON object", number, 'lines such as {"model": "llama-3.1-8b", ...}')]
            )
        columns |= dict.fromkeys(value)
        _bounded(len(columns), source)
        rows.append((number, {name: _cell(item) for name, item in value.items()}))
    return rows, list(columns)


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be written anywhere


def _check(line: int, row: Mapping[str, str]) -> list[Problem]:
    problems = []
    for name in NUMBERS:
        text = (row.get(name) or "").strip()
        if not text:
            continue
        try:
            value = float(text)
        except ValueError:
            problems.append(Problem(name, f"{text[:40]!r} is not a number", line, "a number or nothing"))
            continue
        low = 0.0 if name in _MAY_BE_ZERO else 1e-6 if name == "params_b" else 1.0
        high = _MAXIMA.get(name, LARGEST_NUMBER)
        if not math.isfinite(value) or not low <= value <= high:
            problems.append(Problem(name, f"{text[:40]!r} is not possible", line, f"from {low:g} to {high:g}, or nothing"))
    rate = (row.get("rate_rps") or "").strip()
    if rate and not _is_rate(rate):
        problems.append(
            Problem("rate_rps", f"{rate[:40]!r} is not a rate", line, "a number above 0, inf (all at once) or nothing")
        )
    problems += [Problem(name, "is blank", line, "a value") for name in NEEDED if not (row.get(name) or "").strip()]
    return problems


def _is_rate(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


def read(path: Path) -> MeasurementTable:
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise InvalidFile(str(path), [Problem("", "not a text file in UTF-8", None)]) from error


@cache
def packaged() -> tuple[Row, ...]:
    """Every published row and every one of our own that the project carries."""
    tables = (
        read(DATA / name)
        for name in (
            "training.csv",
            "training_2.csv",
            "inference.csv",
            "inference_2.csv",
            "network_rows.csv",
            "own.csv",
            "variants.jsonl",
            "trainers.jsonl",
        )
    )
    return tuple(row for table in tables for row in table.rows)
