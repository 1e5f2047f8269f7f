"""How long until several spot machines are there at once.

n machines that come and go independently are all there with p^n, and none with (1 - p)^n; n that come and go together with p
and 1 - p. Between them n count as m = n^g independent ones. Traces that asked for n machines say how often all were there and
how often at least one: from both follow p and m, so g = ln m / ln n. Machines of one chip come and go together (g 0.02 and
0.05), those of eight nearly alone (0.68, 0.77, and twice all four were never there: at least 1). The median counts, between
these sizes by the logarithm of the number of chips, and beyond them the nearer one.

The wait of a request for all at once. One machine is absent for a share a of the time and is then waited for h hours on
average, exponentially; the last of m comes after

    mean = h * integral from 0 to 1 of (1 - (1 - a x)^m) / x dx          absent = 1 - (1 - a)^m

Nobody pays for machines while others are missing: who asks for all or none gets none before.

After a loss the others can be lost, too, before a new one comes. One machine is lost at a rate r and comes back after w on
average, so it is there 1/(1 + r w) of the time, m of them (1 + r w)^-m; they are together for 1/(m r) on average, and so
apart for

    ((1 + r w)^m - 1) / (m r)

which is w for one. With the rates of the followed 8 x A100 four count as 3.4 and are all there a fifth of the time (seen: 0.19,
0.30 and twice never).

A slice of many hosts is given and taken back whole, and no trace is of one. Two sizes of a machine with one chip, in one zone
and the same weeks, say how losses grow with the size: eight chips are lost 3.2 times as often as one, so with the size to the
power of 0.55 (`growth`, the median of four pairs), and are as long away. Larger ones count as so many machines of eight
chips, to that power.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import log
from statistics import median

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.price_tables import Interruption

Floats = NDArray[np.float64]

_ALL = re.compile(r"fraction of probes with all (\d+)")
_SIZE = re.compile(r".+ x(\d+)(?: .*)?")
_ONE_SIZE = re.compile(r"(?P<chip>.+?) x(?P<chips>\d+)")
_HOPELESS = 50.0  # exponents beyond which they are never together again
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_HALVINGS = 60


def independence(rows: Iterable[Interruption]) -> dict[float, float]:
    """g by the number of chips of a machine."""
    rows = tuple(rows)
    present_shares = {_trace(row): row.value for row in rows if row.measure == "availability_share_any"}
    exponents: dict[float, list[float]] = {}
    for row in rows:
        number, size = _ALL.fullmatch(row.unit), _SIZE.fullmatch(row.machine_or_chip)
        at_least_one = present_shares.get(_trace(row))
        if row.measure == "availability_share_all" and row.value is not None and number and size and at_least_one is not None:
            exponents.setdefault(float(size[1]), []).append(_exponent(row.value, at_least_one, int(number[1])))
    return {size: median(values) for size, values in sorted(exponents.items())}


def alone_by_size(known: dict[float, float], chips: Floats) -> Floats:
    """g for machines of so many chips; 0 where no trace says, so that several count as one."""
    if not known:
        return np.zeros_like(chips)
    return np.interp(np.log(np.maximum(chips, 1.0)), np.log(list(known)), list(known.values()))


def growth(rows: Iterable[Interruption]) -> float:
    """The power of the number of chips with which losses grow; 0 where no trace says."""
    pairs: dict[tuple[str, str, str, str], dict[float, float]] = {}
    for row in rows:
        if row.measure == "loss_rate" and row.value and (size := _ONE_SIZE.fullmatch(row.machine_or_chip)):
            place = (row.provider, row.region_or_zone, size["chip"], row.period)
            pairs.setdefault(place, {})[float(size["chips"])] = row.value
    exponents = [
        log(rates[max(rates)] / rates[min(rates)]) / log(max(rates) / min(rates)) for rates in pairs.values() if len(rates) > 1
    ]
    return min(max(median(exponents), 0.0), 1.0) if exponents else 0.0


def all_back(rate_per_s: Floats, wait_s: Floats, counted: Floats) -> Floats:
    """Seconds after a loss until all of `counted` independent machines are there again."""
    rate = np.maximum(rate_per_s, 1e-12)
    grown: Floats = np.expm1(np.minimum(counted * np.log1p(rate * wait_s), _HOPELESS)) / (counted * rate)
    return grown


def all_at_once(absent: Floats, hours: Floats, counted: Floats) -> tuple[Floats, Floats]:
    """(share of the time in which not all of `counted` independent machines are there, hours waited on average then)."""
    x = (_NODES + 1.0) / 2
    missing = 1.0 - (1.0 - absent[:, None] * x) ** counted[:, None]
    mean = hours * ((missing / x) @ (_WEIGHTS / 2))
    any_absent = 1.0 - (1.0 - absent) ** counted
    return any_absent, mean / np.maximum(any_absent, 1e-12)


def _exponent(all_share: float, any_share: float, number: int) -> float:
    """Of m in all_share = p^m and any_share = 1 - (1 - p)^m; all alone where all were never there."""
    if all_share <= 0 or any_share >= 1:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):  # ln p / ln all_share falls with p, ln(1 - p) / ln(1 - any_share) rises
        p = (low + high) / 2
        low, high = (p, high) if log(p) / log(all_share) > log(1 - p) / log(1 - any_share) else (low, p)
    m = log(all_share) / log((low + high) / 2)
    return min(max(log(m) / log(number), 0.0), 1.0)


def _trace(row: Interruption) -> tuple[str, str, str, str]:
    return row.provider, row.region_or_zone, row.machine_or_chip, row.period
