"""Which process is which: an id is given anew, so a process is known by its id and by when it started."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path


def identity(pid: int) -> str | None:
    """What no other process will ever share with it: when it started, and since which boot. None: it does not live."""
    try:
        if sys.platform == "linux":
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            return None if fields[0] in "ZX" else f"{_boot()}:{fields[19]}"  # the clock may be set; ticks since boot stay
        return _identity_by_psutil(pid)
    except (OSError, IndexError, ValueError, OverflowError):
        return None


def _identity_by_psutil(pid: int) -> str | None:
    import psutil  # a list of jobs asks for this, and it takes a moment to import

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.1f}"
    except psutil.Error:
        return None


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def lives(pid: object, recorded: object) -> bool:
    """Whether a process that was recorded is still the one that has this id."""
    return isinstance(pid, int) and pid > 0 and recorded is not None and identity(pid) == recorded


def kill(pid: int, recorded: str) -> bool:
    """Ends that process and no other, also when it is stopped; whether it could be told to."""
    handle = None
    try:
        if sys.platform == "linux":
            with suppress(OSError):  # of an old kernel
                handle = os.pidfd_open(pid)  # means this process, whoever gets its number later
        if not lives(pid, recorded):
            return False
        if handle is None:
            os.kill(pid, signal.SIGKILL)
        else:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except OSError:  # another user's, or it went by itself
        return False
    finally:
        if handle is not None:
            os.close(handle)
