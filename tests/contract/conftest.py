"""A record of each kind, empty: what the suites of this folder run against."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aws_models import read_once
from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.adapters.stores.record import connect
from chipwise.runner.record import Record
from postgres_server import MISSING, Server, programs, running

_names = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def _aws_models() -> Iterator[None]:
    with read_once():
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One server for the whole run. Killed clients are what is tested here, not power cuts: nothing waits for its disk."""
    found = programs()
    if found is None:
        pytest.skip(MISSING)
    with running(found, "fsync=off", "full_page_writes=off") as server:
        connect(server.url("template1")).close()  # every new database begins with the tables, which saves making them
        yield server


@pytest.fixture
def new_database(postgres: Server) -> Iterator[Callable[[], str]]:
    """Makes a database with the tables of a record, and gives its name."""
    yield from _databases(postgres)


@pytest.fixture(scope="module")
def lasting_database(postgres: Server) -> Iterator[str]:
    """One for all tests of a file that are refused, and so leave nothing in it."""
    for create in _databases(postgres):
        yield create()


def _databases(server: Server) -> Iterator[Callable[[], str]]:
    import psycopg

    made: list[str] = []
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:

        def create() -> str:
            made.append(f"record_{next(_names)}")
            admin.execute(f"CREATE DATABASE {made[-1]} STRATEGY file_copy".encode())
            return made[-1]

        yield create
        for name in made:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    return _url(request)


@pytest.fixture
def stored(url: str) -> Iterator[Record]:
    """A record that outlives its process."""
    opened = connect(url)
    yield opened
    opened.close()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def record(request: pytest.FixtureRequest) -> Iterator[Record]:
    opened = MemoryRecord() if request.param == "memory" else connect(_url(request))
    yield opened
    opened.close()


def _url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        return f"sqlite://{folder / 'records' / 'jobs.db'}"
    server: Server = request.getfixturevalue("postgres")
    return server.url(request.getfixturevalue("new_database")())
