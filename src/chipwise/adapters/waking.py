"""Brings the controller back when nobody is it: whoever is left alive starts the next one, so that no queue stands still.

A controller holds a lock as long as it lives. Whoever finds the lock free starts one; of several that start, one gets the lock
and the others leave.

A process that is stopped or hangs keeps its lock. So a controller shows that it lives: every `BEATS_EVERY_S` it sets the time
of the lock's file. One that has not done so for `SILENT_S` is ended by whoever may, and the next is started; since it is dead,
it cannot go on later. Its process is known by its number and by when it started, so that no other is ended.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from chipwise.adapters import process_identity, state_files
from chipwise.adapters.private_environment import handed_over

EVERY_S = 5.0
BEATS_EVERY_S = 1.0
SILENT_S = 30.0  # without a beat, after which a controller is ended and replaced
SURE_S = 3.0  # that whoever ends it watched it: a clock that was set, or a machine that slept, makes a silence that is none
HANGS_S = 600.0  # of one turn, after which a controller shows no more that it lives
FREE_WITHIN_S = 2.0  # the lock of a process that was ended
HOLDER = "controller.json"  # beside the lock: which process holds it
_STARTED: list[subprocess.Popen[bytes]] = []  # held so that a long program that starts several waits for those that left


def awake(lock: Path) -> bool:
    return state_files.locked(lock)


class Pulse:
    """What a controller shows of itself while it holds the lock. A long turn is no silence, one without end is."""

    def __init__(self, lock: int, folder: Path) -> None:
        self._lock, self._turned, self._over = lock, time.monotonic(), threading.Event()
        with suppress(OSError):  # a full disk must not matter: a controller that is not known is not replaced
            holder = {"pid": os.getpid(), "identity": process_identity.identity(os.getpid())}
            state_files.write(folder, HOLDER, holder)
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def turned(self) -> None:
        self._turned = time.monotonic()

    def stop(self) -> None:
        """Before the lock is closed, whose number another file may get then."""
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while True:
            if time.monotonic() - self._turned < HANGS_S:
                with suppress(OSError):
                    os.utime(self._lock)
            if self._over.wait(BEATS_EVERY_S):
                return


@dataclass(frozen=True, slots=True)
class Silence:
    """Of a controller that lives and does not answer."""

    pid: int
    user: str
    seconds: float
    watched_s: float  # by this process
    identity: str

    @property
    def is_over_limit(self) -> bool:
        return self.seconds >= SILENT_S

    @property
    def is_certain(self) -> bool:
        return self.is_over_limit and self.watched_s >= SURE_S


_BEATS: dict[Path, tuple[int, float]] = {}  # by lock: the last beat, and since when this process knows no later one


def silence(lock: Path) -> Silence | None:
    """None: nobody holds the lock, or who does showed itself a moment ago, or is of a version that never does."""
    try:
        written, holder = int(lock.read_text()), state_files.read(lock.parent, HOLDER) or {}
        status = os.stat(lock)
    except (OSError, ValueError):
        return None
    recorded = holder.get("identity")
    if holder.get("pid") != written or not isinstance(recorded, str) or not process_identity.lives(written, recorded):
        return None
    now, (beat, since) = time.monotonic(), _BEATS.get(lock, (None, 0.0))
    if beat != status.st_mtime_ns:
        _BEATS[lock], since = (status.st_mtime_ns, now), now
    seconds = max(abs(time.time() - status.st_mtime), now - since)
    if seconds < 3.0 * BEATS_EVERY_S or not awake(lock):
        return None
    return Silence(written, user_name(status.st_uid), seconds, now - since, recorded)


def user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def end_silent(lock: Path, log: Path, wait_s: float = 0.0) -> bool:
    """Ends the controller that holds the lock, if it has not answered for `SILENT_S`, watched for `SURE_S` by this process;
    whoever cannot come back waits for that. Whether the lock is free then. Its log says what was done."""
    until = time.monotonic() + wait_s
    while (silent := silence(lock)) is not None and silent.is_over_limit and not silent.is_certain:
        if time.monotonic() >= until:
            return False
        time.sleep(0.1)
    if silent is None or not silent.is_certain or not process_identity.kill(silent.pid, silent.identity):
        return False
    with suppress(OSError), _opened(log) as file:
        file.write(f"The controller (process {silent.pid}) did not answer for {silent.seconds:.0f} s and was ended.\n".encode())
    until = time.monotonic() + FREE_WITHIN_S
    while awake(lock) and time.monotonic() < until:
        time.sleep(0.02)
    return not awake(lock)


def start(command: list[str], env: Mapping[str, str], log: Path) -> None:
    """Detached: it belongs to nobody's terminal, and outlives who started it."""
    _STARTED[:] = [process for process in _STARTED if process.poll() is None]
    with _opened(log) as file, handed_over(env) as (visible, inherited):
        process = subprocess.Popen(
            command,
            env=visible,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            pass_fds=inherited,
        )
    _STARTED.append(process)


def _opened(log: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.fdopen(os.open(log, flags, state_files.file_mode(log.parent)), "ab")


class Waker:
    """What a supervisor does for it now and then."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.order, self.last = order, time.monotonic()

    def turn(self) -> None:
        if time.monotonic() - self.last >= EVERY_S:
            self.wake()

    def wake(self) -> None:
        self.last = time.monotonic()
        if "lock" not in self.order:  # nobody said how
            return
        lock = Path(self.order["lock"])
        with suppress(OSError):  # a full disk or too many processes: not worth the job; it is tried again
            if lock.parent.is_dir() and (not awake(lock) or end_silent(lock, Path(self.order["log"]))):
                start(list(self.order["command"]), os.environ, Path(self.order["log"]))

    def reap(self, pid: int) -> bool:
        """Whether a child that has ended is a controller that was started here, which is then waited for."""
        return any(process.poll() is not None for process in _STARTED if process.pid == pid)
