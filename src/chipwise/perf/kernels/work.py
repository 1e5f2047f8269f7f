"""What an estimate is made of: named times that add up to it, and how unsure the formula is.

Every formula of this package returns `Terms`. Times that hide each other (arithmetic behind memory traffic, decoding behind
encoding) go through `overlapped`, which keeps the largest whole and leaves of the others only what is not hidden, so that
the sum stays the estimate and the largest term is the bottleneck. Input is checked here too, by field name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import BadInput
from chipwise.perf.arrays import Array, Coded, Index, column
from chipwise.spelling import fold, nearest

Numbers = float | Sequence[float] | Array
Flags = NDArray[np.bool_]
Names = str | Sequence[str] | Coded
Z80 = 1.2816  # standard deviations from the middle to the ends of an interval that holds four cases in five


@dataclass(frozen=True, slots=True)
class Terms:
    """Named times in seconds, one column each; `relative` is the standard deviation of the estimate's logarithm."""

    names: tuple[str, ...]
    seconds: tuple[Array, ...]
    relative: Array

    @classmethod
    def of(cls, parts: Mapping[str, tuple[Array, Array | float]], shared_spread: Array | float = 0.0) -> Terms:
        """From each term's seconds and relative deviation; `shared_spread` is what all of them share, such as an unstated rate.

        The deviations of terms are taken to agree in sign (a weighted mean, not a root of squares): the cautious choice.
        """
        arrays = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for part in parts.values() for x in part))
        seconds, spreads = [np.atleast_1d(x) for x in arrays[::2]], [np.atleast_1d(x) for x in arrays[1::2]]
        total = sum(seconds, np.zeros_like(seconds[0]))
        usable = np.isfinite(total) & (total > 0)
        safe = np.where(usable, total, 1.0)
        weighted = sum(
            (np.where(usable, t, 0.0) / safe * s for t, s in zip(seconds, spreads, strict=True)), np.zeros_like(total)
        )
        relative = np.hypot(np.where(usable, weighted, np.max(spreads, axis=0)), shared_spread)
        return cls(tuple(parts), tuple(seconds), relative)

    @property
    def total(self) -> Array:
        return sum(self.seconds, np.zeros_like(self.relative))

    @property
    def low(self) -> Array:
        """Four cases in five lie between `low` and `high`."""
        return self.total * np.exp(-Z80 * self.relative)

    @property
    def high(self) -> Array:
        return self.total * np.exp(Z80 * self.relative)

    def __getitem__(self, name: str) -> Array:
        return self.seconds[self.names.index(name)]

    def bottleneck(self) -> Coded:
        """The name of each row's largest term; the first of those that are equal."""
        stacked = np.stack(np.broadcast_arrays(*self.seconds))
        return Coded(self.names, np.argmax(stacked, axis=0).astype(np.intp))

    def times(self, factor: Numbers) -> Terms:
        """The same work `factor` times over."""
        count = column(factor)
        # No work is no time, also where one piece of it could never be done.
        seconds = tuple(np.where(count == 0, 0.0, np.where(count == 0, 1.0, count) * part) for part in self.seconds)
        return Terms(self.names, seconds, self.relative + np.zeros_like(seconds[0]))

    def moved(self, factor: Array | float, relative: Array | float) -> Terms:
        """All times by a factor that was measured, and how unsure the estimate is then."""
        return Terms(self.names, tuple(factor * part for part in self.seconds), relative + np.zeros_like(self.relative))


def overlapped(*times: Array, sharpness: float = 4.0) -> tuple[Array, ...]:
    """Times that run at once, as terms whose sum is (sum of t^p)^(1/p): the largest, and a little more where others are close.

    The largest keeps all of its time; what the total exceeds it by is shared out among the others by their p-th powers.
    A time that is infinite makes the total so. `perf.arrays.soft_max` is the case of two.
    """
    stacked = np.stack(np.broadcast_arrays(*(np.asarray(t, dtype=np.float64) for t in times)))
    first = np.argmax(stacked, axis=0)
    top = np.max(stacked, axis=0)
    usable = np.isfinite(top) & (top > 0)
    ratio = np.where(usable, stacked, 0.0) / np.where(usable, top, 1.0)
    power = ratio**sharpness
    largest = np.arange(len(times)).reshape(-1, *([1] * first.ndim)) == first
    smaller = np.where(largest, 0.0, power)
    rest = np.sum(smaller, axis=0)
    excess = np.where(usable, top, 0.0) * np.expm1(np.log1p(rest) / sharpness)
    shared = excess * smaller / np.where(rest > 0, rest, 1.0)
    return tuple(np.where(largest, top, shared))


def pick(values: Sequence[float], index: Index | None = None) -> Array:
    """`values`, one per thing, as a column: all of them, or for each candidate the one that `index` says."""
    numbers = np.array(values, dtype=np.float64)
    return numbers if index is None else numbers[index]


def pick_names(values: Sequence[str], index: Index | None = None) -> Coded:
    coded = Coded.of(values)
    return coded if index is None else Coded(coded.names, coded.index[index])


def _bad_row(field: str, values: Array, good: Flags, allowed: str) -> BadInput:
    row = int(np.flatnonzero(~np.broadcast_to(good, values.shape))[0])
    position = f" (row {row} of {values.size})" if values.size > 1 else ""
    return BadInput(f"{field}: {values.flat[row]:g}{position} is not allowed.", remedy=f"Allowed: {allowed}.")


def at_least(field: str, values: Numbers, low: float, high: float = np.inf) -> Array:
    """`values` as a column of finite numbers, none below `low` nor above `high`."""
    numbers = column(values)
    good = np.isfinite(numbers) & (numbers >= low) & (numbers <= high)
    if not good.all():
        span = f"from {low:g} to {high:g}" if np.isfinite(high) else f"from {low:g} on"
        raise _bad_row(field, numbers, good, f"finite numbers {span}")
    return numbers


def positive(field: str, values: Numbers) -> Array:
    numbers = column(values)
    good = np.isfinite(numbers) & (numbers > 0)
    if not good.all():
        raise _bad_row(field, numbers, good, "finite numbers above 0")
    return numbers


def share(field: str, values: Numbers) -> Array:
    return at_least(field, values, 0.0, 1.0)


@lru_cache(maxsize=64)  # a plan of one chip after the other asks for the same few tables thousands of times
def _spellings(names: tuple[str, ...], also: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {fold(name): name for name in names} | {fold(name): meant for name, meant in also}


def allowed_name(field: str, value: str, allowed: Iterable[str], also: Mapping[str, str] | None = None) -> str:
    """The allowed name that `value` spells; case and separators do not count. `also` has further spellings."""
    names = tuple(allowed)
    known = _spellings(names, tuple((also or {}).items()))
    matched_name = known.get(fold(value))
    if matched_name is None:
        near = tuple(dict.fromkeys(known[fold(name)] for name in nearest(value, known)))
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise BadInput(f"{field}: {value[:60]!r} is not known.", remedy=f"Allowed: {', '.join(names)}.{hint}")
    return matched_name


def names_of(field: str, values: Names, allowed: Iterable[str], also: Mapping[str, str] | None = None) -> Coded:
    """A column of names, each of them allowed."""
    coded = values if isinstance(values, Coded) else Coded.of(values)
    names = tuple(allowed)
    return coded.map(lambda name: allowed_name(field, name, names, also))
