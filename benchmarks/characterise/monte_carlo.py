"""The area of a circle by random points."""

import os

import numpy as np

N = 500_000
rng = np.random.default_rng(0)
hits = 0
for _ in range(int(os.environ.get("STEPS", 10**12))):
    x = rng.random(N)
    y = rng.random(N)
    hits += int((x * x + y * y <= 1.0).sum())
