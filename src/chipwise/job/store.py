"""Where checkpoints live, as the rest sees it: named files in one place, put whole or not at all.

`local.py` is a directory, `remote.py` any object store; `opening.py` chooses by the URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class Store(Protocol):
    location: str  # for messages: without credentials
    quick: bool  # whether a look costs microseconds (a local directory) or a request

    def prepare(self) -> None:
        """Make the place."""

    def names(self) -> list[str]:
        """All of them; none where the place does not exist."""

    def age_s(self, name: str) -> float | None: ...

    def size(self, name: str) -> int:
        """FileNotFoundError where there is none."""

    def read(self, name: str) -> bytearray: ...

    def chunks(self, name: str) -> Iterator[bytes]: ...

    def put(self, name: str, parts: Iterable[Buffer], temporary: str, *, lasting: bool = True) -> None:
        """Afterwards `name` has all of it, also after a loss of power (unless not `lasting`); or nothing has changed."""

    def remove(self, *names: str) -> None:
        """What is not there is no error."""

    def hold(self, lock: str) -> bool:
        """Whether no other living process holds it; it is ours until this process ends or frees it."""

    def free(self, lock: str) -> None: ...

    def abandoned(self, lock: str) -> bool | None:
        """Whether its writer is known to be dead; None where that cannot be known."""
