"""How far the job is, for whoever watches it: `$CHIPWISE_RUN_DIR/progress.json`, at most once a second (and whenever a
checkpoint is there), by rank 0.

{"step", "total", "at", "saved_step", "resumed_step", "save_seconds", "rate", "steady"}: steps done, of how many, unix time,
the newest committed checkpoint, the one that was loaded (0: there was none; null: nobody looked), what saving takes, steps per
second of late, and steps per second of this process since it was warm: its first steps compile, fill caches and wait for data,
and say little about those that follow. Where the program counts them (`counting.py`), "tokens" and "data_wait" (seconds) are
there as well. It is renamed into place, so that a reader never sees half of it. A checkpoint is
reported by whoever commits it, at once: a program that is killed in the next step goes on from there. One that saves by hand,
without `steps()`, reports no step of its own ("step" is null), only the saved one.

In a pod nobody reads that file. There `$CHIPWISE_TERMINATION_MESSAGE` names the one that the kubelet reads when the container
has ended, and shows as the container's message: a pod needs no right for that. It is a mount, so it can only be written in
place: always as many bytes and in one write, so that whoever is killed at any moment leaves what was told before, or now. It
holds numbers only, with that of the attempt: what another one left in the file is not taken for its own.

That one of them cannot be written is no reason to stop training: it is told once.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from chipwise.job.counting import counts

log = logging.getLogger("chipwise.job")
_EVERY_S = 1.0
_SMOOTHING = 0.2
_WARM_STEPS = 2
_WARM_S = 1.0
_MESSAGE_BYTES = 512  # of 4096 that a kubelet reads; those of ours are about 250
_FORM = 1  # of the message: a reader knows by it what it reads

Content = Mapping[str, float | None]
_has_loop = False  # whether steps are counted in this process: checkpoints that are saved beside them are not reported


class Progress:
    def __init__(self, total: int | None, step: int | None, rank: int) -> None:
        """`step`: None where nobody counts steps."""
        global _has_loop
        _has_loop = _has_loop or step is not None
        self._writers = _writers() if rank == 0 else []
        self._lock = threading.Lock()  # a checkpoint is committed in a thread of its own
        self._total = total
        self._step = step
        self._last = (time.monotonic(), step or 0)
        self.resumed: int | None = None  # the step of the checkpoint that was loaded; 0: there was none
        self._saved: int | None = None  # the checkpoint that was told last: whoever is killed tells nothing more
        self.rate: float | None = None
        self._begun = self._last
        self._warm: tuple[float, int] | None = None
        self.steady: float | None = None

    def count(self, step: int) -> None:
        """At the end of every step: a save that follows is no part of it, and one between two steps is."""
        now, self._step = time.monotonic(), step
        if self._warm is not None:
            self.steady = (step - self._warm[1]) / max(now - self._warm[0], 1e-9)
        elif step - self._begun[1] >= _WARM_STEPS and now - self._begun[0] >= _WARM_S:
            self._warm = (now, step)

    def tell(self, step: int, saved_step: int | None, save_seconds: float | None, *, now: bool = False) -> None:
        with self._lock:
            elapsed = time.monotonic() - self._last[0]
            if elapsed < _EVERY_S and not now and saved_step in (None, self._saved):
                return
            if elapsed > 0 and step > self._last[1]:
                rate = (step - self._last[1]) / elapsed
                self.rate = rate if self.rate is None else self.rate + _SMOOTHING * (rate - self.rate)
            self._last, self._step = (time.monotonic(), step), step
            self._write(saved_step, save_seconds)

    def committed(self, saved_step: int | None, save_seconds: float | None) -> None:
        """As soon as a checkpoint is there, in the middle of a step."""
        if self._step is None and _has_loop:
            return
        with self._lock:
            self._write(saved_step, save_seconds)

    def _write(self, saved_step: int | None, save_seconds: float | None) -> None:
        self._saved = saved_step
        content = {
            "step": self._step,
            "total": self._total,
            "at": time.time(),
            "saved_step": saved_step,
            "resumed_step": self.resumed,
            "save_seconds": save_seconds,
            "rate": self.rate,
            "steady": self.steady,
            **counts(),
        }
        for writer in list(self._writers):
            try:
                writer(content)
            except (OSError, ValueError) as error:
                log.warning("Progress cannot be reported any more: %s", error)
                self._writers.remove(writer)


def _writers() -> list[Callable[[Content], None]]:
    writers: list[Callable[[Content], None]] = []
    if directory := os.environ.get("CHIPWISE_RUN_DIR"):
        writers.append(partial(_renamed, os.path.join(directory, "progress.json")))
    if message := os.environ.get("CHIPWISE_TERMINATION_MESSAGE"):
        writers.append(partial(_in_place, message))
    return writers


def _renamed(path: str, content: Content) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(temporary, path)


def _in_place(path: str, content: Content) -> None:
    """Into a file that is there. One that is none, such as a pipe, would let the job wait for a reader."""
    attempt = os.environ.get("CHIPWISE_ATTEMPT", "")
    number = int(attempt) if attempt.isascii() and attempt.isdecimal() and len(attempt) < 10 else None
    text = json.dumps({"chipwise": _FORM, "attempt": number, **content}, allow_nan=False)
    if len(text) >= _MESSAGE_BYTES:
        raise ValueError(f"{len(text)} bytes are too many for {path}")
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError(f"{path} is no file")
        os.pwrite(handle, text.ljust(_MESSAGE_BYTES - 1).encode() + b"\n", 0)
        os.ftruncate(handle, _MESSAGE_BYTES)
    finally:
        os.close(handle)
