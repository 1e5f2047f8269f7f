"""A CSV file that somebody else wrote, row by row with line numbers. What cannot be read as text is said, not raised raw."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from chipwise.errors import BadInput, InvalidFile, Problem
from chipwise.files.handed import opened
from chipwise.spelling import fold

_LARGEST = 256 * 2**20
_COLUMNS = 200


def user_path(text: str) -> Path:
    """A path as a user types it, `~` included."""
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:  # ~nobody
        raise BadInput(f"There is no home directory for {text[:80]!r}.", remedy="Check the path.") from error
    if "\0" in text:
        raise BadInput(f"{text[:80]!r} is not a path.", remedy="Check the path.")
    return path


def read_table(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells by folded column name ("Memory GiB" and "memory_gib" are one). Blank lines are passed over."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{path} is not a file.", remedy="Give a CSV file.")
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"{path} is larger than {_LARGEST >> 20} MiB.", remedy="Split it, or import fewer clouds.")
        with opened(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = ";" if ";" in first and "," not in first else ","
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            header = [fold(name) for name in next(rows, [])]
            if not any(header):
                raise InvalidFile(str(path), [Problem("", "the file is empty", 1)], remedy="Its first line names the columns.")
            if len(header) > _COLUMNS:
                raise InvalidFile(
                    str(path), [Problem("", f"{len(header):,} columns; at most {_COLUMNS}", 1)], remedy="Is it CSV?"
                )
            twice = sorted({name for name in header if name and header.count(name) > 1})
            if twice:
                raise InvalidFile(str(path), [Problem(name, "this column is there twice", 1) for name in twice])
            for cells in rows:
                if any(cell.strip() for cell in cells):
                    padded = cells + [""] * (len(header) - len(cells))
                    yield rows.line_num, {name: cell.strip() for name, cell in zip(header, padded, strict=False)}
    except FileNotFoundError as error:
        raise BadInput(f"There is no file {path}.", remedy="Check the path.") from error
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read: {error.strerror or error}.", remedy="Check the path and its permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidFile(
            str(path), [Problem("", f"not UTF-8 text at byte {error.start}")], remedy="Save it as CSV in UTF-8."
        ) from error
    except csv.Error as error:
        raise InvalidFile(str(path), [Problem("", f"not CSV: {error}")], remedy="Save it as CSV in UTF-8.") from error


def need_columns(path: Path, row: Mapping[str, str], columns: tuple[str, ...]) -> None:
    """`row` is any row of the table: it has a key for every column."""
    missing = [name for name in columns if fold(name) not in row]
    if missing:
        problems = [Problem(name, "this column is missing", 1) for name in missing]
        raise InvalidFile(str(path), problems, remedy=f"The first line must name {', '.join(columns)}.")
