"""What the hook saw, in files of the folder that the settings name: times of steps as lines, counts as one JSON file.

Files are replaced whole, and written as the program goes: it may be ended at any moment. After a fork the child reports
nothing, since what it inherited is its parent's.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

_EVERY_S = 0.2


class Report:
    """`mode` is "count" or "time"; `counted` steps are counted after `skipped` ones."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.folder = str(settings["folder"])
        self.mode = str(settings.get("mode", "time"))
        self.skipped = int(settings.get("skipped", 2))
        self.counted = int(settings.get("counted", 3))
        self.pid = os.getpid()
        self.counts: dict[str, Any] = {}
        self._lines: dict[str, list[str]] = {}
        self._flushed = self._written = 0.0

    @property
    def is_here(self) -> bool:
        return os.getpid() == self.pid

    def step(self, kind: str) -> None:
        """One more step of this kind ended now."""
        if not self.is_here:
            return
        now = time.monotonic()
        self._lines.setdefault(kind, []).append(f"{now:.6f}\n")
        if now - self._flushed > _EVERY_S:
            self.flush(now)

    def flush(self, now: float | None = None) -> None:
        self._flushed = time.monotonic() if now is None else now
        for kind, lines in self._lines.items():
            if lines:
                with open(os.path.join(self.folder, f"steps-{kind}-{self.pid}.txt"), "a", encoding="ascii") as file:
                    file.writelines(lines)
                lines.clear()

    def note(self, **values: object) -> None:
        """Into the counts, at once."""
        if not self.is_here:
            return
        self.counts.update(values)
        self._write()

    def refresh(self, **values: object) -> None:
        """Into the counts, now and then."""
        self.counts.update(values)
        if self.is_here and time.monotonic() - self._written > _EVERY_S:
            self._write()

    def finish(self) -> None:
        """At the end of the program."""
        if not self.is_here:
            return
        self.flush()
        if self.counts:
            self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        path = os.path.join(self.folder, f"counts-{self.pid}.json")
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(self.counts, file)
        os.replace(f"{path}.part", path)
