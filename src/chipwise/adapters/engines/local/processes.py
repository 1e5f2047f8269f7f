"""Processes of a job: started with their rank, and found again by a mark.

Every process of an attempt carries the mark in its environment and, on Linux, a tag in its limits that stays when it clears its
environment, so that it can be found even when the supervisor is gone. On Linux the first of them end with the supervisor,
whatever kills it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psutil

from chipwise.adapters import process_tag
from chipwise.adapters.process_identity import identity as identity
from chipwise.adapters.process_identity import lives as lives

from . import descendants
from .accounts import Account

MARK = "CHIPWISE_MARK"
NOT_ALLOWED = 126
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def any_lives(pids: Iterable[int]) -> bool:
    """Whether one of these processes of an attempt under way works; one that ended and was not waited for does not."""
    for pid in pids:
        with suppress(psutil.Error):
            if psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return True
    return False


def is_stopped(pid: object) -> bool:
    """By a signal, so that it does nothing until it gets another."""
    with suppress(psutil.Error):
        return isinstance(pid, int) and bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    return False


def started(
    command: Sequence[str],
    env: Mapping[str, str],
    folder: str,
    cpus: Sequence[int],
    kept_open: Sequence[int],
    account: Account | None = None,
) -> subprocess.Popen[bytes]:
    """One process in a session of its own, its output in a pipe; its environment has the mark."""
    user: dict[str, Any] = {}
    if account is not None:
        user = {"user": account.uid, "group": account.gid, "extra_groups": list(account.groups)}
    return subprocess.Popen(
        list(command),
        env=dict(env),
        cwd=folder if folder and account is None else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=tuple(kept_open),
        preexec_fn=_before(cpus, process_tag.tag_of(env[MARK]), folder if account is not None else ""),
        **user,
    )


def _before(cpus: Sequence[int], tag: int, folder: str) -> Callable[[], None]:
    """Runs in the child before the program, as its user already; the supervisor has no threads at that time. `folder`: to be
    entered as that user, who may not enter all that we may."""
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died in between
                os.kill(os.getpid(), signal.SIGKILL)
            process_tag.put_on(tag)
            if cpus:
                with suppress(OSError):  # a container may allow fewer
                    os.sched_setaffinity(0, cpus)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if folder:
            try:
                os.chdir(folder)
            except OSError as error:
                os.write(2, f"the folder {folder} cannot be entered: {error.strerror}\n".encode(errors="replace"))
                os._exit(NOT_ALLOWED)

    return prepare


def adopt() -> None:
    """Orphans of our processes become children of ours, instead of being lost to init."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def below(supervisor: int, mark: str) -> list[psutil.Process]:
    """Living processes of an attempt whose supervisor lives. The work does not grow with the number of other processes. Orphans
    of another attempt, whose supervisor and controller were started from here and killed, carry its tag."""
    if sys.platform != "linux":  # orphans do not come to the supervisor
        return marked(mark)
    tag = process_tag.tag_of(mark)
    descending = descendants.living(descendants.below(supervisor, descendants.spare(tag)))
    return [process for process in descending if process_tag.tag(process.pid) in (tag, None)]


def marked(mark: str, sessions: Iterable[int] = ()) -> list[psutil.Process]:
    """Living processes of an attempt: by their tag, by their mark, or by a session that was made for it.

    A session's number may be given anew once nobody is in it, so it counts only for processes that hide their environment.
    """
    sessions, own = set(sessions), os.getpid()
    matches = descendants.living(descendants.with_tag(process_tag.tag_of(mark)))
    known = {own, *(process.pid for process in matches)}
    for process in psutil.process_iter():
        if process.pid in known:
            continue
        with suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            carried = process.environ().get(MARK)
            if carried == mark or (carried is None and os.getsid(process.pid) in sessions):
                matches.append(process)
    return matches


def end_marked(mark: str, sessions: Iterable[int] = ()) -> int:
    """Where nobody supervises them any more; how many there were."""
    tag = process_tag.tag_of(mark)
    count = descendants.end(lambda: descendants.with_tag(tag))
    end(left := marked(mark, sessions))
    return count + len(left)


def end_below(mark: str, reap: Callable[[], None], within_s: float, *, spares: bool = True) -> list[psutil.Process]:
    """For a supervisor: all that its job started; those that could not be ended. `spares`: but what calls itself a controller,
    as any process can."""
    if sys.platform == "linux":
        spared = descendants.spare(process_tag.tag_of(mark)) if spares else lambda pid: False
        return descendants.end_below(spared, reap, within_s)
    late = time.monotonic() + within_s
    while (left := marked(mark)) and time.monotonic() < late:
        end(left)
        time.sleep(descendants.PAUSE_S)
    return left


def end(targets: Iterable[psutil.Process]) -> None:
    for process in targets:
        with suppress(psutil.Error):
            process.kill()  # checks that the id still means the same process
