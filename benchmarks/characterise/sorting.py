"""Sorts whole numbers."""

import numpy as np

rng = np.random.default_rng(0)
while True:
    np.sort(rng.integers(0, 2**40, 500_000))
