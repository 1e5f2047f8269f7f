"""How far a long command is, on standard error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.catalog.feed import Report


@contextmanager
def progress(title: str) -> Iterator[Report]:
    """A bar on a terminal's standard error; in a pipe one line for each step that was finished."""
    import sys

    if not sys.stderr.isatty():
        seen: set[str] = set()

        def line(done: int, total: int | None, what: str) -> None:
            if what not in seen:
                seen.add(what)
                print(f"{title}: {what}", file=sys.stderr)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[title]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, title=title, what="")

        def move(done: int, total: int | None, what: str) -> None:
            bar.update(task, completed=done, total=total, what=what[:30])

        yield move


def stages_planned(every_s: float = 10.0) -> Report:
    """Of the stages of a pipeline, for a session: a line now and then of a long plan, nothing of one that is ready soon."""
    last = time.monotonic()

    def report(done: int, total: int | None, what: str) -> None:
        nonlocal last
        if time.monotonic() - last >= every_s:
            last = time.monotonic()
            from chipwise.cli import text

            text.say(f"{done} of {total} stages planned")

    return report
