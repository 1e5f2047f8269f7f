"""One record in a real PostgreSQL, seen by several logins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chipwise.adapters.stores.record import connect
from chipwise.runner.record import Record
from postgres_server import Server


def logins(server: Server, names: Sequence[str]) -> Iterator[None]:
    """For the tests of a file; its databases are gone before they are."""
    import psycopg

    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        for login in names:
            admin.execute(f"CREATE ROLE {login} LOGIN".encode())
        yield
        for login in names:
            admin.execute(f"DROP ROLE {login}".encode())


class Team:
    def __init__(self, server: Server, name: str) -> None:
        self._server, self.name = server, name
        self._open: dict[str, Record] = {}

    def by(self, login: str) -> Record:
        if login not in self._open:
            self._open[login] = connect(self.url(login))
        return self._open[login]

    def url(self, login: str) -> str:
        return self._server.url(self.name, login)

    def sql(self, login: str, statement: str, *values: object) -> Any:
        """By any client, such as psql."""
        import psycopg

        with psycopg.connect(self.url(login), autocommit=True, options="-c search_path=chipwise") as client:
            done = client.execute(statement.encode(), values)
            return done.fetchall() if done.description else done.rowcount

    def close(self) -> None:
        for record in self._open.values():
            record.close()
