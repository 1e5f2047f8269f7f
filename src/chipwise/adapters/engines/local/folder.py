"""The folder of one attempt: what it is ordered to do, and what it says of itself. Every file is whole or not there.

order.json     what to run; written by the engine before the supervisor starts
lock           held (flock) while the supervisor or a process of the job lives (of another system user: the supervisor alone);
               its time is when that was last seen
state.json     written before the first process starts: the attempt has begun, and never begins again; later, that only
               the files it was to leave behind are still looked for (`looks`)
leave.json     somebody wants it to save and go: until when (by the time of day, and by the clock that nobody sets), and why
notice.json    the same, for the program itself to read
health.json    whether a service has answered its check, and what comes instead
progress.json  how far it is, as its program tells
recording.jsonl  what was sampled of its devices, the host and its program (`observe/recording.py`)
watched.json   the summary of that, written before ended.json
ended.json     written last, when nothing of it runs any more
log, log.1 ... what it printed, the newest in `log`
supervisor.log what the supervisor itself had to say, where it failed
program/       of a program that runs as another system user, and owned by that: notice.json and progress.json are there

Beside the folders of all jobs is going.json while the machine itself goes away: until when, and why.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from chipwise.adapters.clock import in_boottime
from chipwise.adapters.state_files import STATUS_BYTES as STATUS_BYTES
from chipwise.adapters.state_files import file_mode as file_mode
from chipwise.adapters.state_files import integer as integer
from chipwise.adapters.state_files import is_shared as is_shared
from chipwise.adapters.state_files import lock as lock
from chipwise.adapters.state_files import locked as locked
from chipwise.adapters.state_files import make_folder as make_folder
from chipwise.adapters.state_files import number as number
from chipwise.adapters.state_files import read as read
from chipwise.adapters.state_files import regular_bytes as regular_bytes
from chipwise.adapters.state_files import sync as sync
from chipwise.adapters.state_files import taken_over as taken_over
from chipwise.adapters.state_files import words as words
from chipwise.adapters.state_files import write as write

from .processes import identity

BEATS_EVERY_S = 1.0  # what an attempt is known to have run, when it dies with its machine, is known to so much
SILENT_BEATS = 3.0
GOING = "going.json"
OWN_LOG = "supervisor.log"
LAST_WORDS = 300  # letters of what a supervisor that failed said of itself
PROGRAM = "program"
GOES_WITHIN_S = 600.0  # after the time that was named; a machine that is still there then stays
WATCHED = "watched.json"
ORDER, LOCK, STATE, LEAVE, NOTICE, HEALTH, PROGRESS, ENDED, LOG = (
    "order.json",
    "lock",
    "state.json",
    "leave.json",
    "notice.json",
    "health.json",
    "progress.json",
    "ended.json",
    "log",
)


def wish(deadline: float, reason: str) -> dict[str, object]:
    """What `leave.json` says. A clock that is set afterwards changes nothing: the time is counted by the other one."""
    return {"by": deadline, "boottime": in_boottime(deadline), "reason": reason}


def of_program(path: Path) -> Path:
    """Where the program of an attempt reads and writes: in the attempt's folder, or in one of its own."""
    own = path / PROGRAM
    return own if own.is_dir() and not own.is_symlink() else path


def going(root: str, deadline: float, reason: str) -> None:
    """The machine goes away. It is the same machine until it starts anew."""
    if root:
        write(Path(root), GOING, {"by": deadline, "reason": reason, "boot": identity(1)})


def goes(root: Path, now: float) -> bool:
    """Whether the machine was told to go and is not a new one since."""
    departure = read(root, GOING)
    return (
        departure is not None
        and departure.get("boot") == identity(1)
        and now < (number(departure, "by") or 0.0) + GOES_WITHIN_S
    )


class Beat:
    """Shows that the attempt is alive, now and then, at the cost of no file."""

    def __init__(self, lock: int) -> None:
        self._lock, self._last = lock, time.monotonic()

    def turn(self) -> None:
        if time.monotonic() - self._last >= BEATS_EVERY_S:
            self._last = time.monotonic()
            with suppress(OSError):
                os.utime(self._lock)


def is_silent(path: Path, now: float) -> bool:
    """Whether its supervisor has shown no sign of life for several beats."""
    with suppress(OSError):
        return now - os.lstat(path / LOCK).st_mtime > SILENT_BEATS * BEATS_EVERY_S
    return False


def last_seen(path: Path, begun: float | None, now: float) -> float | None:
    """When the attempt was alive as far as its files tell: what it printed and told counts, too. Never before it began nor
    after now, whatever was done to the clock. None: nothing of it is there."""
    times = []
    for name in (LOCK, LOG, PROGRESS):
        with suppress(OSError):
            times.append(os.lstat(path / name).st_mtime)
    if not times:
        return begun
    return min(max(*times, begun or 0.0), now)


def has_begun(state: Mapping[str, Any], path: Path) -> bool:
    """Whether its supervisor came to start a program: it says so, or the program printed something."""
    with suppress(OSError):
        return "sessions" in state or os.lstat(path / LOG).st_size > 0
    return False


def last_words(path: Path) -> str:
    """Of a supervisor that failed: the last line of what it said of itself."""
    with suppress(OSError, ValueError):
        lines = regular_bytes(path / OWN_LOG).decode(errors="replace").split("\n")
        if last := next((line.strip() for line in reversed(lines) if line.strip()), ""):
            return f": {last[:LAST_WORDS]}"
    return ""
