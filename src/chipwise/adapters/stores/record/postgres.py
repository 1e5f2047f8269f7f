"""The record in a team's PostgreSQL (13 or newer), through psycopg 3.

A connection may be cut at any moment. What was not committed is undone by the server, so it is simply done again on another
connection, for a bounded time. Only when the cut comes while a commit is under way does nobody here know: then the server is
asked whether the transaction is still under way, and whether what it wrote is there, so that nothing is done twice or lost. Its
number alone does not say: a server that crashed gives it out again. Logins, passwords and services are libpq's
own matter: PGPASSWORD, ~/.pgpass and service files work, and no password is ever shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any, TypeVar, cast

from chipwise.adapters.stores.record import schema
from chipwise.adapters.stores.record.address import Server
from chipwise.adapters.stores.record.database import Transaction, Values
from chipwise.adapters.stores.record.pool import Pool
from chipwise.adapters.stores.record.snapshot_changes import read_changes
from chipwise.errors import BadInput, MissingExtra, NotAllowed, NotFound, OutsideFailed, TryLater
from chipwise.runner.record import Mark, MarkLost

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from chipwise.adapters.stores.record import postgres_troubles as troubles
except ImportError as error:
    raise MissingExtra("A PostgreSQL record", "postgres") from error

T = TypeVar("T")
_numbers = count(1)
OLDEST = 130000  # pg_xact_status with 64-bit numbers
PATIENCE_S = 30.0  # for a server that restarts or fails over
_SESSION = """SET search_path = chipwise, pg_catalog; SET statement_timeout = '60s'; SET lock_timeout = '20s';
    SET idle_in_transaction_session_timeout = '60s'"""
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
# A limit for each lock is none for all: who is passed on from one holder to the next would wait on.
_BEGIN_WRITE = f"{_BEGIN}; SET LOCAL statement_timeout = '20s'"
_NUMBER = "SELECT pg_current_xact_id()::text"
_CREATING = "SELECT pg_advisory_xact_lock(4849111234850738007)"  # any number that nobody else uses
_MIGRATING = "SELECT 1 FROM chipwise.meta WHERE name = 'schema' FOR UPDATE"  # which the owner of the tables alone can
_ENDS = 3  # times that one write has sessions ended that hold it up: the next in the line may be of the same kind
# By a table and not by to_regclass, which may answer from what the session knew before it waited for the lock above.
_EXISTS = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'chipwise' AND tablename = 'meta')"


class NumberedConnection(psycopg.Connection[Any]):
    number = 0  # each has a larger one than those that were opened before it


class PostgresTransaction:
    def __init__(self, connection: NumberedConnection) -> None:
        self._connection = connection
        self.session = connection.number
        self.number: str | None = None  # by which the server can tell what became of it

    def rows(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(_dialect(sql), values).fetchall()

    def execute_many(self, sql: str, values: Iterable[Values]) -> int:
        with self._connection.cursor() as cursor:
            cursor.executemany(_dialect(sql), values)
            return cursor.rowcount

    def marks(self, count: int) -> int:
        row = self._connection.execute(_NUMBER).fetchone()
        self.number = row[0] if row else None
        return count


class PostgresDatabase:
    FOR_UPDATE = " FOR UPDATE"
    FOR_UPDATE_NOW = " FOR UPDATE SKIP LOCKED"
    FOR_SHARE = " FOR SHARE"
    IS_SHARED = True

    def __init__(
        self, address: Server, *, patience_s: float = PATIENCE_S, migrations: Sequence[schema.Migration] | None = None
    ) -> None:
        self.shown, self._url, self._patience_s = str(address), address.url, patience_s
        self.login = "this login"
        self._newest = 0  # number of a connection
        try:
            conninfo_to_dict(self._url)
        except psycopg.ProgrammingError:
            # Its message repeats a part of the URL, which may be of a password: neither it nor its cause is kept.
            raise BadInput(
                f"The URL of the database {self.shown} cannot be read by libpq.",
                remedy="Characters like @ / % in a name or password are written as %40 %2F %25.",
            ) from None
        self._pool = Pool(self._opened, _ended)
        try:
            self._prepare(schema.for_postgres() if migrations is None else migrations)
        except psycopg.Error as error:
            self._pool.close()
            raise troubles.translated_error(error, self.shown, self.login) from error
        except BaseException:
            self._pool.close()
            raise

    def read(self, work: Callable[[Transaction], T]) -> T:
        return self._with_retries(lambda connection: work(PostgresTransaction(connection)))

    def write(
        self, work: Callable[[Transaction], T], *, flushed: bool = True, proof: Callable[[Transaction], bool] | None = None
    ) -> T:
        return self._with_retries(lambda connection: _past_stalled(connection, lambda same: self._committed(same, work, proof)))

    def changes(self, tx: Transaction, after: Mark, place: str, limit: int) -> tuple[list[tuple[Any, ...]], Mark]:
        """A mark holds as long as one connection does. A server that crashed gives out numbers of transactions again, and one
        that took over from another has its own: both cut all connections that there were when the mark was made."""
        assert isinstance(tx, PostgresTransaction)
        newest = self._newest  # before the reading
        known, _, mark = str(after).partition(" ")
        if mark and tx.session > int(known):
            raise MarkLost(f"The connection to the database {self.shown} was lost since changes were read last.")
        rows, following = read_changes(tx, mark or 0, place, limit)
        return rows, f"{newest} {following}"

    def close(self) -> None:
        self._pool.close()

    def _committed(
        self, connection: NumberedConnection, work: Callable[[Transaction], T], proof: Callable[[Transaction], bool] | None
    ) -> T:
        tx = PostgresTransaction(connection)
        connection.execute(_BEGIN_WRITE)
        result = work(tx)
        try:
            connection.execute("COMMIT")
        except psycopg.OperationalError:
            if proof is None or tx.number is None or not self._was_committed(tx.number, proof):
                raise
        return result

    def _was_committed(self, number: str, proof: Callable[[Transaction], bool]) -> bool:
        """After the answer to a commit was lost. While the server is still at it, it is asked again."""
        until, wait = time.monotonic() + self._patience_s, 0.05
        while True:
            try:
                with self._pool.connection() as connection:
                    row = connection.execute("SELECT pg_xact_status(%s::xid8)", (number,)).fetchone()
                    if row is not None and row[0] != "in progress":
                        return row[0] != "aborted" and proof(PostgresTransaction(connection))
            except (psycopg.OperationalError, TryLater, NotFound):
                self._pool.forget()
            except psycopg.DataError:  # it never heard of that number: it crashed before
                return False
            if time.monotonic() > until:
                raise TryLater(
                    f"The database {self.shown} stopped answering during a write, and it may or may not have happened.",
                    remedy="Look at the job again before you repeat what you did.",
                )
            time.sleep(wait)
            wait = min(wait * 2, 2.0)

    def _with_retries(self, act: Callable[[NumberedConnection], T]) -> T:
        until, wait = time.monotonic() + self._patience_s, 0.05
        while True:
            try:
                with self._pool.connection() as connection:
                    try:
                        return act(connection)
                    except Exception as error:
                        if not _goes_on(connection):
                            raise
                        failure = error
                raise failure
            except psycopg.Error as error:
                if not troubles.passing(error) or time.monotonic() + wait > until:
                    raise troubles.translated_error(error, self.shown, self.login) from error
            except (TryLater, NotFound):  # no new connection
                if time.monotonic() + wait > until:
                    raise
            self._pool.forget()
            time.sleep(wait)
            wait = min(wait * 2, 2.0)

    def _opened(self) -> NumberedConnection:
        try:
            connection = NumberedConnection.connect(
                self._url, autocommit=True, connect_timeout=10, client_encoding="UTF8", fallback_application_name="chipwise"
            )
        except psycopg.Error as error:
            raise troubles.of_connecting(error, self.shown, self.login) from error
        try:
            connection.execute(_SESSION)
        except BaseException:
            connection.close()
            raise
        self.login = connection.info.user
        connection.number = self._newest = next(_numbers)
        return connection

    def _prepare(self, migrations: Sequence[schema.Migration]) -> None:
        with self._pool.connection() as connection:
            _check_server(connection, self.shown)
            version = _version(connection)
            if not schema.missing(version, migrations, self.shown):
                return
            connection.execute(_BEGIN)
            connection.execute(_MIGRATING if version else _CREATING)
            for statement in schema.missing(_version(connection), migrations, self.shown):  # as it is now
                try:
                    connection.execute(cast(Any, statement))
                except psycopg.errors.InsufficientPrivilege as error:
                    raise NotAllowed(
                        f"The database {self.shown} is not set up for this version, and {self.login} may not do it.",
                        remedy="Let the owner of the database connect once with this version of chipwise.",
                    ) from error
            connection.execute("COMMIT")


def _goes_on(connection: NumberedConnection) -> bool:
    """After a refusal, whether the session is as before: what it had begun is undone. Marks hold as long as it does."""
    with suppress(psycopg.Error):
        connection.execute("ROLLBACK")
        return not connection.closed
    return False


def _past_stalled(connection: NumberedConnection, act: Callable[[NumberedConnection], T]) -> T:
    """Who waited for a lock in vain has those ended that left a transaction open with it, and is the next in the line: on the
    same connection, since those that come again would be before another."""
    fruitless = 0
    for _ in range(_ENDS):
        try:
            return act(connection)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
            ended = []
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
                ended = connection.execute("SELECT end_stalled()").fetchall()
            fruitless += not ended
            if fruitless > 1:  # once, they may just have passed it on
                raise
    return act(connection)


def _check_server(connection: psycopg.Connection[Any], label: str) -> None:
    version, encoding = connection.info.server_version, connection.info.parameter_status("server_encoding")
    if version < OLDEST:
        raise OutsideFailed(f"The database {label} is on PostgreSQL {version // 10000}; 13 or newer is needed.")
    if encoding != "UTF8":
        raise BadInput(
            f"The database {label} is in a database with the encoding {encoding}; it needs UTF8.",
            remedy="Create the database with ENCODING 'UTF8'.",
        )


def _not_a_member(login: str) -> NotAllowed:
    return NotAllowed(
        f"{login} is not a member of this record.", remedy=f"An admin adds them: chipwise members add {login} --team TEAM."
    )


def _version(connection: psycopg.Connection[Any]) -> int:
    """0 for a database in which nothing of ours is."""
    exists = connection.execute(_EXISTS).fetchone()
    if exists is None or not exists[0]:
        return 0
    try:
        row = connection.execute("SELECT value FROM chipwise.meta WHERE name = 'schema'").fetchone()
    except psycopg.errors.InsufficientPrivilege:
        raise _not_a_member(connection.info.user) from None
    return int(row[0]) if row else 0


@cache
def _dialect(sql: str) -> Any:
    return sql.replace("?", "%s")


def _ended(connection: psycopg.Connection[Any]) -> None:
    with suppress(psycopg.Error):
        connection.close()
