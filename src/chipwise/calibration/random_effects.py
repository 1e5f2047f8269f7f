"""How wide intervals must be: how much sources differ from each other, and rows of one source among themselves.

A residual of row j of a source i that the fit has not seen is r_ij = m + b_i + e_ij: a shift that all sources share, what
sets this source apart, and the rest. Of every kind of answer, and within it of every class of provenance, the spread t of the
b_i and s of the e_ij are estimated robustly (from the 80th percentile of their absolute values, as intervals are for four of
five), and shrunk towards those of their kin by the number of sources that speak: with n of them a share of
(n - 1) / (n - 1 + PRIOR) is their own. A class takes from its kind, a kind from kinds like it. The shift moves from that of its
kin by as much as n sources can tell it from chance. The interval is m -+ z sqrt(t^2 + s^2), with z of Student's t for as many
sources, times what it takes to hold four times of five on folds that had no part in it. So it is narrow where sources agree and
wide where they do not, and never narrower further away from measurements (classes out of order share their mean).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array
from chipwise.perf.bands import Band, rising
from chipwise.perf.seen import CLASSES

PRIOR = 4.0  # sources that a kind's kin count for
CROWD = 0.4  # a source of n rows counts n ** (1 - CROWD) times one row
SHARE, DEVIATIONS = 0.8, 1.2816  # of rows inside, and what that is in standard deviations
DRAWN = (0.7, 1.05)  # how far intervals may be drawn in or out to hold their share; more would count few sources twice
FEWEST_ROWS = 20  # that such a judgement takes
SHIFTS_APART = 0.15  # standard deviation of the shifts of kinds and classes, which fits know nothing of
KINDS_APART = 0.5  # standard deviation of kinds of answers that are kin, shared out over the sources of the one
NARROWEST = 0.03  # what an interval has on either side
_OWN, _NEURON = " own", " neuron"
_KIN = {"prefill": "first token unloaded", "decode": "token", "at once": "throughput"}
Chosen = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns: rows that were left out, each from a fit without its source."""

    kind: NDArray[np.str_]
    near: NDArray[np.str_]
    source: NDArray[np.str_]
    fold: NDArray[np.intp]
    residual: Array
    spread: Array


class Effects(NamedTuple):
    shift: float
    between: float  # standard deviation of sources
    row_spread: float  # and of the rows of one
    sources: float = 0.0

    @property
    def half_width(self) -> float:
        return max(_student(max(self.sources - 1.0, 0.0) + PRIOR) * float(np.hypot(self.between, self.row_spread)), NARROWEST)


