"""How long a test waits for what must come: much longer than it takes, since machines that run tests may be slow and shared.

A test that waits so passes as soon as the thing is there; only a fault makes it wait to the end.
"""

from __future__ import annotations

import time

FACTOR = 5.0
_LOOP = 100_000
_LOOP_S = 0.009  # of CPU, on a core of the kind that limits are written for


def deadline(seconds: float) -> float:
    """By the monotonic clock; `seconds` on a machine that has nothing else to do."""
    return time.monotonic() + FACTOR * seconds


def slowness() -> float:
    """How many times as long this machine takes now, at least 1: limits of CPU time are for an ordinary core."""
    times = []
    for _ in range(3):
        start, total = time.process_time(), 0
        for number in range(_LOOP):
            total += number * number
        times.append(time.process_time() - start)
    return max(min(times) / _LOOP_S, 1.0)
