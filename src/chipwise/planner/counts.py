"""How many machines `limits.chip_count` leaves, for every kind of work.

Jobs choose among the numbers that are tried and the ends of their limits, which may lie between those; above `MOST_CHIPS`
they look where the limits allow more by name, or a deadline needs it (`more_chips`), up to `LARGEST_CHIPS`. Services take as
many as their load needs, and more where the limits ask for more.
"""

from __future__ import annotations

from functools import lru_cache

from chipwise.planner.fleet import COUNTS, MOST_CHIPS
from chipwise.workload.limits import Limits

LARGEST_CHIPS = 32768  # that are ever tried: four times the largest job of the measurements
_LARGER = (768, 1024, 1536, 2048, 3072, 4096)  # machines beyond COUNTS


def chip_limits(limits: Limits) -> tuple[int, int]:
    """The fewest and most chips at one time; where no most is stated, as many as are ever tried."""
    fewest = limits.chip_count.min or 1
    return fewest, limits.chip_count.max or max(MOST_CHIPS, fewest)


@lru_cache(maxsize=4096)  # few sizes of machines, and thousands of candidates
def machine_counts(chips: int, limits: tuple[int, int], *, least: int = 1, span: int = 1) -> tuple[int, ...]:
    """Numbers of machines with `chips` chips each to try for a job that `least` machines hold, `span` of them together."""
    first = least_machines(chips, limits, least)
    first += -first % span
    last = min(limits[1], LARGEST_CHIPS) // chips
    last -= last % span
    tried = {*COUNTS, *_LARGER} if limits[1] > MOST_CHIPS else {*COUNTS}
    ends = {first, last} if limits[1] != MOST_CHIPS and last <= max(tried) else {first}
    return tuple(sorted(count for count in tried | ends if first <= count <= last and count % span == 0))


def least_machines(chips: int, limits: tuple[int, int], needed: int = 1) -> int:
    """Machines with `chips` chips each where the work needs `needed` of them; the most is for the caller to keep."""
    return max(needed, -(-limits[0] // chips))