def _student(degrees: float) -> float:
    """The 90th percentile of Student's t (Cornish and Fisher's expansion, to 1% from 4 degrees on)."""
    z = DEVIATIONS
    return z + (z**3 + z) / (4.0 * degrees) + (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / (96.0 * degrees**2)


UNKNOWN = Effects(0.0, 0.6, 0.3)  # where nothing was measured: factors of 2.4 either way


def kin_of(kind: str) -> str:
    plain = kind.removesuffix(_OWN).removesuffix(_NEURON)
    return _KIN.get(plain, plain)


def intervals(table: Rows, rows: Chosen) -> dict[str, Band]:
    """By kind, and by kind and class (`kind|class`), from `rows`."""
    effects = _effects(table, rows)
    drawn = _drawn(table, rows)
    by_name: dict[str, Band] = {}
    for kind in sorted({str(name) for name in table.kind}):
        members = rows & (table.kind == kind)
        widest = float(table.spread[members].max()) if members.any() else np.inf
        for name in ("", *CLASSES):
            effect = effects[kind, name]
            half, key = effect.half_width * drawn.get(kind, 1.0), f"{kind}|{name}" if name else kind
            low, high = min(effect.shift - half, -NARROWEST), max(effect.shift + half, NARROWEST)
            counted = members & (table.near == name) if name else members
            by_name[key] = Band((widest,), (low,), (high,), (int(counted.sum()),))
    return by_name


def _effects(table: Rows, rows: Chosen) -> dict[tuple[str, str], Effects]:
    """Of every kind and class; the class of a kind as a whole is empty."""
    kin = np.array([kin_of(str(kind)) for kind in table.kind])
    by_kin = {name: _shrunk(table, rows & (kin == name), UNKNOWN) for name in sorted(set(kin))}
    effects: dict[tuple[str, str], Effects] = {}
    for kind in sorted({str(name) for name in table.kind}):
        members = rows & (table.kind == kind)
        of_kind = _shrunk(table, members, by_kin[kin_of(kind)])
        if kind.removesuffix(_OWN) != kin_of(kind):  # what is lent by kin may not hold for it
            apart = KINDS_APART / np.sqrt(of_kind.sources + 1.0)
            of_kind = of_kind._replace(between=float(np.hypot(of_kind.between, apart)))
        by_class = [_shrunk(table, members & (table.near == name), of_kind) for name in CLASSES]
        counts = [len(set(table.source[members & (table.near == name)])) + 1 for name in CLASSES]
        widths = rising([one.half_width for one in by_class], counts)
        effects[kind, ""] = of_kind
        for name, effect, half in zip(CLASSES, by_class, widths, strict=True):
            grown = half / effect.half_width
            effects[kind, name] = effect._replace(between=effect.between * grown, row_spread=effect.row_spread * grown)
    return effects


def _shrunk(table: Rows, rows: Chosen, kin: Effects) -> Effects:
    names, place, counts = np.unique(table.source[rows], return_inverse=True, return_counts=True)
    if not len(names):
        return kin
    residual = table.residual[rows]
    middle = np.array([np.median(residual[place == at]) for at in range(len(names))])
    size = counts.astype(np.float64) ** (1.0 - CROWD)
    repeated = counts[place] >= 3
    own = _share(len(names))
    own_shift = _percentile(middle, size, 0.5)
    apart = mixed(own, _percentile(np.abs(middle - own_shift), size, SHARE) / DEVIATIONS, kin.between)
    trusted = SHIFTS_APART**2 / (SHIFTS_APART**2 + apart**2 / len(names))
    shift = kin.shift + trusted * (own_shift - kin.shift)
    between = _percentile(np.abs(middle - shift), size, SHARE) / DEVIATIONS
    row_spread = kin.row_spread
    if repeated.any():
        rest = np.abs(residual - middle[place])[repeated]
        row_spread = _percentile(rest, (size / counts)[place][repeated], SHARE) / DEVIATIONS
    unsure = (1.0 - trusted) * SHIFTS_APART**2  # what the sources leave open about the shift
    return Effects(
        shift=shift,
        between=float(np.sqrt(mixed(own, between, kin.between) ** 2 + unsure)),
        row_spread=mixed(own, row_spread, kin.row_spread),
        sources=float(len(names)),
    )


def _share(sources: int) -> float:
    """What a deviation takes from its own sources: one of them is spent on the middle, so a single one says nothing."""
    return (sources - 1.0) / (sources - 1.0 + PRIOR)


def mixed(own: float, mine: float, theirs: float) -> float:
    return float(np.sqrt(own * mine**2 + (1.0 - own) * theirs**2))


def _drawn(table: Rows, rows: Chosen) -> dict[str, float]:
    """Times the width of every kind that its rows need, each fold against what the others say."""
    needed = np.full(len(rows), np.nan)
    for number in np.unique(table.fold[rows]):
        out = rows & (table.fold == number)
        effects = _effects(table, rows & ~out)
        for row in np.flatnonzero(out):
            effect = effects[str(table.kind[row]), str(table.near[row])]
            needed[row] = abs(table.residual[row] - effect.shift) / effect.half_width
    drawn: dict[str, float] = {}
    for kind in sorted({str(name) for name in table.kind}):
        members = rows & (table.kind == kind)
        if members.sum() >= FEWEST_ROWS:
            _, place, counts = np.unique(table.source[members], return_inverse=True, return_counts=True)
            weight = counts[place].astype(np.float64) ** -CROWD
            drawn[kind] = float(np.clip(_percentile(needed[members], weight, SHARE), *DRAWN))
    return drawn


def _percentile(values: Array, weight: Array, share: float) -> float:
    """Of values that count differently, between neighbours where it falls between them."""
    order = np.argsort(values)
    total = np.cumsum(weight[order])
    return float(np.interp(share, (total - 0.5 * weight[order]) / total[-1], values[order]))
