"""The tables, as a numbered list of migrations: each is applied once, all that are missing in one transaction, under a lock.

A migration is never changed after a release; a new one is added. Words that the databases have in different forms stand in
braces. `mark` is the value of one counter at a job's last change; `born` at its first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chipwise.errors import BadInput

LIVE = "phase NOT IN ('done', 'failed', 'stopped')"
SQLITE: Mapping[str, str] = {
    "int": "INTEGER",
    "real": "REAL",
    "key": "TEXT",
    "number": "INTEGER PRIMARY KEY AUTOINCREMENT",
}
POSTGRES: Mapping[str, str] = {
    "int": "BIGINT",
    "real": "DOUBLE PRECISION",
    "key": 'TEXT COLLATE "C"',  # compared byte by byte, as SQLite does
    "number": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}

_FIRST = (
    """CREATE TABLE meta (name {key} PRIMARY KEY, value {int} NOT NULL)""",
    """INSERT INTO meta (name, value) VALUES ('schema', 0), ('mark', 0)""",
    """CREATE TABLE jobs (
        id {key} PRIMARY KEY, born {int} NOT NULL, version {int} NOT NULL, mark {int} NOT NULL, place {key} NOT NULL,
        name {key} NOT NULL, phase TEXT NOT NULL, engine TEXT NOT NULL, owner {key} NOT NULL, team {key} NOT NULL,
        project TEXT NOT NULL, priority {int} NOT NULL, gpus {int} NOT NULL, cpus {int} NOT NULL, machines {int} NOT NULL,
        attempts {int} NOT NULL, submitted {real} NOT NULL, begun {real}, ended {real},
        reason TEXT NOT NULL, body TEXT NOT NULL)""",
    """CREATE INDEX jobs_newest ON jobs (submitted, born)""",
    """CREATE INDEX jobs_changed ON jobs (place, mark)""",
    f"""CREATE INDEX jobs_live ON jobs (place, mark) WHERE {LIVE}""",
    """CREATE TABLE events (
        number {number}, job {key} NOT NULL REFERENCES jobs (id), version {int} NOT NULL, at {real} NOT NULL,
        kind TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (job, version))""",
    """CREATE TABLE attempts (
        job {key} NOT NULL REFERENCES jobs (id), number {int} NOT NULL, purchase TEXT NOT NULL, provider TEXT NOT NULL,
        region TEXT NOT NULL, machine TEXT NOT NULL, machines {int} NOT NULL, since {real}, ended {real},
        usd_per_hour {real}, PRIMARY KEY (job, number))""",
    """CREATE TABLE leases (place {key} PRIMARY KEY, holder TEXT NOT NULL, epoch {int} NOT NULL, until {real} NOT NULL)""",
)

# What an attempt held, since a job may hold fewer than it wants; of older ones that is what their job wanted.
_SECOND = ("ALTER TABLE attempts ADD COLUMN gpus {int}",)

_SQLITE_APPEND_ONLY = (
    *(
        f"""CREATE TRIGGER {table}_never_{verb.lower()} BEFORE {verb} ON {table}
        BEGIN SELECT RAISE(ABORT, '{table} are only ever added'); END"""
        for table, verb in (("events", "UPDATE"), ("events", "DELETE"), ("jobs", "DELETE"))
    ),
    # INSERT OR REPLACE deletes without asking the trigger above.
    """CREATE TRIGGER events_never_replaced BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE number = NEW.number OR (job = NEW.job AND version = NEW.version))
        BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END""",
    """CREATE TRIGGER jobs_keep_their_spec BEFORE UPDATE OF id, born, place, name, engine, owner, team, project, submitted
        ON jobs
        BEGIN SELECT RAISE(ABORT, 'what a job was submitted with never changes'); END""",
)

Migration = tuple[str, ...]


def for_sqlite() -> tuple[Migration, ...]:
    return ((*_worded(_FIRST, SQLITE), *_SQLITE_APPEND_ONLY), tuple(_worded(_SECOND, SQLITE)))


def for_postgres() -> tuple[Migration, ...]:
    from chipwise.adapters.stores.record.bounds import BOUNDS
    from chipwise.adapters.stores.record.fair_line import FAIR_LINE
    from chipwise.adapters.stores.record.no_line import NO_LINE
    from chipwise.adapters.stores.record.own_affairs import OWN_AFFAIRS
    from chipwise.adapters.stores.record.own_marks import OWN_MARKS
    from chipwise.adapters.stores.record.own_team import OWN_TEAM
    from chipwise.adapters.stores.record.place_rights import PLACE_RIGHTS
    from chipwise.adapters.stores.record.queue_bounds import QUEUE_BOUNDS
    from chipwise.adapters.stores.record.roles import APPEND_ONLY, GUARDS, POLICIES, SCHEMA
    from chipwise.adapters.stores.record.stalls import STALLS

    first = (*SCHEMA, *_worded(_FIRST, POSTGRES), *APPEND_ONLY, *POLICIES, *GUARDS)
    third: Migration = ()  # a guard of jobs, which the fourth replaces: all that are missing come together
    second = tuple(_worded(_SECOND, POSTGRES))
    rights = (PLACE_RIGHTS, BOUNDS, STALLS, OWN_AFFAIRS, FAIR_LINE, OWN_MARKS, NO_LINE, OWN_TEAM, QUEUE_BOUNDS)
    # A session that sets fewer digits would round the time of submission, and its jobs be older than they are.
    same_digits = tuple(f"ALTER FUNCTION {guard}() SET extra_float_digits = 1" for guard in ("guard_job", "guard_event"))
    return (first, second, third, *rights, same_digits)


def missing(current: int, migrations: Sequence[Migration], label: str) -> list[str]:
    """The statements that bring a record from the version that it has to ours; the last notes it."""
    known = len(migrations)
    if current > known:
        raise BadInput(
            f"The database {label} was written by a newer chipwise: "
            f"its tables have version {current}, and this one knows {known}.",
            remedy="Upgrade chipwise, or use another database.",
        )
    steps = [statement for migration in migrations[current:] for statement in migration]
    return [*steps, f"UPDATE meta SET value = {known} WHERE name = 'schema'"] if steps else []


def _worded(statements: Sequence[str], words: Mapping[str, str]) -> list[str]:
    return [_filled(statement, words) for statement in statements]


def _filled(statement: str, words: Mapping[str, str]) -> str:
    for word, form in words.items():
        statement = statement.replace("{" + word + "}", form)
    return statement
