"""Brings the controller back when nobody is it: whoever is left alive starts the next one, so that no queue stands still.

A controller holds a lock as long as it lives. Whoever finds the lock free starts one; of several that start, one gets the lock
and the others leave.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from chipwise.adapters import state_files
from chipwise.adapters.private_environment import handed_over

EVERY_S = 5.0
_STARTED: list[subprocess.Popen[bytes]] = []  # held so that a long program that starts several waits for those that left


def awake(lock: Path) -> bool:
    return state_files.locked(lock)


def start(command: list[str], env: Mapping[str, str], log: Path) -> None:
    """Detached: it belongs to nobody's terminal, and outlives who started it."""
    _STARTED[:] = [process for process in _STARTED if process.poll() is None]
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, state_files.file_mode(log.parent))
    try:
        with handed_over(env) as (visible, inherited):
            process = subprocess.Popen(
                command,
                env=visible,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=handle,
                start_new_session=True,
                pass_fds=inherited,
            )
        _STARTED.append(process)
    finally:
        os.close(handle)


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
            if lock.parent.is_dir() and not awake(lock):
                start(list(self.order["command"]), os.environ, Path(self.order["log"]))
