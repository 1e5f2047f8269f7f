"""Intervals: how far measurements that were left out of a fit lay from its prediction, by how much the fit knew.

Method (split conformal in bins, Vovk's Mondrian form): in cross-validation each left-out row has a residual
r = log(measured seconds / predicted seconds) and a spread, the standard deviation that the pooled factors leave open for
it. Rows of one kind of answer (and of one class of provenance, written `kind|class`, where there are rows enough) are sorted by
spread into bins; in each bin the 10th and 90th percentile of r, taken from the outer side for small samples, are the interval
of later rows with such a spread. Beyond the largest spread that was seen they grow in proportion to it. So a chip that was
never seen has a wide interval because rows of left-out chips were far off, not because we say so. Rows are left out by whole
sources, and a source with many rows counts less for each: the interval is meant for a source that nobody saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chipwise.perf.arrays import Array, Coded, Index

LEVELS = (0.1, 0.9)
FEWEST = 40  # rows in a bin
MOST_GROWN = 3.0  # times the widest interval that was seen


@dataclass(frozen=True)
class Band:
    """One kind of answer: bins by spread, each with its percentiles of log(measured / predicted) in seconds."""

    edges: tuple[float, ...]  # upper edges; the last is the largest spread that was seen, or infinity
    low: tuple[float, ...]
    high: tuple[float, ...]
    rows: tuple[int, ...]

    def limits(self, spread: Array) -> tuple[Array, Array]:
        at, grown = self._bin(spread), np.clip(spread / self.edges[-1], 1.0, MOST_GROWN)
        return np.array(self.low)[at] * grown, np.array(self.high)[at] * grown

    def factors(self, spread: Array) -> tuple[Array, Array]:
        """The same as factors on the predicted seconds."""
        bins = self._bin(spread)
        low, high = self._factors
        if len(spread) and spread.max() > self.edges[-1]:
            return tuple(np.exp(one) for one in self.limits(spread))  # type: ignore[return-value]
        return low.take(bins), high.take(bins)

    def _bin(self, spread: Array) -> Index:
        return self._edges.searchsorted(spread)

    @cached_property
    def _edges(self) -> Array:
        return np.array(self.edges[:-1], dtype=np.float64)

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        return np.exp(np.array(self.low)), np.exp(np.array(self.high))


WIDE = Band((np.inf,), (-0.9,), (0.9,), (0,))  # where nothing was measured


def calibrate(spread: Array, residual: Array, bins: int = 6) -> Band:
    """Bins of about equal size; widths are made to rise with the spread, as they must where it means something."""
    if len(residual) < 8:
        return WIDE
    count = int(np.clip(len(residual) // FEWEST, 1, bins))
    order = np.argsort(spread, kind="stable")
    edges, low, high, sizes = [], [], [], []
    for members in np.array_split(order, count):
        edges.append(float(spread[members[-1]]))
        values = np.sort(residual[members])
        low.append(float(outer(values, LEVELS[0])))
        high.append(float(outer(values, LEVELS[1])))
        sizes.append(len(members))
    low, high = [-value for value in rising([-value for value in low], sizes)], rising(high, sizes)
    return Band((*edges[:-1], np.inf), tuple(low), tuple(high), tuple(sizes))


def rising(values: Sequence[float], weights: Sequence[int]) -> list[float]:
    """The nearest values that never fall (pool adjacent violators): neighbours out of order share their mean."""
    pools: list[tuple[float, int, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pools.append((float(value), int(weight), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, wa, na), (b, wb, nb) = pools[-2:]
            pools[-2:] = [((a * wa + b * wb) / (wa + wb), wa + wb, na + nb)]
    return [value for value, _, count in pools for _ in range(count)]


def outer(ordered: Array, share: float) -> float:
    """The percentile of a sample, one rank further out than the plain one, as conformal prediction asks."""
    n = len(ordered)
    if share < 0.5:
        return float(ordered[max(int(np.floor((n + 1) * share)) - 1, 0)])
    return float(ordered[min(int(np.ceil((n + 1) * share)) - 1, n - 1)])


def limits(bands: Mapping[str, Band], kind: Coded, spread: Array) -> tuple[Array, Array]:
    """Factors on the predicted seconds: 10th and 90th percentile."""
    if len(kind) == 1:
        return _band_named(bands, kind.name_at(0)).factors(spread)
    if len(spread) == 1:
        spread = np.broadcast_to(spread, (len(kind),))
    low, high = np.empty(len(spread)), np.empty(len(spread))
    for index, name in enumerate(kind.names):
        rows = kind.index == index
        if rows.all():
            return _band_named(bands, name).factors(spread)
        if rows.any():
            low[rows], high[rows] = _band_named(bands, name).factors(spread[rows])
    return low, high


def _band_named(bands: Mapping[str, Band], name: str) -> Band:
    """Of a kind within a class of provenance, or of the kind alone."""
    return bands.get(name) or bands.get(name.split("|", 1)[0]) or WIDE


def to_rows(bands: Mapping[str, Band]) -> list[dict[str, str]]:
    return [
        {"kind": kind, "spread_up_to": f"{edge:.5g}", "low": f"{low:.5g}", "high": f"{high:.5g}", "rows": str(count)}
        for kind, band in sorted(bands.items())
        for edge, low, high, count in zip(band.edges, band.low, band.high, band.rows, strict=True)
    ]


def from_rows(rows: Sequence[Mapping[str, str]]) -> dict[str, Band]:
    grouped: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        grouped.setdefault(row["kind"], []).append(row)
    return {
        kind: Band(
            tuple(float(row["spread_up_to"]) for row in members),
            tuple(float(row["low"]) for row in members),
            tuple(float(row["high"]) for row in members),
            tuple(int(row["rows"]) for row in members),
        )
        for kind, members in grouped.items()
    }
