"""Processes of a job: started with their rank, found again by a mark, and ended for certain.

Every process of an attempt carries the mark in its environment and is in a session that the supervisor made, so that it can be
found even when the supervisor is gone. On Linux the first of them end with the supervisor, whatever kills it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import psutil

from chipwise.adapters.process_identity import identity as identity
from chipwise.adapters.process_identity import lives as lives

MARK = "CHIPWISE_MARK"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def started(
    command: Sequence[str], env: Mapping[str, str], folder: str, cpus: Sequence[int], kept_open: Sequence[int]
) -> subprocess.Popen[bytes]:
    """One process in a session of its own, its output in a pipe."""
    return subprocess.Popen(
        list(command),
        env=dict(env),
        cwd=folder or None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=tuple(kept_open),
        preexec_fn=_before(cpus),
    )


def _before(cpus: Sequence[int]) -> Callable[[], None]:
    """Runs in the child before the program; the supervisor has no threads at that time."""
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died in between
                os.kill(os.getpid(), signal.SIGKILL)
            if cpus:
                with suppress(OSError):  # a container may allow fewer
                    os.sched_setaffinity(0, cpus)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)

    return prepare


def adopt() -> None:
    """Orphans of our processes become children of ours, instead of being lost to init."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def marked(mark: str, sessions: Iterable[int] = ()) -> list[psutil.Process]:
    """Living processes of an attempt: by their mark, or by a session that was made for it and has their mark in it.

    A session's number may be given anew once nobody is in it, so it counts only for processes that hide their environment.
    """
    sessions, own, matches = set(sessions), os.getpid(), []
    for process in psutil.process_iter():
        if process.pid == own:
            continue
        with suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            carried = process.environ().get(MARK)
            if carried == mark or (carried is None and os.getsid(process.pid) in sessions):
                matches.append(process)
    return matches


def children() -> list[psutil.Process]:
    return psutil.Process().children()


def end(targets: Iterable[psutil.Process]) -> None:
    for process in targets:
        with suppress(psutil.Error):
            process.kill()  # checks that the id still means the same process
