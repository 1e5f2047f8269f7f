"""Counts by recursion: one thread, no arrays."""


def count(n: int) -> int:
    return n if n < 2 else count(n - 1) + count(n - 2)


while True:
    count(22)
