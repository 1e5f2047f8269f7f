"""Requests by size: a grid over prompt and answer lengths, the share of each cell, and which goals each cell must keep.

Lengths are lognormal, with the sigma of `workload/lengths`; with a mean alone all requests are alike. Prompt and answer count
as independent where no recording pairs them. Every cell stands for its requests by their mean, and the cells together have the
stated mean.

A percentile over all requests does not ask the same of every cell: half of the requests may miss a median, and the long
ones will. Of what a goal lets miss, one half is spent on the largest requests, which are not held to it; the others are held
to it so much more strictly that the whole keeps it: with coverage W of the cells held to a goal at share p, each of them
must keep it at p / W.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.values.mix import Band, Bucket
from chipwise.workload.demand import Length
from chipwise.workload.lengths import spread

CELLS = 5  # of one length at most
MIN_CELL_SHARE = 0.02  # of all requests: a smaller cell joins its neighbour
_NARROW = 0.05  # sigma below which all lengths are one
_NORMAL = NormalDist()

Goals = Mapping[tuple[str, float], float]


def bands(length: Length) -> tuple[Band, ...]:
    """The lengths in at most `CELLS` bands, each twice as long as the one before or more."""
    sigma, _ = spread(length)
    longest = length.max
    if sigma < _NARROW:
        return (Band(length.mean, longest or length.mean, length.mean, 1.0),)
    mu = math.log(length.mean) - sigma * sigma / 2.0
    top = min(longest or math.inf, math.exp(mu + 3.1 * sigma))
    low = min(math.exp(mu - 2.0 * sigma), top / 4.0)
    step = max(2.0, (top / low) ** (1.0 / CELLS))
    count = max(math.ceil(math.log(top / low) / math.log(step) - 1e-9), 1)
    edges = [0.0, *(top / step**at for at in range(count - 1, 0, -1)), top]

    def below(x: float, shift: float) -> float:
        return _NORMAL.cdf((math.log(x) - mu - shift) / sigma) if x > 0 else 0.0

    shares = [below(b, 0.0) - below(a, 0.0) for a, b in pairwise(edges)]
    amounts = [below(b, sigma**2) - below(a, sigma**2) for a, b in pairwise(edges)]
    return _scaled(_merged(edges, shares, [length.mean * one for one in amounts]), length.mean)


def _merged(edges: Sequence[float], shares: Sequence[float], amounts: Sequence[float]) -> list[Band]:
    """Neighbours together until each has its least share; `amounts` are share times mean."""
    total = sum(shares)
    cells: list[tuple[float, float, float, float]] = []  # low, high, share, amount
    for (low, high), share, amount in zip(pairwise(edges), shares, amounts, strict=True):
        if cells and (cells[-1][2] < MIN_CELL_SHARE * total or share < MIN_CELL_SHARE * total):
            before = cells.pop()
            cells.append((before[0], high, before[2] + share, before[3] + amount))
        else:
            cells.append((low, high, share, amount))
    return [Band(max(low, 1.0), high, amount / share, share / total) for low, high, share, amount in cells if share > 0]


def _scaled(cells: list[Band], mean: float) -> tuple[Band, ...]:
    """Cut at the longest, the bands have lost a little of the mean: all get it back alike."""
    factor = mean / sum(one.mean * one.share for one in cells)
    means = [max(one.mean * factor, 1.0) for one in cells]
    return tuple(Band(one.low, max(one.high, at), at, one.share) for one, at in zip(cells, means, strict=True))


def grid(prompt: Length, answer: Length) -> tuple[Bucket, ...]:
    """Prompts and answers as independent."""
    return tuple(Bucket(one, two, one.share * two.share) for one in bands(prompt) for two in bands(answer))


def recorded(prompts: Array, answers: Array) -> tuple[Bucket, ...]:
    """Buckets of recorded requests, with prompt and answer as they came together. Cells without a request are none."""
    rows, columns = (_band_of(one) for one in (prompts, answers))
    buckets = []
    for row, column in sorted(set(zip(rows.tolist(), columns.tolist(), strict=True))):
        cell = (rows == row) & (columns == column)
        share = float(cell.mean())
        prompt, answer = (
            Band(float(part.min()), float(part.max()), float(part.mean()), share) for part in (prompts[cell], answers[cell])
        )
        buckets.append(Bucket(prompt, answer, share))
    return tuple(buckets)


def _band_of(values: Array) -> Array:
    """The band of every recorded length, by powers of at least two from the longest down."""
    top = float(values.max())
    low = max(float(np.quantile(values, MIN_CELL_SHARE)), 1.0)
    step = max(2.0, (top / low) ** (1.0 / CELLS))
    return np.minimum(np.floor(np.log(top / np.maximum(values, 1.0)) / math.log(step) + 1e-9), CELLS - 1.0)


def goals_by_bucket(buckets: Sequence[Bucket], goals: Goals) -> list[dict[tuple[str, float], float]]:
    """The goals of every bucket, so that all requests together keep `goals`."""
    bucket_goals: list[dict[tuple[str, float], float]] = [{} for _ in buckets]
    for (name, share), limit in goals.items():
        order = sorted(range(len(buckets)), key=lambda at: _largeness(buckets[at], name))
        wanted, covered, inside = (1.0 + share) / 2.0, 0.0, []
        for index in order:
            if covered >= wanted - 1e-12:
                break
            covered += buckets[index].share
            inside.append(index)
        strict = min(share / min(covered, 1.0), 0.9999)
        for index in inside:
            bucket_goals[index][name, max(strict, share)] = limit
    return bucket_goals


def _largeness(bucket: Bucket, name: str) -> tuple[float, float]:
    """What makes a goal hard: the prompt for a first token, the context for the next ones, the answer for all of it."""
    prompt, answer = bucket.prompt.mean, bucket.answer.mean
    return {"ttft": (prompt, answer), "tpot": (prompt + answer, answer)}.get(name, (answer, prompt))
