"""Tables are upgraded while somebody writes by the old rules: no two changes get the same mark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from chipwise.adapters.stores.record import connect
from chipwise.adapters.stores.record.address import Server as Address
from chipwise.adapters.stores.record.address import read_address
from chipwise.adapters.stores.record.schema import for_postgres
from chipwise.runner.job import Spec
from chipwise.runner.record import Record
from patience import deadline
from postgres_server import Server

psycopg = pytest.importorskip("psycopg")
COUNTED = 9  # the last version in which a counter gives the marks


@pytest.fixture
def older(postgres: Server) -> Iterator[str]:
    from chipwise.adapters.stores.record.postgres import PostgresDatabase

    with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE counted TEMPLATE template0")
        address = read_address(postgres.url("counted"))
        assert isinstance(address, Address)
        PostgresDatabase(address, migrations=for_postgres()[:COUNTED]).close()
        yield postgres.url("counted")
        admin.execute("DROP DATABASE counted WITH (FORCE)")


def test_a_write_by_the_old_rules_has_no_mark_of_a_later_one(older: str) -> None:
    opened: list[Record] = []
    upgrade = threading.Thread(target=lambda: opened.append(connect(older)))
    with psycopg.connect(older, options="-c search_path=chipwise") as writer, psycopg.connect(older, autocommit=True) as admin:
        # as 30 jobs that are submitted together
        writer.execute("UPDATE meta SET value = value + 30 WHERE name = 'mark'")
        upgrade.start()
        late = deadline(20)
        waits = "SELECT 1 FROM pg_stat_activity WHERE datname = 'counted' AND wait_event_type = 'Lock'"
        while not admin.execute(waits).fetchall() and time.monotonic() < late:
            time.sleep(0.01)
        writer.execute(
            """INSERT INTO jobs (id, born, version, mark, place, name, phase, engine, owner, team, project, priority, gpus,
                cpus, machines, attempts, submitted, reason, body)
                SELECT 'old-' || n, n, 1, n, 'here', 'a', 'queued', 'local', '', '', '', 0, 0, 1, 1, 0, 1, '', '{}'
                FROM generate_series(1, 30) AS n"""
        )
        writer.commit()
        upgrade.join(60)
        opened[0].submit([(f"new-{number}", Spec(("true",), "a", place="here")) for number in range(30)], 1.0)
        opened[0].close()
        [[jobs, marks]] = admin.execute("SELECT count(*), count(DISTINCT mark) FROM chipwise.jobs").fetchall()
    assert (jobs, marks) == (60, 60)
