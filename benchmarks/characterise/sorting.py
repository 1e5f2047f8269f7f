"""Sorts whole numbers."""

import os

import numpy as np

rng = np.random.default_rng(0)
for _ in range(int(os.environ.get("STEPS", 10**12))):
    np.sort(rng.integers(0, 2**40, 500_000))
