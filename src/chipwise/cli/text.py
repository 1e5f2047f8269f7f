"""How results look: tables that fit the terminal, JSON and CSV for programs, errors as sentences.

Laid out here rather than by a library: the same text goes to a terminal (with colour) and into a pipe (without), and
thousands of rows cost milliseconds.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TextIO

from chipwise.text import age as age
from chipwise.text import json_value, price_cell
from chipwise.text import number as plain_number
from chipwise.text import plural as plural

_PARTS = re.compile(r"[^\s\-_./:,|]*[\s\-_./:,|]*")  # of a long name
_MINIMUM_WIDTH = 6  # no column is cut below this
_NARROWEST, _WIDEST = 40, 500


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False
    flexible: bool = False  # gives way when the table is too wide
    fold: bool = False  # is broken over lines rather than cut: names that people copy


def width() -> int:
    """Columns to fill: the terminal's, or COLUMNS, or 80 in a pipe; within what can be read."""
    return _columns(sys.stdout)


def _columns(stream: TextIO) -> int:
    variable = os.environ.get("COLUMNS", "")
    columns = int(variable) if variable.isdecimal() and len(variable) < 6 else 0
    if not columns and stream.isatty():
        with suppress(OSError, ValueError):  # a terminal that does not say
            columns = os.get_terminal_size(stream.fileno()).columns
    return min(max(columns, _NARROWEST), _WIDEST) if columns else 80


_COLOURS = {"refused": 31, "cannot": 33, "unstated": 33, "can": 32, "fine": 32, "x": 31, "!": 33}


def _style(text: str, code: int) -> str:
    """In colour on a terminal that wants it; the same text otherwise."""
    plain = not text.strip() or not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def _bold(text: str) -> str:
    return _style(text, 1)


def _word(text: str) -> str:
    """A label: what it tells has a colour of its own, else it steps back."""
    return _style(text, _COLOURS.get(text.strip(), 36))


def show_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], details: Sequence[str] = ()) -> None:
    """A table no wider than the terminal: flexible columns give way, the widest first, then other words; numbers never do.
    `details` has a line for each row that stands below it."""
    show_laid(table_lines(columns, rows, details))


def show_laid(lines: Iterable[str]) -> None:
    """Lines that are laid out already."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def table_lines(columns: Sequence[Column], rows: Iterable[Sequence[str]], details: Sequence[str] = ()) -> list[str]:
    """What `show_table` shows."""
    cells = [[printable(cell, kept="") for cell in row] for row in rows]
    widths = [max([_cells(column.title), *(_cells(row[i]) for row in cells)]) for i, column in enumerate(columns)]
    room = width()
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= room else 1
    spare = room - gap * (len(widths) - 1) - sum(widths)
    while spare < 0:
        candidates = [i for i, column in enumerate(columns) if column.flexible and widths[i] > _MINIMUM_WIDTH]
        candidates = candidates or [i for i, column in enumerate(columns) if not column.right and widths[i] > _MINIMUM_WIDTH]
        if not candidates:
            break
        widths[max(candidates, key=lambda i: widths[i])] -= 1
        spare += 1
    out = [
        _bold(_line([_cut(column.title, size) for column, size in zip(columns, widths, strict=True)], columns, widths, gap)),
        _rule(sum(widths) + gap * (len(widths) - 1)),
    ]
    for number, row in enumerate(cells):
        parts = [
            _fold(cell, size) if column.fold else [_cut(cell, size)]
            for cell, column, size in zip(row, columns, widths, strict=True)
        ]
        lines = ([part[n] if n < len(part) else "" for part in parts] for n in range(max(map(len, parts))))
        out.extend(_line(line, columns, widths, gap) for line in lines)
        if number < len(details):
            out.append(f"   {_cut(printable(details[number]), room - 3)}")
    return out


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], gap: int) -> str:
    padded = []
    for cell, column, size in zip(cells, columns, widths, strict=True):
        blank = " " * max(0, size - _cells(cell))
        styled = _word(cell) if cell in ("x", "!") else cell
        padded.append(blank + styled if column.right else styled + blank)
    return (" " * gap).join(padded).rstrip()


def _rule(size: int) -> str:
    return ("─" if speaks_unicode() else "-") * size


def speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def _cells(text: str) -> int:
    """Columns a text takes: two for each wide character."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, size: int) -> str:
    if _cells(text) <= size:
        return text
    mark = "…" if speaks_unicode() else "~"
    while text and _cells(text) > size - 1:
        text = text[:-1]
    return text + mark


