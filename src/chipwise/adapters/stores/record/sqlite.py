"""The record in a file, by the SQLite that comes with Python: no server, several processes at once, readable while written.

Write-ahead logging lets readers go on while one writes. A writer takes the lock when it begins, so nobody finds out at the end
that it was in vain. Whatever was committed outlives the death of any process. A power cut is another matter, and flushing every
commit to the disk costs a write to it: 0.06 ms on an idle SSD, 1 ms on a busy one, several on spinning disks. So what was
decided is flushed: what a controller is about to do, which may cost money, and what an owner wants. Submitted jobs are not:
they reach the disk with the next decision, seconds later, and a power cut before that loses them. The URL can ask for more
(`?synchronous=full`) or for less (`?synchronous=normal`: a power cut may lose the last seconds, and never their order).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from chipwise.adapters.stores.record import schema
from chipwise.adapters.stores.record.address import File
from chipwise.adapters.stores.record.counted_changes import read_changes
from chipwise.adapters.stores.record.database import Transaction, Values
from chipwise.adapters.stores.record.pool import Pool
from chipwise.adapters.stores.record.sqlite_troubles import Unsound, of_system, refuse_network, translated
from chipwise.errors import BadInput, OutsideFailed

T = TypeVar("T")
APPLICATION = 0x43485057  # in the header of the file: it is ours
OLDEST = (3, 35)  # RETURNING
_MARKS = "UPDATE meta SET value = value + ? WHERE name = 'mark' RETURNING value"


def _half_read(text: bytes) -> str:
    """What is no text keeps marks that no text has, so that whoever reads it finds out."""
    return text.decode(errors="surrogateescape")


class Connection(sqlite3.Connection):
    flushes = ""  # as set last


class SqliteTransaction:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, tuple(values)).fetchall()
        except sqlite3.OperationalError as error:
            if "Could not decode to UTF-8" not in str(error):
                raise
        self._connection.text_factory = _half_read  # one damaged text must not hide all the others
        try:
            return self._connection.execute(sql, tuple(values)).fetchall()
        finally:
            self._connection.text_factory = str

    def execute_many(self, sql: str, values: Iterable[Values]) -> int:
        return self._connection.executemany(sql, values).rowcount

    def marks(self, count: int) -> int:
        rows = self.rows(_MARKS, (count,))
        if not rows or type(rows[0][0]) is not int:  # beyond the largest whole number SQLite goes on with others
            raise Unsound("the counter of changes is lost")
        return int(rows[0][0])


class SqliteDatabase:
    FOR_UPDATE = FOR_UPDATE_NOW = FOR_SHARE = ""  # a writer has the whole file
    IS_SHARED = False
    changes = staticmethod(read_changes)
    login = ""

    def __init__(self, address: File, *, wait_s: float = 10.0, migrations: Sequence[schema.Migration] | None = None) -> None:
        self.path, self._synchronous, self._wait_s = address.path, address.synchronous, wait_s
        if sqlite3.sqlite_version_info < OLDEST:
            raise OutsideFailed(f"This Python has SQLite {sqlite3.sqlite_version}; 3.35 or newer is needed.")
        refuse_network(self.path)
        self._inode = _create_file(self.path)
        self._pool = Pool(self._opened, Connection.close)
        try:
            with translated(self.path, self._wait_s):
                self._prepare(schema.for_sqlite() if migrations is None else migrations)
        except BaseException:
            self._pool.close()
            raise

    def read(self, work: Callable[[Transaction], T]) -> T:
        with translated(self.path, self._wait_s), self._pool.connection() as connection:
            self._check_place()
            return work(SqliteTransaction(connection))

    def write(
        self, work: Callable[[Transaction], T], *, flushed: bool = True, proof: Callable[[Transaction], bool] | None = None
    ) -> T:
        with translated(self.path, self._wait_s), self._pool.connection() as connection:
            self._check_place()
            self._flush(connection, flushed)
            connection.execute("BEGIN IMMEDIATE")
            result = work(SqliteTransaction(connection))  # after a failure the connection is closed, which undoes all
            connection.execute("COMMIT")
            return result

    def close(self) -> None:
        with translated(self.path, self._wait_s):
            self._pool.close()

    def _opened(self) -> Connection:
        uri = f"file:{quote(os.fsencode(self.path))}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._wait_s, isolation_level=None, check_same_thread=False, factory=Connection
        )
        try:
            self._flush(connection, True)
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -16000")  # 16 MB
        except BaseException:
            connection.close()
            raise
        return connection

    def _flush(self, connection: Connection, durable: bool) -> None:
        level = self._synchronous if self._synchronous != "decisions" else "full" if durable else "normal"
        if connection.flushes != level:
            connection.execute(f"PRAGMA synchronous = {level}")
            connection.flushes = level

    def _prepare(self, migrations: Sequence[schema.Migration]) -> None:
        with self._pool.connection() as connection:
            _log_ahead(connection, self.path, self._wait_s)
            if not schema.missing(self._version(connection), migrations, str(self.path)):
                return
            connection.execute("BEGIN IMMEDIATE")
            for statement in schema.missing(self._version(connection), migrations, str(self.path)):  # as it is now
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute("COMMIT")

    def _version(self, connection: Connection) -> int:
        """0 for a file in which nothing is yet."""
        recognised = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        if not recognised and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise BadInput(f"{self.path} is a SQLite database of something else.", remedy="Name another file.")
        if not recognised:
            return 0
        row = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        if row is None or type(row[0]) is not int or row[0] < 1:
            raise Unsound("the version of the tables is lost")
        return int(row[0])

    def _check_place(self) -> None:
        """A file that was removed can still be written by whoever has it open, and nobody would ever read it."""
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise of_system(error, self.path) from error
        if (status.st_dev, status.st_ino) != self._inode:
            raise OutsideFailed(
                f"The database {self.path} was replaced by another file while it was in use.", remedy="Start again."
            )


def _create_file(path: Path) -> tuple[int, int]:
    """The file, for its owner only, in a folder for its owner only; one that is there is left as it is."""
    try:
        for folder in reversed([one for one in (path.parent, *path.parent.parents) if not one.exists()]):
            folder.mkdir(mode=0o700, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(str(path))
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        status = path.stat()
    except OSError as error:
        raise of_system(error, path) from error
    return status.st_dev, status.st_ino


def _log_ahead(connection: Connection, path: Path, wait_s: float) -> None:
    """Changing the mode of a new file needs it alone, and SQLite does not wait for that; others may be doing the same."""
    until = time.monotonic() + wait_s
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                return
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname not in ("SQLITE_BUSY", "SQLITE_LOCKED") or time.monotonic() > until:
                raise
            time.sleep(0.02)
            continue
        if mode != "wal":
            raise OutsideFailed(
                f"The database {path} is on a disk where write-ahead logging does not work.", remedy="Use a local disk."
            )
        return
