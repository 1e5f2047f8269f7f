"""Where jobs are remembered, chosen by one URL: a file by SQLite (the default, no server), or a team's PostgreSQL.

Both run the same SQL over the same tables; what differs is a transaction, a handful of words, and who may see what.
"""

from __future__ import annotations

from chipwise.adapters.stores.record.address import File, read_address
from chipwise.runner.record import Record


def connect(url: str) -> Record:
    """The record at a URL, made there if there is none: `sqlite:///path/file.db`, a path, or `postgresql://user@host/db`.

    What is needed for the kind that is asked for is imported here, so that the other costs nothing.
    """
    from chipwise.adapters.stores.record.store import Store

    address = read_address(url)
    if isinstance(address, File):
        from chipwise.adapters.stores.record.sqlite import SqliteDatabase

        return Store(SqliteDatabase(address))
    from chipwise.adapters.stores.record.postgres import PostgresDatabase

    return Store(PostgresDatabase(address))
