"""What the store needs of a database: work in a transaction, done again where that is safe. SQL has `?` for each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from chipwise.runner.record import Mark

T = TypeVar("T")
Values = Sequence[object]


class Transaction(Protocol):
    def rows(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]: ...

    def execute_many(self, sql: str, values: Iterable[Values]) -> int:
        """The statement once for each; how many rows it touched in all."""
        ...

    def marks(self, count: int) -> int:
        """The last of so many numbers for changes, each larger than any before. It comes first in a transaction that writes
        jobs or events. In SQLite nobody else gets any until the end; PostgreSQL gives each row its number itself."""
        ...


class Database(Protocol):
    login: str  # of whoever asks, where the database has logins

    FOR_UPDATE: str  # after a SELECT whose rows must not change before the end
    FOR_UPDATE_NOW: str  # the same, without those that another transaction holds
    FOR_SHARE: str
    IS_SHARED: bool  # by logins with rights of their own

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Each statement sees what was committed before it."""
        ...

    def write(
        self, work: Callable[[Transaction], T], *, flushed: bool = True, proof: Callable[[Transaction], bool] | None = None
    ) -> T:
        """All of it or nothing. It may be run more than once, if what it did before is surely undone. What need not be flushed
        outlives any process at once, and a power cut a little later. `proof`: whether what it wrote is there, which is asked
        where the answer to a commit was lost; without one it is done again."""
        ...

    def changes(self, tx: Transaction, after: Mark, place: str, limit: int) -> tuple[list[tuple[Any, ...]], Mark]:
        """Rows with the id, version and body of jobs that changed after a mark: see `Record.changed`."""
        ...

    def close(self) -> None: ...
