"""The area of a circle by random points."""

import numpy as np

N = 500_000
rng = np.random.default_rng(0)
hits = 0
while True:
    x = rng.random(N)
    y = rng.random(N)
    hits += int((x * x + y * y <= 1.0).sum())
