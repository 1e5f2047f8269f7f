"""How long a test waits for what must come: much longer than it takes, since machines that run tests may be slow and shared.

A test that waits so passes as soon as the thing is there; only a fault makes it wait to the end.
"""

from __future__ import annotations

import time

FACTOR = 5.0


def deadline(seconds: float) -> float:
    """By the monotonic clock; `seconds` on a machine that has nothing else to do."""
    return time.monotonic() + FACTOR * seconds
