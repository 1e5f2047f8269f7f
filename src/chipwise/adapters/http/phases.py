"""The phases of a request, and the client that waits for its answer."""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

CLIENT_GONE = 499  # in logs, as nginx writes it; nobody gets it


class Client(Protocol):
    def write(self, data: bytes) -> None: ...

    def answered(self, keeps_alive: bool) -> None:
        """The answer is complete, or ends here."""
        ...


class Phase(Enum):
    READING = auto()
    QUEUED = auto()
    CONNECTING = auto()
    SENT = auto()
    ANSWERING = auto()
    FINISHED = auto()


READING, QUEUED, CONNECTING, SENT, ANSWERING, FINISHED = Phase  # looking up a member each time is slow