def _fold(text: str, size: int) -> list[str]:
    """A name over several lines: between words, and a word that is longer than a line behind a separator, else anywhere."""
    lines, line = [], ""
    words = re.findall(r"\S+\s*", text)
    parts = (part for word in words for part in (re.findall(_PARTS, word) if _cells(word.rstrip()) > size else [word]))
    for word in parts:
        if _cells((line + word).rstrip()) > size and line:
            lines.append(line.rstrip())
            line = ""
        line += word
        while _cells(line.rstrip()) > size:
            lines.append(line[:size])
            line = line[size:]
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _wrapped(text: str, size: int) -> list[str]:
    from textwrap import wrap

    return wrap(text, max(size, 20), break_long_words=True, break_on_hyphens=False) or [""]


def show_lines(*lines: str) -> None:
    """Sentences for a person on standard output, folded to the terminal's width."""
    show_laid(sentence_lines(*lines))


def sentence_lines(*lines: str) -> list[str]:
    """What `show_lines` shows."""
    return [part for line in lines for part in _wrapped(printable(line), width())]


def show_pairs(pairs: Iterable[tuple[str, str]], indent: int = 2) -> None:
    """A word and what it says, the second part folded under itself."""
    show_laid(pair_lines(pairs, indent))


def pair_lines(pairs: Iterable[tuple[str, str]], indent: int = 2) -> list[str]:
    """What `show_pairs` shows."""
    printed = [(printable(word), printable(rest)) for word, rest in pairs]
    if not printed:
        return []
    left = min(max(_cells(word) for word, _ in printed), width() // 2, width() - _NARROWEST // 2 - indent - 2)
    lines: list[str] = []
    for word, rest in printed:
        margin = " " * (indent + left + 2)
        first, *continuation = _wrapped(rest, width() - len(margin))
        head = " " * indent + _word(_cut(word, left)) + " " * (left - _cells(_cut(word, left)) + 2)
        lines += [(head + first).rstrip(), *(f"{margin}{line}" for line in continuation)]
    return lines


def show_title(line: str) -> None:
    show_laid(title_lines(line))


def title_lines(line: str) -> list[str]:
    """What `show_title` shows."""
    return [_bold(part) for part in _wrapped(printable(line), width())]


def say(*lines: str) -> None:
    """Asides on standard error: what was taken for what, how many more there are."""
    with suppress(OSError, ValueError):  # nobody listens: not a reason to fail
        for line in lines:
            print(_folded(printable(line)), file=sys.stderr, flush=True)


def _folded(text: str) -> str:
    """To the width of the terminal that shows asides. A program that reads them gets each on a line of its own; what is longer
    than a line is left whole, since people copy it."""
    if not sys.stderr.isatty():
        return text
    from textwrap import wrap

    size = _columns(sys.stderr)
    folded = (
        wrap(line, size, break_long_words=False, break_on_hyphens=False) if _cells(line) > size else [line]
        for line in text.split("\n")
    )
    return "\n".join(part for parts in folded for part in parts)


def show_json(value: Any) -> None:
    """One document, written whole or not at all."""
    import json

    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(json_value(value), ensure_ascii=not speaks_unicode(), indent=indent, allow_nan=False) + "\n")


def show_views(views: Callable[[], list[dict[str, Any]]], as_json: bool, as_csv: bool) -> bool:
    """All matches for a program, if one asked; False when it is a person who reads."""
    if as_json:
        show_json(views())
    elif as_csv:
        show_csv(views())
    return as_json or as_csv


def say_more(count: int, total: int, narrow: str = "add filters") -> None:
    """How many rows a table leaves out, and how to see them."""
    if total > count:
        say(f"{total - count:,} more of {total:,}: {narrow}, or --limit 0.")


def show_csv(rows: Sequence[dict[str, Any]]) -> None:
    import csv

    if not rows:
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(["|".join(map(str, v)) if isinstance(v, list) else _flat(json_value(v)) for v in row.values()])


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return "|".join(f"{k}={v['has'] if isinstance(v, dict) and 'has' in v else v}" for k, v in value.items())
    return "" if value is None else value


def printable(text: str, kept: str = "\n\t") -> str:
    """Without control characters: a name typed by somebody else must not steer the terminal, nor end a row of a table."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in kept else f"\\x{ord(c):02x}" for c in text)


def number(value: float | None, digits: int = 4) -> str:
    """1979, 66.9, 0.071; a dash where nobody states it."""
    return "-" if value is None else plain_number(value, digits)


def money(value: float | None) -> str:
    return "-" if value is None else price_cell(value)


def stars(count: int | None, total: int = 5) -> str:
    """Three of five, in the letters that the terminal has; a dash where there are none to give."""
    if count is None:
        return "-"
    full, empty = ("★", "☆") if speaks_unicode() else ("*", ".")
    return full * count + empty * (total - count)


def gib(value: float | None) -> str:
    return "-" if value is None else number(value / 2**30, 4)


def chips(name: object, count: float | None) -> str:
    """8x H100-SXM; the processor's name alone on a CPU machine."""
    return str(name or "?") if count is None else f"{number(count, 3)}x {name or '?'}"
