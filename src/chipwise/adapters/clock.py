"""What day it is: the one place that asks. `CHIPWISE_TODAY` pins it, so that output can be compared day after day.

And a clock for durations, which nobody sets: all processes of a machine have the same one until it starts anew.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, date, datetime

from chipwise.errors import BadInput


def today() -> date:
    pinned = os.environ.get("CHIPWISE_TODAY")
    if not pinned:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(pinned)
    except ValueError:
        raise BadInput(
            f"CHIPWISE_TODAY is {pinned[:40]!r}, which is not a date.", remedy="Write it like 2026-11-15, or unset it."
        ) from None


def boottime() -> float:
    """Seconds that only ever grow, also while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


def in_boottime(moment: float) -> float:
    """A time of day, such as the one until which something must leave, as a moment of the clock that nobody sets."""
    return boottime() + moment - time.time()
