"""A number with its interval and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self

from chipwise.planner.explain.words import SELDOM
from chipwise.text import duration, number


@dataclass(frozen=True, slots=True)
class Interval:
    """A value that the 10th and the 90th percentile stand around. `terms`: seconds by what they go into, where known; of what a
    service answers, those of one answer under the load that was asked for."""

    value: float
    low: float
    high: float
    unit: str
    terms: Mapping[str, float] = field(default_factory=dict, hash=False)
    provenance: str = ""  # measured, carried, interpolated, between, other software or formula

    @classmethod
    def of(cls, view: Mapping[str, Any], unit: str = "") -> Self:
        """From a view's `value`, `low` and `high`."""
        return cls(
            value=view["value"],
            low=view["low"],
            high=view["high"],
            unit=unit or view.get("unit", ""),
            terms=dict(view.get("terms_s") or {}),
            provenance=view.get("provenance") or "",
        )

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __lt__(self, other: object) -> bool:
        """By the value in the middle."""
        return float(self) < float(other) if isinstance(other, Interval | Real) else NotImplemented

    def __le__(self, other: object) -> bool:
        return float(self) <= float(other) if isinstance(other, Interval | Real) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return float(self) > float(other) if isinstance(other, Interval | Real) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return float(self) >= float(other) if isinstance(other, Interval | Real) else NotImplemented

    def __str__(self) -> str:
        if self.unit.endswith("/s") and 0 < self.value < SELDOM and self.low > 0:  # one every so long
            middle, low, high = (duration(1 / end) for end in (self.value, self.high, self.low))
            span = f" ({low} to {high})" if self.low < self.high else ""
            return f"1 {self.unit.removesuffix('/s').removesuffix('s')} every {middle}{span}"
        shown = [number(end) for end in (self.value, self.low, self.high)]
        return f"{shown[0]} {self.unit}".rstrip() + (f" ({shown[1]} to {shown[2]})" if self.low < self.high else "")

    def __repr__(self) -> str:
        return f"Interval({self})"
