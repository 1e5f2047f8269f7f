"""Rows that cannot be read: a job is made again from its events, and where those do not give it, it is told as damaged.

A row may be damaged by a disk, by a hand, or by a newer chipwise that writes what this one does not know. Events are only ever
added, so those up to a version give the job as it was at that version, whatever is written beside it meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chipwise.adapters.stores.record import rows as r
from chipwise.adapters.stores.record.database import Transaction
from chipwise.runner.events import Event, Submitted, Told, after, first
from chipwise.runner.job import Attempt, Job, MachinePlace, Needs, Phase, Spec
from chipwise.runner.record import Damaged, Row
from chipwise.runner.writing import LARGEST_COUNT, LAST_MOMENT, Unreadable, event_of, job_of

_MOST_ATTEMPTS = 10_000  # of one job; a machine that is lost every minute takes a week for them


def read(id: str, version: int, body: str) -> Job | Unreadable:
    """The job in a row, if it is whole and of that row."""
    try:
        if not _is_text(body):
            raise Unreadable(f"{body!r:.200} is not a text")
        if isinstance(version, int) and version >= LARGEST_COUNT:
            raise Unreadable(f"its version {version} is beyond all measure")
        job = job_of(body)
        _check(job, id, version)
    except Unreadable as error:
        return error
    return job


def _is_text(body: object) -> bool:
    """What a damaged file holds may be read, with marks for what is no text, and could not be written again."""
    return isinstance(body, str) and r.is_text(body)


def _check(job: Job, id: str, version: int) -> None:
    if (job.id, job.version) != (id, version):
        raise Unreadable(f"in its row lies version {job.version} of {job.id!r:.80}, and not {version} of it")
    numbers = [one.number for one in job.attempts]
    if numbers != list(range(1, len(numbers) + 1)) or (job.phase.placed and not numbers):
        raise Unreadable(f"it is {job.phase}, with the attempts {numbers}")
    if job.phase is Phase.LEAVING and job.leave_by is None:
        raise Unreadable("it is leaving, and its end is not known")


def mended(tx: Transaction, id: str, version: int, trouble: Unreadable) -> Job | Damaged:
    """By its events; `trouble`: why its row could not be read."""
    story = tx.rows(r.STORY, (id, version))
    try:
        if tx.rows(r.LATER, (id,)):  # the job as it was then would be started again
            raise Unreadable(f"there are more than {version!r:.20}")
        job = _added_up(id, version, story)
        _check(job, id, version)
    except Unreadable as error:
        version = version if isinstance(version, int) else 0
        rows = tx.rows(f"SELECT {r.LISTED_COLUMNS} FROM jobs WHERE id = ?", (id,))
        begun = tx.rows(r.LAST_ATTEMPT, (id,))[0][0]
        return Damaged(_left(r.row(rows[0]), version, story, begun if isinstance(begun, int) else 0), _damage(trouble, error))
    return job


def _damage(row: Unreadable, events: Unreadable) -> str:
    """What is wrong, without what stands there: that may be long."""
    row_is, events_are = (str(one.__cause__ or one)[:120] for one in (row, events))
    return f"neither its row ({row_is}) nor its events ({events_are}) can be read"


def _added_up(id: str, version: int, story: Sequence[tuple[Any, ...]]) -> Job:
    if not isinstance(version, int) or len(story) != version or any(one[0] != at for at, one in enumerate(story, 1)):
        raise Unreadable(f"of its {version!r:.20} events {len(story)} are there")
    if not story:
        raise Unreadable("nothing ever happened to it")
    job: Job | None = None
    for number, moment, kind, body in story:
        try:
            if not _is_text(body):
                raise Unreadable("it is not a text")
            happening = event_of(kind, body)
            if job is None:
                job = first(id, happening, float(moment)) if isinstance(happening, Submitted) else None
            else:
                job = after(job, happening, float(moment))
        except (ValueError, TypeError) as error:  # of another kind, or one that cannot follow
            raise Unreadable(f"event {number}: {error}") from error
        if job is None:
            raise Unreadable(f"event {number} is {kind!r:.40}, and not how it was submitted")
    assert job is not None
    return job


def _left(row: Row, version: int, story: Sequence[tuple[Any, ...]], begun: int) -> Job:
    """What its columns say, and what was asked for where that can be read. `begun`: the last attempt that the record of machine
    hours knows, which counts where the column holds a number of attempts that no job had."""
    spec = Spec(
        command=(),
        name=row.name,
        engine=row.engine,
        place=row.place,
        needs=Needs(row.gpus, row.cpus, max(row.machines, 1)),
        owner=row.owner,
        team=row.team,
        project=row.project,
        priority=row.priority,
    )
    for _, _, kind, body in story[:1]:
        submission = event(0, kind, body)
        spec = submission.spec if isinstance(submission, Submitted) and submission.spec.place == row.place else spec
    count = row.attempts if 0 <= row.attempts <= _MOST_ATTEMPTS else min(max(begun, 0), _MOST_ATTEMPTS)
    attempt_count = max(count, 1 if row.phase.placed else 0)
    attempts = tuple(Attempt(number, MachinePlace(), machines=max(row.machines, 1)) for number in range(1, attempt_count + 1))
    return Job(
        id=row.id,
        spec=spec,
        submitted=row.submitted,
        version=version,
        phase=row.phase,
        attempts=attempts,
        ended=row.ended,
        reason=row.reason,
    )


def event(number: int, kind: str, body: str) -> Event:
    """One that cannot be read changes no story: it is told in its place."""
    try:
        if not _is_text(body):
            raise Unreadable(f"{body!r:.200} is not a text")
        return event_of(kind, body)
    except Unreadable as error:
        return Told(0, f"what happened here ({kind!r:.40}, number {number} of the record) cannot be read: {str(error)[:200]}")


def moment(at: object) -> float:
    """When it happened; the beginning of time where that is no number, or one that no calendar has."""
    return float(at) if isinstance(at, int | float) and 0.0 <= at <= LAST_MOMENT else 0.0
