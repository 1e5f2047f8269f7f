"""How far the job is, for whoever watches it: `$CHIPWISE_RUN_DIR/progress.json`, at most once a second, by rank 0.

{"step", "total", "at", "saved_step", "save_seconds", "rate"}: steps done, of how many, unix time, the newest committed
checkpoint, what saving takes, steps per second of late. It is renamed into place, so that a reader never sees half of it. That
it cannot be written is no reason to stop training: it is told once.
"""

from __future__ import annotations

import json
import logging
import os
import time

log = logging.getLogger("chipwise.job")
_EVERY_S = 1.0
_SMOOTHING = 0.2


class Progress:
    def __init__(self, total: int | None, step: int, rank: int) -> None:
        directory = os.environ.get("CHIPWISE_RUN_DIR")
        self._path = os.path.join(directory, "progress.json") if directory and rank == 0 else None
        self._total = total
        self._last = (time.monotonic(), step)
        self.rate: float | None = None

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
        }
        temporary = f"{self._path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump(content, file)
            os.replace(temporary, self._path)
        except OSError as error:
            log.warning("Progress cannot be told any more: %s", error)
            self._path = None
