"""When requests of a load test are sent: instants in seconds from its start, decided before it starts.

Arrivals do not wait for answers (an open loop): a slow service gets its next requests on time, and their waiting counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import BadInput

Floats = NDArray[np.float64]
MOST_REQUESTS = 50_000_000


def constant(per_s: float, duration_s: float) -> Floats:
    return np.arange(_count(per_s, duration_s), dtype=np.float64) / per_s


def poisson(per_s: float, duration_s: float, chance: np.random.Generator) -> Floats:
    """Independent arrivals: for a given number, they are uniform over the time."""
    _count(per_s, duration_s)
    return np.sort(chance.uniform(0.0, duration_s, int(chance.poisson(per_s * duration_s))))


def bursty(per_s: float, duration_s: float, burstiness: float, chance: np.random.Generator) -> Floats:
    """Gamma-distributed gaps, whose variance is `burstiness` times that of independent arrivals."""
    if burstiness <= 0.0:
        raise BadInput(f"Burstiness is a ratio of variances above 0; {burstiness:g} is not.")
    count = _count(per_s, duration_s)
    shape = 1.0 / burstiness
    drawn = count + 10 * int(np.sqrt(count * burstiness)) + 10
    times = np.cumsum(chance.gamma(shape, 1.0 / (per_s * shape), drawn))
    return times[times < duration_s]


def replayed(times_s: Sequence[float] | Floats, speed: float = 1.0) -> Floats:
    """Recorded arrivals, from the first on, `speed` times as fast."""
    times = np.sort(np.asarray(times_s, dtype=np.float64))
    if not times.size or not np.all(np.isfinite(times)) or speed <= 0.0:
        raise BadInput("A recording needs at least one arrival, finite times and a speed above 0.")
    return np.asarray((times - times[0]) / speed)


def _count(per_s: float, duration_s: float) -> int:
    if not 0.0 < per_s * duration_s <= MOST_REQUESTS:
        raise BadInput(f"A load test has 1 to {MOST_REQUESTS:,} requests; {per_s:g}/s for {duration_s:g} s is not that.")
    return max(1, round(per_s * duration_s))
