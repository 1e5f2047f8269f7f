"""Numbers with their bands, and the verdict that a fixed rule gives them.

A rule looks at the values alone. It is asked three times: at the values, with every number at the low end of its band, and at
the high end; where the three disagree, the band covers a threshold and the verdict is "depends". So does a verdict that turns
over when an assumption is varied. What the values alone say is kept and shown beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

DEPENDS = "depends"
Rule = Callable[[Mapping[str, float]], str]


@dataclass(frozen=True, slots=True)
class Number:
    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Number:
        return cls(value, value, value)

    @property
    def spread(self) -> float:
        """Half the width of the band in logarithms."""
        return 0.5 * math.log(self.high / self.low) if self.low > 0 else 0.0

    def over(self, other: Number) -> Number:
        """The ratio; errors of the two are taken as independent, so their logarithms add in quadrature."""
        ratio, width = self.value / other.value, math.hypot(self.spread, other.spread)
        return Number(ratio, ratio * math.exp(-width), ratio * math.exp(width))

    def saving(self) -> Number:
        """Of a ratio of costs."""
        return Number(1 - self.value, 1 - self.high, 1 - self.low)

    def times(self, factor: float) -> Number:
        return Number(self.value * factor, self.low * factor, self.high * factor)

    def shown(self, form: str = ".2f") -> str:
        if self.low == self.high:
            return f"{self.value:{form}}"
        return f"{self.value:{form}} ({self.low:{form}} to {self.high:{form}})"


@dataclass(frozen=True, slots=True)
class Table:
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A claim put to the test."""

    tables: tuple[Table, ...]
    plain: str  # by the values alone
    verdict: str
    why: str  # what made it so, in one sentence
    hangs: tuple[str, ...]  # each assumption, varied once
    sources: str
    nearest: tuple[str, ...] = ()  # what of the claim's own text could not be computed as written, and what was instead


@dataclass(frozen=True, slots=True)
class Varied:
    """An assumption changed, and the numbers with it; None: it cannot be put into numbers, and `told` says why."""

    told: str
    numbers: Mapping[str, Number] | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    plain: str
    verdict: str
    why: str
    hangs: tuple[str, ...] = field(default=())


def judge(rule: Rule, numbers: Mapping[str, Number], varied: Sequence[Varied] = ()) -> Judged:
    plain = rule({name: one.value for name, one in numbers.items()})
    ends = [rule({name: getattr(one, end) for name, one in numbers.items()}) for end in ("low", "high")]
    hangs, turned = [], []
    for change in varied:
        if change.numbers is None:
            hangs.append(f"{change.told}: not varied.")
            continue
        found = rule({name: one.value for name, one in change.numbers.items()})
        middle = median(one.value for one in change.numbers.values()) if change.numbers else math.nan
        hangs.append(f"{change.told}: {found} (median {middle:.2f}).")
        if found != plain:
            turned.append(change.told)
    if turned:
        return Judged(plain, DEPENDS, f"{plain} by the values, and it turns over with: {'; '.join(turned)}", tuple(hangs))
    if set(ends) != {plain}:
        told = f"{plain} by the values, {ends[0]} at the low ends of the bands, {ends[1]} at the high ends"
        return Judged(plain, DEPENDS, told, tuple(hangs))
    sure = all(one.low == one.high for one in numbers.values())
    return Judged(plain, plain, "by values that have no band here" if sure else "the same over the whole band", tuple(hangs))


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def every(values: Mapping[str, float], test: Callable[[float], bool]) -> bool:
    return bool(values) and all(map(test, values.values()))


def middle(values: Mapping[str, float]) -> float:
    return median(values.values()) if values else math.nan


def outcome(tables: Sequence[Table], found: Judged, sources: str, nearest: Sequence[str] = ()) -> Outcome:
    return Outcome(tuple(tables), found.plain, found.verdict, found.why, found.hangs, sources, tuple(nearest))
