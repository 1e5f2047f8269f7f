"""How long to work between two checkpoints: the optimum of Young and Daly, without arrays.

The same as `chipwise.money.spot.best_interval_s` (which has the sources and the derivation); written again for single numbers
because training code must be able to import it without NumPy. A test holds the two against each other.
"""

from __future__ import annotations

import math

DEFAULT_PER_HOUR = 0.05  # one interruption in 20 hours: spot GPUs in demand lie above it, quiet pools far below
_SECONDS = 3600.0


def best_interval_s(save_s: float, mean_time_s: float) -> float:
    """Root of (1 - y) exp(y) = exp(-c), with y = interval / M, c = save / M; M is the mean time between interruptions."""
    c = save_s / mean_time_s
    if c < 1e-8:
        return math.sqrt(2 * c) * mean_time_s
    y = _daly(c) if c < 2 else 1 - math.exp(-1 - c)
    y = min(max(y, 1e-300), 1 - 1e-16)
    for _ in range(3):
        missing = math.log1p(-y) + y + c
        y = min(max(y + missing * (1 - y) / y, y / 2), (1 + y) / 2, 1 - 1e-16)
    return y * mean_time_s


def _daly(c: float) -> float:
    half = c / 2
    return math.sqrt(2 * c) * (1 + math.sqrt(half) / 3 + half / 9) - c


def interval_s(save_s: float, interruptions_per_hour: float) -> float:
    """Seconds between checkpoints; endless where nothing interrupts (then only the last one is written)."""
    mean_time_s = _SECONDS / interruptions_per_hour if interruptions_per_hour > 0 else math.inf
    if mean_time_s == math.inf:  # also where it is too long for a number
        return math.inf
    return max(best_interval_s(max(save_s, 1e-6), mean_time_s), save_s)
