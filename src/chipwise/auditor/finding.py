"""What an audit gives: each objection with its place and its mend."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Weight(StrEnum):
    HIGH = "high"  # somebody can get in, or money or work is lost
    MEDIUM = "medium"  # it will hurt one day
    LOW = "low"  # a habit worth having


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    weight: Weight
    path: str
    line: int
    what: str
    fix: str
    also: tuple[tuple[str, int], ...] = ()  # path and line of what it contradicts, or of the value behind it

    @property
    def page(self) -> str:
        """Where the rule is explained."""
        return f"docs/reference/audit-rules.md#{self.rule}"
