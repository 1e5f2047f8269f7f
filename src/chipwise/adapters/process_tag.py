"""A number that all processes of an attempt carry, whatever they do to their environment, title, session or open files.

It is the soft limit of real-time CPU in microseconds (RLIMIT_RTTIME), set to a value of about 36,000 years that no program ever
reaches: limits are inherited through fork and exec, other processes of the same user can read them with one system call, and
programs have no reason to change this one. The hard limit stays as it was, so that a program of ours which a job starts in the
background, such as a controller, can take the number off: it is no part of the job.

Only Linux has it. Elsewhere nothing is tagged, and processes are found by their environment.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

_LOWEST = 1 << 60  # of the numbers that are tags


def tag_of(mark: str) -> int:
    return _LOWEST | int.from_bytes(sha256(mark.encode()).digest()[:7])


def put_on(tag: int) -> None:
    """On this process and all that it starts from now on."""
    if sys.platform == "linux":
        with suppress(OSError, ValueError):  # a system that limits real-time CPU itself
            _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
            resource.setrlimit(resource.RLIMIT_RTTIME, (tag, hard))


def tag(pid: int) -> int | None:
    """Of a process; None: it has none, is gone, or is another user's."""
    if sys.platform == "linux":
        with suppress(OSError, ValueError):
            soft, _ = resource.prlimit(pid, resource.RLIMIT_RTTIME)
            return soft if soft >= _LOWEST else None
    return None


@contextmanager
def taken_off() -> Iterator[None]:
    """What this process starts meanwhile is no part of a job, even where this process is."""
    own = tag(os.getpid())
    if own is None or sys.platform != "linux":
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
    resource.setrlimit(resource.RLIMIT_RTTIME, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))
