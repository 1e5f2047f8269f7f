"""A cost is a sum of named lines, each with how it was reckoned, so that any total can be taken apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum


@dataclass(frozen=True, slots=True)
class Line:
    name: str  # compute, storage, transfer, restarts, ...
    usd: float
    how: str = ""  # "8.2 h x 2 machines x $12.30/h"


@dataclass(frozen=True, slots=True)
class Cost:
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Cost:
        """Lines of one name are joined; those of nothing are left out."""
        joined: dict[str, Line] = {}
        for line in lines:
            known = joined.get(line.name)
            if known is not None:
                formula = "; ".join(text for text in (known.how, line.how) if text)
                joined[line.name] = Line(line.name, known.usd + line.usd, formula)
            elif line.usd:
                joined[line.name] = line
        return cls(tuple(joined.values()))

    @property
    def usd(self) -> float:
        return fsum(line.usd for line in self.lines)

    @property
    def terms(self) -> dict[str, float]:
        """USD by line."""
        return {line.name: line.usd for line in self.lines}

    def __add__(self, other: Cost) -> Cost:
        return Cost.of((*self.lines, *other.lines))
