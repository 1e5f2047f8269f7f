"""All that a supervisor's processes ever started: its descendants, since on Linux orphans among them become its children.

They are read from the kernel's lists of children, so the work grows with the job and not with the machine. What is ended is
stopped first and looked at again until nothing new comes: a process that is stopped can start no other.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil

from chipwise.adapters import process_tag

PROC = Path("/proc")
FREEZES = 200  # looks for new ones at most, before what was seen is killed
CLEAN_LOOKS, MOST_LOOKS = 30, 2000  # by tag: in a row that see none, and in all
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
    found: list[int] = []
    try:
        for thread in os.listdir(PROC / str(pid) / "task"):
            with suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (PROC / str(pid) / "task" / thread / "children").read_bytes().split())
    except OSError:
        return []
    return found if found or _has_lists() else _by_parent(pid)


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


def end(look: Callable[[], Collection[psutil.Process]]) -> int:
    """Stops all that `look` sees until it sees nothing new, and kills them; how many there were."""
    stopped: dict[int, psutil.Process] = {}
    for _ in range(FREEZES):
        new = [process for process in look() if process.pid not in stopped or stopped[process.pid] != process]
        for process in new:
            stopped[process.pid] = process
            with suppress(psutil.Error):
                process.suspend()
        if not new:
            break
    for process in stopped.values():
        with suppress(psutil.Error):
            process.kill()  # checks that the id still means the same process
    return len(stopped)


def end_tagged(tag: int) -> int:
    """The same for those that carry a tag, wherever they are; how many there were. One that starts the next and ends at once is
    easily missed by one look at the machine's processes, so only many looks in a row that see none are believed."""
    stopped: set[int] = set()
    unseen, looks, own = 0, 0, os.getpid()
    while sys.platform == "linux" and unseen < CLEAN_LOOKS and looks < MOST_LOOKS:
        new = {pid for name in os.listdir(PROC) if name.isdecimal() and _stops(pid := int(name), tag, stopped, own)}
        stopped |= new
        unseen, looks = 0 if new else unseen + 1, looks + 1
    for pid in stopped:
        with suppress(OSError):
            if process_tag.tag(pid) == tag:
                os.kill(pid, signal.SIGKILL)
    return len(stopped)


def _stops(pid: int, tag: int, stopped: Collection[int], own: int) -> bool:
    """At once: it may live for a millisecond only. What waits to be reaped still has its tag."""
    if pid in stopped or pid == own or process_tag.tag(pid) != tag:
        return False
    with suppress(OSError):
        os.kill(pid, signal.SIGSTOP)
        return (PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


def end_all(look: Callable[[], Collection[psutil.Process]], reap: Callable[[], None], within_s: float) -> list[psutil.Process]:
    """Until none is left; those that are left all the same: of another user, or waiting for a disk that does not answer."""
    late = time.monotonic() + within_s
    while end(look):
        reap()
        if time.monotonic() > late:
            return list(look())
        time.sleep(PAUSE_S)
    return []
