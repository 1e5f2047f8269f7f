"""Products of square matrices in double precision, without end."""

import os

import numpy as np

N = 512
rng = np.random.default_rng(0)
left, right = rng.random((N, N)), rng.random((N, N))
for _ in range(int(os.environ.get("STEPS", 10**12))):
    product = left @ right
    left = product * (2.0 / N)
