"""The mean of four neighbours on a square grid, sweep after sweep."""

import numpy as np

N = 1024
grid = np.zeros((N, N))
grid[0] = 1.0
while True:
    grid[1:-1, 1:-1] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
