"""Being told to leave: by SIGTERM, or by a file that the supervisor writes.

`$CHIPWISE_RUN_DIR/notice.json` is {"reason": text, "until": unix time, "boottime": the same by the clock that nobody sets,
where the writer is on the same machine}; spot notices, maintenance and evictions all arrive that way. SIGTERM has no time with
it: $CHIPWISE_GRACE_SECONDS says how long the sender waits (30 s where it does not, as Kubernetes does). A notice whose time was
over before this process began was meant for an earlier one.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from chipwise.job.clock import boottime

log = logging.getLogger("chipwise.job")
GRACE_S = 30.0
_LOOK_S = 0.1  # between looks at the notice file: a look costs microseconds, on a network file system more


_began, _began_boottime = time.time(), boottime()


@dataclass(frozen=True, slots=True)
class Leaving:
    reason: str
    until: float | None  # unix time; None where nobody said
    boottime: float | None = field(default=None, repr=False, compare=False)  # the same by a clock that nobody sets

    @property
    def seconds_left(self) -> float | None:
        if self.boottime is not None:
            return max(0.0, self.boottime - boottime())
        return None if self.until is None else max(0.0, self.until - time.time())


_signalled: Leaving | None = None
_last_look: tuple[str, float, Leaving | None] = ("", -1e9, None)  # where, when, what was there


def leaving() -> Leaving | None:
    """The notice, where one came: `if (notice := job.leaving()): ...`. Signals are heard inside `steps()` and `listening()`."""
    global _last_look
    directory = os.environ.get("CHIPWISE_RUN_DIR")
    if not directory:
        return _signalled
    looked_directory, looked_s, notice = _last_look
    now = time.monotonic()
    if looked_directory != directory or now - looked_s >= _LOOK_S:
        notice = _read_notice(directory)
        _last_look = (directory, now, notice)
    if _signalled is not None and (notice is None or notice.until is None):
        return _signalled
    return notice  # who writes a notice sends a signal too, and the notice knows the reason and the time


def _read_notice(directory: str) -> Leaving | None:
    try:
        with open(os.path.join(directory, "notice.json"), encoding="utf-8") as file:
            content: Any = json.load(file)
        reason, until, boottime = str(content.get("reason") or "notice"), content.get("until"), content.get("boottime")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError) as error:  # that there is one is known, and going is the safe side
        log.warning("The notice in %s cannot be read (%s): leaving", directory, error)
        return Leaving("a notice that cannot be read", None)
    if not isinstance(until, int | float) or isinstance(until, bool):
        return Leaving(reason, None)
    if isinstance(boottime, int | float) and not isinstance(boottime, bool):
        return None if boottime < _began_boottime else Leaving(reason, float(until), float(boottime))
    return None if until < _began else Leaving(reason, float(until))


@contextmanager
def listening(*signals: signal.Signals) -> Iterator[None]:
    """Hear these signals (SIGTERM where none is named) until the end of the block; what handled them before is called as well,
    and is put back. Only the main thread can hear signals: in another this does nothing."""
    global _signalled
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner = os.getpid()
    before: dict[int, Any] = {}

    def handler(number: int, frame: FrameType | None) -> None:
        global _signalled, _last_look
        previous = before.get(number)
        if os.getpid() != owner:  # a worker that was forked: it must end as if we were not there
            signal.signal(number, previous if previous is not None else signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        if _signalled is None:
            _signalled = Leaving(signal.Signals(number).name, time.time() + _grace_s(), boottime() + _grace_s())
            _last_look = ("", -1e9, None)  # a notice was written just before
        if callable(previous):
            previous(number, frame)

    for wanted in signals or (signal.SIGTERM,):
        before[wanted] = signal.signal(wanted, handler)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous if previous is not None else signal.SIG_DFL)
        _signalled = None


def _grace_s() -> float:
    try:
        return float(os.environ.get("CHIPWISE_GRACE_SECONDS") or GRACE_S)
    except ValueError:
        return GRACE_S
