"""Where a row came from: its sources, its date, and which of its values nobody printed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Fact:
    """Provenance of one row. `inferred` names the fields that were derived or assigned rather than read."""

    sources: tuple[str, ...]  # ids in data/sources.csv, or a plain reference for a user's own rows
    as_of: str  # ISO date, or as much of one as is known: 2025, 2025-04, 2025-04-24
    inferred: tuple[str, ...] = ()
    notes: str = ""

    @property
    def day(self) -> str:
        """The date in full: of a month or a year its first day."""
        year, month, day = (*self.as_of.split("-"), "01", "01")[:3]
        return f"{year}-{month}-{day}"

    def age_days(self, today: date) -> int:
        return max((today - date.fromisoformat(self.day)).days, 0) if self.as_of else 0


UNKNOWN = Fact((), "")


class Source(NamedTuple):
    """Where a fact was read, and when."""

    id: str
    reference: str
    date: str
    date_kind: str  # copy: the dated copy that was read; read-by: undated there, read on or before this day
