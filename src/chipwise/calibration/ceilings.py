"""The most of a chip's stated peak that products of a whole step or pass were measured to reach, by architecture.

No interval's fast end is above it: what nobody ever measured is no likely outcome. An architecture of few rows, or of slow
software only, may reach what half of the others do.
"""

from __future__ import annotations

import numpy as np

from chipwise.calibration.crossvalidate import Sample
from chipwise.perf.model import ARCHITECTURE

FEWEST = 5  # rows that speak for an architecture
MOST = 1.0  # of a peak: rows above it state another precision than they ran in, or count other work


def best_shares(sample: Sample) -> dict[str, float]:
    """By architecture; those of which nothing is said have the family's best."""
    seconds = sample.question.time_of(sample.measured)
    share = np.broadcast_to(sample.question.nominal, seconds.shape) / seconds
    names = np.array(sample.question.levels[ARCHITECTURE[sample.family.name]].texts())
    used = (sample.weight > 0) & (share <= MOST)
    best = {
        str(name): float(share[used & (names == name)].max())
        for name in np.unique(names)
        if np.sum(used & (names == name)) >= FEWEST
    }
    usual = float(np.median(list(best.values())))
    return {name: max(value, usual) for name, value in best.items()}
