"""How far the job is, for whoever watches it: `$CHIPWISE_RUN_DIR/progress.json`, at most once a second, by rank 0.

{"step", "total", "at", "saved_step", "save_seconds", "rate", "steady"}: steps done, of how many, unix time, the newest
committed checkpoint, what saving takes, steps per second of late, and steps per second of this process since it was warm: its
first steps compile, fill caches and wait for data, and say little about those that follow. It is renamed into place, so that a
reader never sees half of it. That it cannot be written is no reason to stop training: it is told once.
"""

from __future__ import annotations

import json
import logging
import os
import time

log = logging.getLogger("chipwise.job")
_EVERY_S = 1.0
_SMOOTHING = 0.2
_WARM_STEPS = 2
_WARM_S = 1.0


class Progress:
    def __init__(self, total: int | None, step: int, rank: int) -> None:
        directory = os.environ.get("CHIPWISE_RUN_DIR")
        self._path = os.path.join(directory, "progress.json") if directory and rank == 0 else None
        self._total = total
        self._last = (time.monotonic(), step)
        self.rate: float | None = None
        self._begun = self._last
        self._warm: tuple[float, int] | None = None
        self.steady: float | None = None

    def count(self, step: int) -> None:
        """At the end of every step: a save that follows is no part of it, and one between two steps is."""
        now = time.monotonic()
        if self._warm is not None:
            self.steady = (step - self._warm[1]) / max(now - self._warm[0], 1e-9)
        elif step - self._begun[1] >= _WARM_STEPS and now - self._begun[0] >= _WARM_S:
            self._warm = (now, step)

    def tell(self, step: int, saved_step: int | None, save_seconds: float | None, *, now: bool = False) -> None:
        passed = time.monotonic() - self._last[0]
        if passed < _EVERY_S and not now:
            return
        if passed > 0 and step > self._last[1]:
            rate = (step - self._last[1]) / passed
            self.rate = rate if self.rate is None else self.rate + _SMOOTHING * (rate - self.rate)
        self._last = (time.monotonic(), step)
        if self._path is None:
            return
        content = {
            "step": step,
            "total": self._total,
            "at": time.time(),
            "saved_step": saved_step,
            "save_seconds": save_seconds,
            "rate": self.rate,
            "steady": self.steady,
        }
        temporary = f"{self._path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump(content, file)
            os.replace(temporary, self._path)
        except OSError as error:
            log.warning("Progress cannot be told any more: %s", error)
            self._path = None
