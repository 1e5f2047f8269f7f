"""The mean of four neighbours on a square grid, sweep after sweep."""

import os

import numpy as np

N = 1024
grid = np.zeros((N, N))
grid[0] = 1.0
for _ in range(int(os.environ.get("STEPS", 10**12))):
    grid[1:-1, 1:-1] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
