"""What the store needs of a database: work in a transaction, done again where that is safe. SQL has `?` for each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Values = Sequence[object]


class Transaction(Protocol):
    def rows(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]: ...

    def execute_many(self, sql: str, values: Iterable[Values]) -> int:
        """The statement once for each; how many rows it touched in all."""
        ...

    def marks(self, count: int) -> int:
        """Raises the counter of changes by so many, and is its new value. Until the end nobody else can, so that a smaller
        mark is never committed after a larger one. It comes first in a transaction that writes jobs or events."""
        ...


class Database(Protocol):
    login: str  # of whoever asks, where the database has logins

    FOR_UPDATE: str  # after a SELECT whose rows must not change before the end
    FOR_SHARE: str
    IS_SHARED: bool  # by logins with rights of their own

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Each statement sees what was committed before it."""
        ...

    def write(self, work: Callable[[Transaction], T], *, flushed: bool = True) -> T:
        """All of it or nothing. It may be run more than once, if what it did before is surely undone. What need not be flushed
        outlives any process at once, and a power cut a little later."""
        ...

    def close(self) -> None: ...
