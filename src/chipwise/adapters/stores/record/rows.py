"""Jobs as rows of tables and rows as jobs: the SQL that every database understands, and what may not go into it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chipwise.adapters.stores.record.schema import LIVE
from chipwise.errors import BadInput
from chipwise.runner.events import Event
from chipwise.runner.job import Job, Phase
from chipwise.runner.record import Row, Wanted
from chipwise.runner.writing import LARGEST_COUNT, LARGEST_NUMBER, event_text, job_text

LISTED = (
    "id, name, phase, engine, place, owner, team, project, priority, gpus, cpus, machines, attempts, submitted, begun, ended, "
    "reason"
)


def _actual(column: str) -> str:
    """What an attempt under way really has, where a job may have fewer than it wants; else what it wants."""
    placed = ", ".join(f"'{phase.value}'" for phase in Phase if phase.placed)
    query = f"SELECT a.{column} FROM attempts a WHERE a.job = jobs.id AND a.number = jobs.attempts"
    return f"CASE WHEN phase IN ({placed}) THEN COALESCE(({query}), {column}) ELSE {column} END"


LISTED_COLUMNS = ", ".join(_actual(name) if name in ("gpus", "machines") else name for name in LISTED.split(", "))
INSERT_JOB = f"INSERT INTO jobs ({LISTED}, born, version, mark, body) VALUES ({', '.join('?' * 21)})"
UPDATE_JOB = """UPDATE jobs SET version = ?, mark = ?, phase = ?, attempts = ?, begun = ?, ended = ?, reason = ?, body = ?
    WHERE id = ? AND version = ?"""
INSERT_EVENT = "INSERT INTO events (job, version, at, kind, body) VALUES (?, ?, ?, ?, ?)"
UPSERT_ATTEMPT = """INSERT INTO attempts
    (job, number, purchase, provider, region, machine, machines, since, ended, usd_per_hour, gpus)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job, number) DO UPDATE SET ended = excluded.ended,
    purchase = excluded.purchase, provider = excluded.provider, region = excluded.region, machine = excluded.machine,
    machines = excluded.machines, since = excluded.since, usd_per_hour = excluded.usd_per_hour, gpus = excluded.gpus"""
HAPPENED = "SELECT 1 FROM events WHERE job = ? AND version = ? AND kind = ? AND body::jsonb = ?::jsonb"  # in PostgreSQL alone
STORY = "SELECT version, at, kind, body FROM events WHERE job = ? AND version <= ? ORDER BY version"
LATER = "SELECT 1 FROM jobs j JOIN events e ON e.job = j.id AND e.version > j.version WHERE j.id = ? LIMIT 1"  # at one moment
LAST_EVENT = f"SELECT MAX(version) FROM events WHERE job = ? AND version < {LARGEST_COUNT}"
LAST_ATTEMPT = "SELECT MAX(number) FROM attempts WHERE job = ?"
END_ATTEMPTS = "UPDATE attempts SET ended = ? WHERE job = ? AND ended IS NULL"
EVENTS = "SELECT number, job, at, kind, body FROM events WHERE job = ? AND number > ? ORDER BY version"
USES = """SELECT a.job, j.owner, j.team, j.project, j.engine, a.purchase, a.provider, a.region, a.machine, a.machines,
    COALESCE(a.gpus, j.gpus), a.since, a.ended, a.usd_per_hour FROM attempts a JOIN jobs j ON j.id = a.job
    WHERE a.since < ? AND (a.ended IS NULL OR a.ended > ?) ORDER BY a.since, a.job, a.number"""
BODY = "id, version, body"  # what a job is read from
CHANGED_LIVE = f"SELECT mark, {BODY} FROM jobs WHERE place = ? AND mark > ? AND mark <= ? AND {LIVE} ORDER BY mark LIMIT ?"
PERMITS = (
    """SELECT who, may_submit(who, ?), acts_for(who, ?), ARRAY(SELECT secrets_for(who, ?)) FROM unnest(?::text[]) AS w (who)"""
)
# Policies do not hold for the owner of the tables, who may use any.
TEAMS = """SELECT t.team, row_security_active('chipwise.jobs')
    FROM (SELECT '' UNION SELECT teams_of(current_user::text)) AS t (team)"""
LEAD = """INSERT INTO leases (place, holder, epoch, until) VALUES (?, ?, 1, ?) ON CONFLICT (place) DO UPDATE SET
    epoch = leases.epoch + CASE WHEN leases.holder = excluded.holder THEN 0 ELSE 1 END, holder = excluded.holder,
    until = excluded.until WHERE leases.holder = excluded.holder OR leases.until <= ? RETURNING epoch, until"""
LEADER = "SELECT holder, epoch, until FROM leases WHERE place = ?"
RESIGN = "UPDATE leases SET holder = '', until = 0 WHERE place = ? AND holder = ? AND epoch = ?"

LONGEST_KEY = 500  # characters of an id, place or holder: an index of PostgreSQL takes 2,700 bytes
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_PHASES = {phase.value: phase for phase in Phase}
_TYPES = (*(str,) * 8, *(int,) * 5, *(float,) * 3, str)  # of LISTED
_SOUND = {(*_TYPES[:14], begun, ended, str) for begun in (float, type(None)) for ended in (float, type(None))}


def insert_jobs(count: int) -> str:
    """So many in one statement: a shared database counts the jobs of their owner once for each."""
    return INSERT_JOB + f", ({', '.join('?' * 21)})" * (count - 1)


def listed(job: Job) -> tuple[object, ...]:
    """The columns of LISTED."""
    spec, last = job.spec, job.attempt
    if fault := spec.needs.fault:
        raise BadInput(f"Job {job.id}: {fault}.", remedy="Ask for fewer.")
    numbers = (spec.priority, spec.needs.gpus, spec.needs.cpus, spec.needs.machines, len(job.attempts))
    if not all(-LARGEST_COUNT <= number <= LARGEST_COUNT for number in numbers):
        raise BadInput(f"Job {job.id} asks for a number that no database holds: priority, gpus, cpus and machines end at 2^53.")
    return (
        job.id,
        spec.name,
        job.phase.value,
        spec.engine,
        spec.place,
        spec.owner,
        spec.team,
        spec.project,
        *numbers,
        job.submitted,
        last.begun if last else None,
        job.ended,
        job.reason or job.waiting,
    )


def updated(job: Job, mark: int, body: str, was: object) -> tuple[object, ...]:
    """The values of UPDATE_JOB."""
    last = job.attempt
    return (
        job.version,
        mark,
        job.phase.value,
        len(job.attempts),
        last.begun if last else None,
        job.ended,
        job.reason or job.waiting,
        body,
        job.id,
        was,
    )


def attempts(old: Job, new: Job) -> Iterator[tuple[object, ...]]:
    """The values of UPSERT_ATTEMPT for those that changed: the last that there was, and any after it."""
    known = len(old.attempts)
    for attempt in new.attempts[max(known - 1, 0) :]:
        if attempt.number > known or attempt is not old.attempts[-1]:
            place = attempt.where
            yield (
                new.id,
                attempt.number,
                place.purchase.value,
                place.provider,
                place.region,
                place.machine,
                attempt.machines,
                attempt.since,
                attempt.ended,
                place.usd_per_hour,
                new.gpus_of(attempt),
            )


def row(values: tuple[Any, ...]) -> Row:
    """Also of columns that are not what we wrote: a list is shown whatever one of its lines holds."""
    sound = tuple(map(type, values)) in _SOUND and values[2] in _PHASES
    if not sound or not is_text(texts := "".join((*values[:8], values[16]))) or "\0" in texts:
        values = _valid_row(values)
    return Row(values[0], values[1], _PHASES[values[2]], *values[3:])


def _valid_row(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """What cannot be read is empty, zero or unknown; of the phase the worst is thought, that it may run."""
    cells = []
    for value, kind in zip(values, _TYPES, strict=True):
        fits = isinstance(value, kind) and not isinstance(value, bool)
        value = value if fits or (value is None and kind is float) else kind()
        cells.append(value.encode(errors="replace").decode().replace("\0", "?") if isinstance(value, str) else value)
    cells[2] = cells[2] if cells[2] in _PHASES else Phase.RUNNING.value
    cells[13] = cells[13] or 0.0  # submitted
    return tuple(cells)


def conditions(wanted: Wanted) -> tuple[str, list[object]]:
    """WHERE, ORDER BY and LIMIT for a list of jobs, and their values."""
    terms: list[str] = []
    values: list[object] = []
    if wanted.phases:
        terms.append(f"phase IN ({', '.join('?' * len(wanted.phases))})")
        values += sorted(phase.value for phase in wanted.phases)
        if not any(phase.over for phase in wanted.phases):
            terms.append(LIVE)  # nothing new; it lets the index of live jobs be used
    for column in ("owner", "team", "project", "engine", "place"):
        if value := getattr(wanted, column):
            terms.append(f"{column} = ?")
            values.append(speakable(value, f"the {column} that is asked for"))
    if wanted.name:
        begins = speakable(wanted.name, "the name that is asked for")
        terms.append("(name = ? OR (id >= ? AND id <= ?))")
        values += [begins, begins, begins + "\U0010ffff"]
    sql = f" WHERE {' AND '.join(terms)}" if terms else ""
    sql += " ORDER BY submitted DESC, born DESC"
    if wanted.newest is not None:
        sql += " LIMIT ?"
        values.append(max(wanted.newest, 0))
    return sql, values


def body_of(job: Job) -> str:
    subject = f"Job {job.id!r:.80}"
    with _recordable(subject):
        body = job_text(job)
    return _checked(body, subject)


def parts_of(event: Event, id: str) -> tuple[str, str]:
    """The kind and the body of an event."""
    subject = f"An event of job {id!r:.80}"
    with _recordable(subject):
        kind, body = event_text(event)
    return kind, _checked(body, subject)


@contextmanager
def _recordable(subject: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:  # NaN, infinity, an object that is not JSON
        raise BadInput(f"{subject} holds a value that cannot be recorded: {error}.") from error


def _checked(text: str, subject: str) -> str:
    if "\\u0000" in text and _NUL.search(text):
        raise BadInput(f"{subject} holds a NUL character, which PostgreSQL cannot keep.", remedy="Leave it out.")
    return text if text.isascii() else speakable(text, subject)


def speakable(text: str, subject: str) -> str:
    if "\0" in text:
        raise BadInput(f"{subject} holds a NUL character, which PostgreSQL cannot keep.", remedy="Leave it out.")
    if not is_text(text):
        raise BadInput(f"{subject} holds half a character (a lone surrogate), which cannot be written.")
    return text


def is_text(text: str) -> bool:
    """Whether it can be written: half a character comes from a damaged file."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def key(text: str, subject: str) -> str:
    """An id, a place or a holder."""
    if len(text) > LONGEST_KEY:
        raise BadInput(f"{subject} has {len(text):,} characters, and at most {LONGEST_KEY} can be kept.")
    return speakable(text, subject)


def moment(seconds: float) -> float:
    if not -LARGEST_NUMBER <= seconds <= LARGEST_NUMBER:
        raise BadInput(f"{seconds} is not a time.")
    return float(seconds)
