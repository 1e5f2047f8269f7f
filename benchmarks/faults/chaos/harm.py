"""What a member with a client of PostgreSQL tries against the jobs of others, and what a login that is no member tries at all.

Each statement is meant to be refused. `Harm.allowed` holds those that were carried out and changed something.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from pathlib import Path

TABLES = ("jobs", "events", "attempts", "leases", "meta", "members", "grants")
VICTIM = "(SELECT id FROM jobs WHERE owner <> session_user ORDER BY random() LIMIT 1)"


def statements(place: str, canary: Path) -> list[str]:
    command = f'["/usr/bin/touch", "{canary}"]'
    body = f'{{"id": "evil", "version": 1, "spec": {{"command": {command}, "owner": "eve", "place": "{place}"}}}}'
    row = f"('evil', 1, 1, 0, '{place}', 'a', 'queued', 'local', 'eve', '', '', 0, 0, 1, 1, 0, 1, NULL, NULL, '', '{body}')"
    nested = '{"a":' * 900 + "1" + "}" * 900
    return [
        f"INSERT INTO jobs VALUES {row}",
        f"INSERT INTO grants VALUES ('{place}', 'eve', '', '[]')",
        *(f"DELETE FROM {table}" for table in TABLES),
        *(f"DO $$ BEGIN LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; END $$" for table in TABLES),
        f"UPDATE jobs SET phase = 'done' WHERE id = {VICTIM}",
        f"UPDATE jobs SET owner = 'eve' WHERE id = {VICTIM}",
        f"UPDATE jobs SET version = 9223372036854775807 WHERE id = {VICTIM}",
        f"UPDATE jobs SET body = '{nested}' WHERE id = {VICTIM}",
        "UPDATE leases SET epoch = epoch + 1, holder = 'eve'",
        "UPDATE leases SET until = 0",
        "UPDATE meta SET value = 0",
        "UPDATE meta SET value = value + 9000000000000000",
        "UPDATE members SET role = 'admin' WHERE login = 'eve'",
        "INSERT INTO members VALUES ('eve', '', 'admin')",
        f"SELECT secrets_for('alice', '{place}')",
        "DROP TABLE jobs",
        "TRUNCATE events",
    ]


@dataclass
class Harm:
    """Tried until `stop` is set, one login after the other."""

    urls: dict[str, str]
    statements: list[str]
    seed: int
    tried: int = 0
    allowed: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        import psycopg

        rng = random.Random(self.seed)
        while not self.stop.wait(0.3):
            login, statement = rng.choice(list(self.urls)), rng.choice(self.statements)
            options = "-c search_path=chipwise -c statement_timeout=5000"
            try:
                with psycopg.connect(self.urls[login], autocommit=True, options=options, connect_timeout=5) as client:
                    self.tried += 1
                    done = client.execute(statement.encode())
                    if done.fetchall() if done.description else done.rowcount > 0 or statement.startswith("DO"):
                        self.allowed.append(f"{login}: {statement[:80]}")
            except psycopg.Error:
                pass  # refused, or the database is away
