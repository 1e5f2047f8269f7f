"""How lengths of requests vary, as far as a workload tells.

A length of which only a mean and a tail are known counts as lognormal, an assumption: recorded prompts and answers mostly
look so, with sigma between 0.5 and 1.2. Its sigma follows from the mean and the 95th percentile, else the median, else the
longest taken as one in a thousand; with a mean alone all requests are alike.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from chipwise.workload.demand import Length

LONGEST = 0.999  # percentile that a stated `max` stands for, where nothing else tells the spread
_NORMAL = NormalDist()


def spread(length: Length) -> tuple[float, str]:
    """Sigma of a lognormal with this mean and tail, and what it was taken from."""
    for value, share, name in ((length.p95, 0.95, "p95"), (length.p50, 0.5, "p50"), (length.max, LONGEST, "max")):
        if value is not None:
            return _sigma(length.mean, value, share), f"a lognormal through mean and {name}"
    return 0.0, "the mean alone: all alike"


def _sigma(mean: float, value: float, share: float) -> float:
    """ln(value / mean) = z s - s^2 / 2, the smaller root; a value that no lognormal reaches gives the steepest."""
    z, far = _NORMAL.inv_cdf(share), math.log(value / mean)
    inside = z * z - 2.0 * far
    if z == 0.0:
        return math.sqrt(max(-2.0 * far, 0.0))
    return max(z - math.sqrt(inside), 0.0) if inside > 0 else z
