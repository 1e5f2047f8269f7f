"""The environment of a program of ours that runs beside jobs, handed over so that no job can read it.

What a program is started with stays readable in /proc for every process of the same system user, however it changes its
environment later. A controller and its supervisors hold the address of the record and the keys of whoever started them, so
they are started with what any job may see, and read the rest from a file in memory that is closed at once. On Linux the
process is closed to tracers of its own user, too. Files of that user (~/.pgpass, ~/.aws) stay readable: a job that must not
read them needs another system user.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from chipwise.adapters import process_tag
from chipwise.adapters.environment import OUR_FOLDERS, inherited

HANDLE = "CHIPWISE_ENVIRONMENT_HANDLE"
_SET_DUMPABLE = 4  # of prctl(2)


@contextmanager
def handed_over(environ: Mapping[str, str]) -> Iterator[tuple[dict[str, str], tuple[int, ...]]]:
    """What to start a program with, and the open files that it inherits, until the program has been started. It is no part of a
    job, also where a job starts it."""
    visible = inherited(environ) | {name: environ[name] for name in OUR_FOLDERS if name in environ}
    private = {name: value for name, value in environ.items() if name not in visible and name != HANDLE}
    handle = _memory()
    try:
        with open(handle, "w", closefd=False) as file:
            json.dump(private, file)
        os.lseek(handle, 0, os.SEEK_SET)
        with process_tag.taken_off():
            yield {**visible, HANDLE: str(handle)}, (handle,)
    finally:
        os.close(handle)


def receive() -> None:
    """At the start of a program that was started so; of any other, nothing happens."""
    handle = os.environ.pop(HANDLE, None)
    if handle is None:
        return
    with suppress(OSError, ValueError), open(int(handle)) as file:
        os.environ.update(json.load(file))
    _close_to_tracers()


def start_anew() -> None:
    """For a program that somebody started with everything in its environment: the same program, in the same process."""
    if HANDLE in os.environ:
        receive()
        return
    with handed_over(os.environ) as (visible, (handle,)):
        os.set_inheritable(handle, True)
        os.execve(sys.executable, sys.orig_argv, visible)


def _memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("environment")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _close_to_tracers() -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
