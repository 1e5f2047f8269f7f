"""What day it is: the one place that asks. `CHIPWISE_TODAY` pins it, so that output can be compared day after day.

And the clock for durations, which nobody sets.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, date, datetime

from chipwise.errors import BadInput
from chipwise.job.clock import boottime as boottime

_pinned: date | None = None  # of this process alone: what it starts lives today


def pin(day: str) -> None:
    """Lets today be another day, for this process."""
    global _pinned
    _pinned = _day("--as-of", day, "Write it like 2026-11-15.")


def pinned() -> date | None:
    """The day that `pin` set."""
    return _pinned


def today() -> date:
    return real_today() if _pinned is None else _pinned


def real_today() -> date:
    """Whatever day `pin` set."""
    stated = os.environ.get("CHIPWISE_TODAY")
    return _day("CHIPWISE_TODAY", stated, "Write it like 2026-11-15, or unset it.") if stated else datetime.now(UTC).date()


def _day(name: str, text: str, remedy: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{name} is {text[:40]!r}, which is not a date.", remedy=remedy) from None


def in_boottime(moment: float) -> float:
    """A time of day, such as the one until which something must leave, as a moment of the clock that nobody sets."""
    return boottime() + moment - time.time()
