"""Steps of programs that show a progress bar of tqdm: each of its items, and how many there are in all."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .report import Report


def watch(tqdm: ModuleType, report: Report) -> None:
    bar: Any = tqdm.tqdm
    iterate = bar.__iter__

    def items(self: Any) -> Iterator[Any]:
        total = getattr(self, "total", None)
        report.note(bar_total=None if total is None else float(total))
        for item in iterate(self):
            yield item
            report.step("bar")

    bar.__iter__ = items
