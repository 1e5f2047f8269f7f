"""Harm to the rows of a record, past all of its rules."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

Harm = Callable[[str, str], None]


def harm_to(url: str) -> Harm:
    """Writes past all rules, as a failing disk or a hand would."""

    def run(table: str, change: str) -> None:
        if url.startswith("sqlite:"):
            with sqlite3.connect(url.removeprefix("sqlite://")) as other:
                for rule in ("events_never_update", "jobs_keep_their_spec"):
                    other.execute(f"DROP TRIGGER IF EXISTS {rule}")
                other.execute(f"UPDATE {table} SET {change}")
            other.close()
            return
        import psycopg

        with psycopg.connect(url) as admin:
            admin.execute("SET session_replication_role = replica")  # no trigger
            for bounded in ("jobs", "events", "attempts", "leases"):
                admin.execute(f"ALTER TABLE chipwise.{bounded} DROP CONSTRAINT IF EXISTS bounded".encode())
            admin.execute(f"UPDATE chipwise.{table} SET {change}".encode())

    return run
