"""The environment of a program of ours that runs beside jobs, handed over so that no job can read it.

What a program is started with stays readable in /proc for every process of the same system user, however it changes its
environment later. A controller and its supervisors hold the address of the record and the keys of whoever started them, so
they are started with what any job may see, and take the rest from a file in memory that is closed at once. The file is on
its way in a socket until then, since /proc lets others open the files of a process, and no sockets. On Linux the process is
closed to tracers of its own user, too, from the moment it takes it. Files of that user (~/.pgpass, ~/.aws) stay readable, and
whoever traces the process before that moment reads all: a job that must not needs another system user.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
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
    with _inheritable(private) as handle, process_tag.taken_off():
        yield {**visible, HANDLE: str(handle)}, (handle,)


def receive() -> None:
    """At the start of a program that was started so; of any other, nothing happens."""
    handle = os.environ.pop(HANDLE, None)
    if handle is None:
        return
    _close_to_tracers()
    with suppress(OSError, ValueError), open(_arrived(int(handle))) as file:
        os.environ.update(json.load(file))


def start_anew() -> None:
    """For a program that somebody started with everything in its environment: the same program, in the same process."""
    if HANDLE in os.environ:
        receive()
        return
    with handed_over(os.environ) as (visible, (handle,)):
        os.set_inheritable(handle, True)
        os.execve(sys.executable, sys.orig_argv, visible)


@contextmanager
def _inheritable(private: Mapping[str, str]) -> Iterator[int]:
    """The open file of the program that is started. macOS loses files that are closed on their way, and has no /proc."""
    with os.fdopen(_memory(), "w") as file:
        json.dump(private, file)
        file.seek(0)
        if sys.platform != "linux":
            yield file.fileno()
            return
        sender, receiver = socket.socketpair()
        with sender:
            socket.send_fds(sender, [b"."], [file.fileno()])
    with receiver:
        yield receiver.fileno()


def _arrived(handle: int) -> int:
    if sys.platform != "linux":
        return handle
    with socket.socket(fileno=handle) as receiver:
        _, (file, *_), *_ = socket.recv_fds(receiver, 1, 1)
        return file


def _memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("environment")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _close_to_tracers() -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
