"""All that a supervisor's processes ever started: its descendants, since on Linux orphans among them become its children.

They are read from the kernel's lists of children, so the work grows with the job and not with the machine. What is ended is
stopped first and looked at again until nothing new comes: a process that is stopped can start no other.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil

from chipwise.adapters import process_tag

PROC = Path("/proc")
CLEAN_LOOKS, MOST_LOOKS = 30, 2000  # in a row that see none, and in all
PAUSE_S = 0.02
OURS = "chipwise"  # of the module that a program of ours runs


def below(pid: int, spared: Callable[[int], bool] = lambda pid: False) -> list[int]:
    """All descendants that live or wait to be reaped, without those that are spared and what is below them."""
    reached: set[int] = set()
    pending = [pid]
    while pending:
        new = [child for child in children(pending.pop()) if child not in reached and not spared(child)]
        reached.update(new)
        pending += new
    return sorted(reached)


def children(pid: int) -> list[int]:
    """Of all its threads."""
    pids: list[int] = []
    try:
        for thread in os.listdir(PROC / str(pid) / "task"):
            with suppress(FileNotFoundError, ProcessLookupError):
                pids += map(int, (PROC / str(pid) / "task" / thread / "children").read_bytes().split())
    except OSError:
        return []
    return pids if pids or _has_lists() else _by_parent(pid)


def _has_lists() -> bool:
    """Some kernels keep no lists of children."""
    return sys.platform == "linux" and (PROC / "self" / "task" / str(os.getpid()) / "children").exists()


def _by_parent(pid: int) -> list[int]:
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children()]
    return []


def spare(tag: int | None) -> Callable[[int], bool]:
    """What is below a supervisor and no part of its job: controllers that it started, and supervisors that those started."""

    def is_spared(pid: int) -> bool:
        if tag is not None and process_tag.tag(pid) == tag:
            return False
        with suppress(OSError):
            words = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            return any(word == "-m" and name.split(".")[0] == OURS for word, name in pairwise(words))
        return False

    return is_spared


def living(pids: Iterable[int]) -> list[psutil.Process]:
    """Those that are more than an entry which waits to be reaped."""
    alive = []
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                alive.append(process)
    return alive


def end(look: Callable[[], Iterable[int]], none_left: Callable[[], bool] = lambda: False) -> int:
    """Stops all that `look` sees, and kills them when it sees nothing new; how many there were. One that starts the next and
    ends at once is easily missed by one look: only many in a row that see none are believed, or who knows that none is left."""
    stopped: set[int] = set()
    unseen, looks = 0, 0
    while unseen < CLEAN_LOOKS and looks < MOST_LOOKS and not none_left():
        new = {pid for pid in look() if pid not in stopped and _stop(pid)}
        stopped |= new
        unseen, looks = 0 if new else unseen + 1, looks + 1
    for pid in stopped:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return len(stopped)


def _stop(pid: int) -> bool:
    """At once, since it may live for a millisecond only; whether it is more than an entry that waits to be reaped."""
    try:
        with suppress(PermissionError):  # another user's: it is there all the same
            os.kill(pid, signal.SIGSTOP)
        return (PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def with_tag(tag: int) -> Iterator[int]:
    """Processes of this machine that carry it: one system call for each process that there is."""
    own = os.getpid()
    return (pid for pid in _all() if process_tag.tag(pid) == tag and pid != own)


def tags() -> set[int]:
    """That processes of this machine carry."""
    return {tag for pid in _all() if (tag := process_tag.tag(pid)) is not None}


def _all() -> Iterable[int]:
    return map(int, filter(str.isdecimal, os.listdir(PROC))) if sys.platform == "linux" else ()


def end_below(spared: Callable[[int], bool], reap: Callable[[], None], within_s: float) -> list[psutil.Process]:
    """All that is below this process, until none is left. Those that are left all the same are another user's, or wait for a
    disk that does not answer."""

    def childless() -> bool:
        reap()
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True  # orphans come to us: who has no child has no descendant
        return False

    own, late = os.getpid(), time.monotonic() + within_s
    while end(lambda: below(own, spared), childless):
        if time.monotonic() > late:
            return living(below(own, spared))
        time.sleep(PAUSE_S)
    return []
