"""How results look: tables that fit the terminal, JSON and CSV for programs, errors as sentences.

rich is imported only when something is drawn for a person, so that `--json` does not pay for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Cell = str
_NARROW, _LEAST = 80, 6


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False
    flexible: bool = False  # gives way when the table is too wide
    fold: bool = False  # is broken over lines rather than cut


def console(stderr: bool = False) -> Console:
    """Colour and width of the terminal where there is one; 80 columns and no colour in a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else int(os.environ.get("COLUMNS") or _NARROW)
    return Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


def show_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], title: str | None = None) -> None:
    """A table no wider than the terminal: flexible columns give way, the widest first; numbers never do."""
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len, set_cell_size
    from rich.table import Table
    from rich.text import Text

    out = console()
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max([cell_len(column.title), *(cell_len(row[i]) for row in cells)]) for i, column in enumerate(columns)]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= out.width else 1
    spare = out.width - gap * (len(widths) - 1) - sum(widths)
    while spare < 0:
        candidates = [i for i, column in enumerate(columns) if column.flexible and widths[i] > _LEAST]
        if not candidates:
            break
        widths[max(candidates, key=lambda i: widths[i])] -= 1
        spare += 1
    table = Table(
        box=SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        padding=(0, gap - 1, 0, 0),
        show_edge=False,
    )
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.title, justify="right" if column.right else "left", width=width, no_wrap=not column.fold, overflow="fold"
        )
    for row in cells:
        table.add_row(
            *(
                Text(cell if column.fold or cell_len(cell) <= width else set_cell_size(cell, width - 1) + "…")
                for cell, column, width in zip(row, columns, widths, strict=True)
            )
        )
    _emit(out, table)


def _emit(out: Console, drawn: RenderableType) -> None:
    """Prints; in a pipe or a file without the blanks that pad lines to the width."""
    if out.is_terminal:
        out.print(drawn)
        return
    with out.capture() as captured:
        out.print(drawn)
    out.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def show_lines(*lines: str) -> None:
    """Sentences for a person on standard output, folded to the terminal's width."""
    from rich.text import Text

    out = console()
    for line in lines:
        _emit(out, Text(printable(line)))


def show_pairs(pairs: Iterable[tuple[str, str]], indent: int = 2) -> None:
    """A word and what it says, the second part folded under itself."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for word, rest in pairs:
        grid.add_row(Text(printable(word), style="dim"), Text(printable(rest)))
    if grid.row_count:
        _emit(console(), Padding(grid, (0, 0, 0, indent)))


def show_title(line: str) -> None:
    from rich.text import Text

    _emit(console(), Text(printable(line), style="bold"))


def say(*lines: str) -> None:
    """Asides on standard error: what was taken for what, how many more there are."""
    for line in lines:
        print(printable(line), file=sys.stderr)


def show_json(value: Any) -> None:
    import json

    json.dump(value, sys.stdout, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None, allow_nan=False)
    sys.stdout.write("\n")


def show_csv(rows: Sequence[dict[str, Any]]) -> None:
    import csv

    if not rows:
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(["|".join(map(str, v)) if isinstance(v, list) else _flat(v) for v in row.values()])


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return "|".join(f"{k}={v['has'] if isinstance(v, dict) and 'has' in v else v}" for k, v in value.items())
    return "" if value is None else value


def printable(text: str) -> str:
    """Without control characters: a name typed by somebody else must not steer the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def number(value: float | None, digits: int = 4) -> str:
    """1979, 66.9, 0.071; a dash where nobody states it."""
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def money(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if value >= 1 else f"{value:.4f}"


def gib(value: float | None) -> str:
    return "-" if value is None else number(value / 2**30, 4)


def age(days: int) -> str:
    if days < 60:
        return f"{days}d"
    return f"{days / 30.4:.0f}mo" if days < 730 else f"{days / 365.25:.1f}y"


def chips(name: object, count: float | None) -> str:
    """8x H100-SXM; the processor's name alone on a CPU machine."""
    return str(name or "?") if count is None else f"{number(count, 3)}x {name or '?'}"
