"""The share of a program that more threads divide, from its times with 1, 2, 4, ... of them.

    T(n) = T(1) ((1 - p) + p / n)                                                                    Amdahl 1967
By least squares of T(n) / T(1) over p. The interval is what an error of each time allows: that of the spread that was seen, and
at least 3%. Where threads cannot be set, p follows from the mean number c of cores in use on v: p = (1 - 1/c) / (1 - 1/v).
Limits: p is of the program as it is, on one machine, and counts what more threads cost (waiting, shared bandwidth) as serial.
"""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.observe.characterise.values import Bounded, Quantity
from chipwise.observe.sample import NoReading

LEAST_ERROR = 0.03


def parallel_share(seconds: Mapping[int, tuple[float, float, float]]) -> Quantity:
    """`seconds`: by number of threads, the time of the same work, its low and its high."""
    if 1 not in seconds or len(seconds) < 2:
        return NoReading("runs with different numbers of threads are needed, on two cores or more")
    alone = seconds[1][0]
    numerator = denominator = 0.0
    slack = LEAST_ERROR
    for threads, (value, low, high) in seconds.items():
        if threads == 1:
            slack = max(slack, (high - low) / (2 * value))
            continue
        gain = 1 - 1 / threads  # T(n) / T(1) = 1 - p gain
        numerator += gain * (1 - value / alone)
        denominator += gain * gain
        slack = max(slack, (high - low) / (2 * value))
    share = numerator / denominator
    largest_gain = 1 - 1 / max(seconds)
    half = 2 * slack / largest_gain
    runs = ", ".join(f"{threads} thread{'s' if threads > 1 else ''}" for threads in sorted(seconds))
    return Bounded(_bounded(share), _bounded(share - half), _bounded(share + half), f"runs with {runs}")


def share_of_cores(cores: float, vcpus: int) -> Quantity:
    """By how many cores it kept busy on average."""
    if vcpus < 2:
        return NoReading("the machine has one core only")
    busy = min(max(cores, 1.0), float(vcpus))
    share = (1 - 1 / busy) / (1 - 1 / vcpus)
    return Bounded(_bounded(share), _bounded(share - 0.2), _bounded(share + 0.2), "the cores that it kept busy, on average")


def _bounded(share: float) -> float:
    return min(max(share, 0.0), 1.0)
