"""Counts by recursion: one thread, no arrays."""

import os


def count(n: int) -> int:
    return n if n < 2 else count(n - 1) + count(n - 2)


for _ in range(int(os.environ.get("STEPS", 10**12))):
    count(22)
