"""When a program has become steady: the earliest moment from which on its speed no longer drifts.

Steps: their durations from then on, in four blocks, have means within 10% of each other. Without steps: the cores in use, in
four blocks, differ by less than 15%, or by less than a tenth of a core.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median

from chipwise.observe.sample import Sample

BLOCKS = 4
STEP_TOLERANCE, CORE_TOLERANCE, CORE_FLOOR = 0.10, 0.15, 0.1
LEAST_STEPS = 8
LEAST_SAMPLES = 8
CANDIDATES = 12  # moments that are tried, from the start to the middle of what was seen


def steady_steps(times: Sequence[float]) -> float | None:
    """The time since which steps are steady; None: they are not yet."""
    durations = [end - start for start, end in pairwise(times)]
    for first in _starts(len(durations), LEAST_STEPS):
        if _level(durations[first:], STEP_TOLERANCE, 0.0):
            return times[first]
    return None


def steady_samples(samples: Sequence[Sample]) -> float | None:
    """The same by the cores that are in use."""
    seen = [(sample.at_s, cores) for sample in samples if (cores := sample.value("cpu")) is not None]
    for first in _starts(len(seen), LEAST_SAMPLES):
        if _level([cores for _, cores in seen[first:]], CORE_TOLERANCE, CORE_FLOOR):
            return seen[first][0]
    return None


def _starts(count: int, fewest: int) -> list[int]:
    if count < fewest:
        return []
    latest = min(count // 2, count - fewest)
    return sorted({round(latest * place / CANDIDATES) for place in range(CANDIDATES + 1)})


def _level(values: Sequence[float], tolerance: float, floor: float) -> bool:
    size = len(values) / BLOCKS
    means = [fmean(values[round(block * size) : round((block + 1) * size)]) for block in range(BLOCKS)]
    return max(means) - min(means) <= max(tolerance * fmean(means), floor)


def step_seconds(times: Sequence[float]) -> tuple[float, float, float]:
    """Mean seconds of a step, with what the means of eight blocks differ by as its interval."""
    mean = (times[-1] - times[0]) / (len(times) - 1)
    durations = [end - start for start, end in pairwise(times)]
    size = max(len(durations) / 8, 1.0)
    means = [fmean(part) for block in range(8) if (part := durations[round(block * size) : round((block + 1) * size)])]
    middle = median(means)
    return mean, min(mean, *means, middle), max(mean, *means, middle)
