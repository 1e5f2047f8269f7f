"""Files of measurements at the door: read within bounds, their chips resolved by the catalog's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chipwise.calibration.families import find_part
from chipwise.calibration.measurements import LARGEST as LARGEST
from chipwise.calibration.measurements import MeasurementTable, parse
from chipwise.catalog.names import Names
from chipwise.errors import InvalidFile, Problem
from chipwise.files.handed import read_bytes
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row
from chipwise.spelling import fold
from chipwise.text import decimal_size

_MOST_BYTES = 4 * int(LARGEST)  # UTF-8 takes at most four for a character


@dataclass(frozen=True, slots=True)
class MeasurementFile:
    """A file as it is written and as it is read. `rows` name a chip the model knows wherever the catalog could tell."""

    name: str
    text: str
    table: MeasurementTable
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def read(parts: Parts, names: Names, path: str, typed: bytes | None) -> MeasurementFile:
    """`typed` is standard input, already read; else the file at `path` is."""
    name = path if typed is None else "standard input"
    text = _text(name, _bytes(Path(path)) if typed is None else typed)
    table = parse(text, name)
    rows, notes = _resolved(table.rows, parts, names)
    return MeasurementFile(name=name, text=text, table=table, rows=rows, notes=notes)


def _bytes(path: Path) -> bytes:
    return read_bytes(path, _MOST_BYTES)


def _text(name: str, data: bytes) -> str:
    if len(data) > _MOST_BYTES:
        raise InvalidFile(
            name, [Problem("", f"more than {decimal_size(_MOST_BYTES)}", None, f"at most {decimal_size(LARGEST)}")]
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidFile(name, [Problem("", "not a text file in UTF-8", None, "CSV or JSON lines")]) from error


def _resolved(rows: Sequence[Row], parts: Parts, names: Names) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Rows whose chip only the catalog's names can tell get its `chip_key`; what was taken for what is said."""
    chip_names: dict[str, str | None] = {}
    resolved = []
    for row in rows:
        if find_part(row, parts) is None:
            name = row.text("chip")
            if name not in chip_names:
                chip_names[name] = names.chip_within(name)
            chip = chip_names[name]
            resolved.append(Row({**row.cells, "chip_key": chip}) if chip is not None and parts.find(chip) else row)
        else:
            resolved.append(row)
    notes = [
        f"{name} is taken as {chip}." for name, chip in chip_names.items() if chip is not None and fold(name) != fold(chip)
    ]
    return tuple(resolved), tuple(notes)
