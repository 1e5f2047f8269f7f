"""One notice, whoever gave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

SPARE_S = 5.0  # between the last moment for a job and the end of the machine: to write down how it ended


class Silent(Exception):
    """Nobody answered, or with nothing that can be understood. What was known before still holds."""


@dataclass(frozen=True, slots=True)
class Notice:
    reason: str
    deadline: float  # until when all must be saved
    event: str = ""  # what may be acknowledged when all have left; empty: nothing waits for that


class Cloud(Protocol):
    every_s: float  # between two looks

    def look(self) -> Notice | None:
        """What stands now; None: nothing. It may wait for news for a while. Raises Silent."""
        ...

    def acknowledge(self, notice: Notice) -> None:
        """All have left: the machine may go. Raises Silent."""
        ...
