"""Rows as text and as HTML, for a terminal and a notebook, and as a data frame of pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from textwrap import wrap
from typing import Any

from chipwise.errors import MissingExtra
from chipwise.text import number

LINES = 20  # that a result prints at most
_WIDEST = 48  # letters of a cell
_LINE_WIDTH = 100  # letters of a sentence
_SHOWN_ROWS = 50  # of a table in a notebook


def cell(value: object) -> str:
    """Short and on one line."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return number(value, 4) if value == value else "-"
        case Mapping():
            text = ", ".join(f"{key} {cell(inner)}" for key, inner in value.items())
        case Sequence() if not isinstance(value, str):
            text = ", ".join(map(cell, value))
        case _:
            text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def folded(*sentences: str) -> list[str]:
    """Whole, on lines that a terminal shows."""
    return [line for sentence in sentences for line in wrap(sentence, _LINE_WIDTH, break_long_words=False)]


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]], left_out: int = 0) -> list[str]:
    """Lines: the heading, the rows, and how many are left out."""
    cells = [[cell(value) for value in row] for row in rows]
    numeric = [all(isinstance(row[place], int | float | None) for row in rows) and bool(rows) for place in range(len(columns))]
    wide = [max([len(name), *(len(row[place]) for row in cells)]) for place, name in enumerate(columns)]

    def line(values: Sequence[str]) -> str:
        padded = [
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, wide, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    lines = [line(columns), *map(line, cells)]
    return [*lines, f"... {left_out:,} more"] if left_out else lines


def text_pairs(pairs: Sequence[tuple[str, object]], room: int = LINES) -> list[str]:
    wide = max((len(name) for name, _ in pairs), default=0)
    pairs_shown = pairs if len(pairs) <= room else pairs[: room - 1]
    lines = [f"  {name.ljust(wide)}  {cell(value)}" for name, value in pairs_shown]
    return lines if len(pairs_shown) == len(pairs) else [*lines, f"  ... {len(pairs) - len(pairs_shown)} more"]


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "", notes: Sequence[str] = ()) -> str:
    """Every text is escaped: names come from files and from clouds."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell(value))}</td>' for value in row)}</tr>" for row in rows[:_SHOWN_ROWS])
    left_out = len(rows) - _SHOWN_ROWS
    below = [*([f"{left_out:,} more rows"] if left_out > 0 else []), *notes]
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    notes_html = "".join(f"<p>{escape(note)}</p>" for note in below)
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes_html}"


def html_pairs(pairs: Sequence[tuple[str, object]], title: str = "") -> str:
    return html_table(("", ""), pairs, title)


def data_frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A `pandas.DataFrame`, where pandas is installed."""
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise MissingExtra("A data frame", "pandas") from error
    return pandas.DataFrame(list(rows))
