"""A clock for durations, which nobody sets: all processes of a machine have the same one until it starts anew."""

from __future__ import annotations

import sys
import time


def boottime() -> float:
    """Seconds that only ever grow, also while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()
