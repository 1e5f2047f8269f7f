"""The record of jobs over a database: `chipwise.runner.record.Record`. Its rules are here; a database carries them out.

A job lies whole in one row beside the columns that lists need; its events lie one by one, and adding them up gives that job.
How `changed` passes by no job is a matter of the database: in SQLite writers stand in a line (`counted_changes`), in PostgreSQL
none waits for another (`snapshot_changes`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from chipwise.adapters.stores.record import repair
from chipwise.adapters.stores.record import rows as r
from chipwise.adapters.stores.record.database import Database, Transaction
from chipwise.errors import BadInput, ChipwiseError
from chipwise.runner.bounds import excess, excess_together
from chipwise.runner.events import Event, Over, Submitted, after, first
from chipwise.runner.job import Job, Phase, Spec
from chipwise.runner.permits import Permit
from chipwise.runner.record import Change, Damaged, Deposed, Happened, Held, Lease, Mark, Row, Stale, Unread, Use, Wanted
from chipwise.runner.writing import LARGEST_COUNT, Unreadable

_CHUNK = 500  # ids in one question: SQLite takes 999 values in its older versions
_TOGETHER = 200  # jobs in one statement


@dataclass(frozen=True, slots=True)
class Draft:
    """A change as it will be written, made before the transaction so that this is short."""

    old: Job
    new: Job
    body: str
    events: tuple[tuple[object, ...], ...]


class Store:
    def __init__(self, database: Database) -> None:
        self.database = database

    @property
    def login(self) -> str:
        return self.database.login

    def teams(self) -> frozenset[str] | None:
        if not self.database.IS_SHARED:
            return None
        rows = self.database.read(lambda tx: tx.rows(r.TEAMS))
        return frozenset(team for team, _ in rows if team) if rows and rows[0][1] else None

    def submit(self, specs: Sequence[tuple[str, Spec]], moment: float) -> list[Job]:
        if not specs:
            return []
        moment = r.moment(moment)
        jobs = [first(_id(id), Submitted(spec), moment) for id, spec in specs]
        for job in jobs:
            r.key(job.spec.place, f"The place of job {job.id}")
        if len({job.id for job in jobs}) < len(jobs):
            raise Stale("One id was given to two jobs that were submitted together.")
        lines = [(r.listed(job), r.body_of(job)) for job in jobs]
        if self.database.IS_SHARED:
            for job, (_, body) in zip(jobs, lines, strict=True):
                if fault := excess(job.spec, len(body)):
                    raise BadInput(f"Job {job.id}: {fault}.", remedy="Ask for less, or put what is long into a file.")
            if fault := excess_together([body for _, body in lines]):
                raise BadInput(
                    f"{fault[0].upper()}{fault[1:]}.", remedy="Submit fewer at a time, or put what is long into a file."
                )
        events = [(job.id, 1, moment, *r.parts_of(Submitted(job.spec), job.id)) for job in jobs]

        def work(tx: Transaction) -> list[Job]:
            mark = tx.marks(len(jobs)) - len(jobs)
            if duplicates := _versions(tx, [job.id for job in jobs], ""):
                raise Stale(f"Job {min(duplicates)} is in the database already.", remedy="Submit it under another id.")
            rows = [(*line, mark + n, 1, mark + n, body) for n, (line, body) in enumerate(lines, 1)]
            if not self.database.IS_SHARED:
                tx.execute_many(r.INSERT_JOB, rows)
            for start in range(0, len(rows) if self.database.IS_SHARED else 0, _TOGETHER):
                chunk = rows[start : start + _TOGETHER]
                tx.execute_many(r.insert_jobs(len(chunk)), [[value for row in chunk for value in row]])
            tx.execute_many(r.INSERT_EVENT, events)
            if not self.database.IS_SHARED:
                return jobs
            times = _columns(tx, [job.id for job in jobs], "submitted")  # which the server may give
            return [replace(job, submitted=times[job.id]) for job in jobs]

        return self.database.write(work, flushed=False, proof=lambda tx: _happened(tx, events[0]))

    def write(self, changes: Sequence[Change], moment: float, lease: Lease | None = None) -> list[Job | Stale]:
        moment = r.moment(moment)
        drafts = [_draft(change, moment) for change in changes]
        if not drafts:
            return []
        # Who leads a place writes jobs of many people, and waits for none of them: one that another holds is left out.
        lock = self.database.FOR_UPDATE if lease is None else self.database.FOR_UPDATE_NOW

        accepted: list[tuple[int, Draft]] = []

        def work(tx: Transaction) -> list[Job | Stale]:
            accepted.clear()
            mark = tx.marks(len(drafts)) - len(drafts)
            if lease is not None:
                self._check(tx, lease)
            ids = [draft.old.id for draft in drafts]
            versions = _versions(tx, ids, lock)
            held = _versions(tx, [id for id in ids if id not in versions], "") if self.database.IS_SHARED else {}
            answers: list[Job | Stale] = []
            for number, draft in enumerate(drafts, 1):
                if draft.old.id in held:
                    answers.append(Held(f"Job {draft.old.id} is held by another session of the database."))
                    continue
                if (stale := _stale(draft.old, versions)) is not None:
                    answers.append(stale)
                    continue
                answers.append(draft.new)
                versions[draft.new.id] = draft.new.version
                if draft.events:
                    accepted.append((mark + number, draft))
            if accepted:
                _put(tx, accepted)
            return answers

        answers = self.database.write(work, proof=lambda tx: not accepted or _happened(tx, accepted[0][1].events[0]))
        if any(isinstance(answer, Held) for answer in answers):
            with suppress(ChipwiseError):
                self.database.write(lambda tx: tx.rows("SELECT end_stalled()"))
        return answers

    def job(self, id: str) -> Job | None:
        r.speakable(id, "The id that is asked for")
        jobs = self._read(self.database.read(lambda tx: tx.rows(f"SELECT {r.BODY} FROM jobs WHERE id = ?", (id,))))
        for job in jobs:
            if isinstance(job, Damaged):
                raise Unread(job)
            return job
        return None

    def named(self, ids: Collection[str]) -> dict[str, Job]:
        names = [id for id in ids if r.is_text(id) and "\0" not in id]  # no other is in any record
        chunks = [names[start : start + _CHUNK] for start in range(0, len(names), _CHUNK)]

        def work(tx: Transaction) -> list[tuple[Any, ...]]:
            sql = f"SELECT {r.BODY} FROM jobs WHERE id IN "
            return [row for chunk in chunks for row in tx.rows(f"{sql}({', '.join('?' * len(chunk))})", chunk)]

        return {one.id: one for one in self._read(self.database.read(work)) if isinstance(one, Job)}

    def jobs(self, wanted: Wanted) -> list[Job]:
        return [one for one in self._all(wanted) if isinstance(one, Job)]

    def damaged(self, wanted: Wanted) -> list[Damaged]:
        return [one for one in self._all(wanted) if isinstance(one, Damaged)]

    def _all(self, wanted: Wanted) -> list[Job | Damaged]:
        sql, values = r.conditions(wanted)
        return self._read(self.database.read(lambda tx: tx.rows(f"SELECT {r.BODY} FROM jobs{sql}", values)))

    def _read(self, rows: Sequence[tuple[Any, ...]]) -> list[Job | Damaged]:
        read: list[Job | Damaged] = []
        for id, version, body in rows:
            job = repair.read(id, version, body)
            read.append(self._mended(id, version, job) if isinstance(job, Unreadable) else job)
        return read

    def _mended(self, id: str, version: int, trouble: Unreadable) -> Job | Damaged:
        job = self.database.read(lambda tx: repair.mended(tx, id, version, trouble))
        return replace(job, is_shared=self.database.IS_SHARED) if isinstance(job, Damaged) else job

    def give_up(self, damaged: Damaged, reason: str, moment: float) -> Job:
        moment, was = r.moment(moment), damaged.job
        ended = tuple(one if one.ended is not None else replace(one, ended=moment) for one in was.attempts)
        event = Over(Phase.FAILED, reason)
        written: list[tuple[object, ...]] = []

        def work(tx: Transaction) -> Job:
            mark = tx.marks(1)
            versions = _versions(tx, [was.id], self.database.FOR_UPDATE)
            has = versions.get(was.id)  # a damaged one may be no number, and was told as 0
            if (
                stale := _stale(was, {**versions, was.id: 0} if isinstance(has, str | bytes | float) else versions)
            ) is not None:
                raise stale
            last = tx.rows(r.LAST_EVENT, (was.id,))[0][0]  # its version may be less than that of what happened
            known = was.version if was.version < LARGEST_COUNT else 0  # else whoever wrote it meant that nothing could follow
            version = 1 + max(known, last if isinstance(last, int) else 0, 0)
            job = replace(was, phase=Phase.FAILED, attempts=ended, ended=moment, reason=reason, version=version)
            tx.execute_many(r.UPDATE_JOB, [r.updated(job, mark, r.body_of(job), has)])
            written[:] = [_event(job, event, moment)]
            tx.execute_many(r.INSERT_EVENT, written)
            tx.execute_many(r.END_ATTEMPTS, [(moment, job.id)])
            return job

        return self.database.write(work, proof=lambda tx: _happened(tx, written[0]))

    def rows(self, wanted: Wanted) -> list[Row]:
        sql, values = r.conditions(wanted)
        rows = self.database.read(lambda tx: tx.rows(f"SELECT {r.LISTED_COLUMNS} FROM jobs{sql}", values))
        return [r.row(values) for values in rows]

    def changed(self, after: Mark, place: str, limit: int) -> tuple[list[Job | Damaged], Mark]:
        if limit < 1:
            raise BadInput(f"{limit} is not a number of jobs to read.")
        r.speakable(place, "The place that is asked for")

        rows, mark = self.database.read(lambda tx: self.database.changes(tx, after, place, limit))
        return self._read(rows), mark

    def events(self, id: str, after: int = 0) -> list[Happened]:
        r.speakable(id, "The id that is asked for")
        rows = self.database.read(lambda tx: tx.rows(r.EVENTS, (id, after)))
        return [
            Happened(number, job, repair.moment(moment), repair.event(number, kind, body))
            for number, job, moment, kind, body in rows
        ]

    def uses(self, since: float, until: float) -> list[Use]:
        since, until = r.moment(since), r.moment(until)
        return [Use(*values) for values in self.database.read(lambda tx: tx.rows(r.USES, (until, since)))]

    def permits(self, place: str, owners: Collection[str]) -> dict[str, Permit] | None:
        if not self.database.IS_SHARED:
            return None
        logins = [owner for owner in owners if r.is_text(owner) and "\0" not in owner]
        rows = self.database.read(lambda tx: tx.rows(r.PERMITS, (place, place, place, logins)))
        permits = {login: Permit(allowed, None if acts else frozenset(secrets)) for login, allowed, acts, secrets in rows}
        return permits | {"": Permit(may_submit=True, secrets=None)}  # only the owner of the tables submits without a name

    def lead(self, place: str, holder: str, now: float, seconds: float) -> Lease | None:
        """One statement compares and sets. `holder` must be another for each process: whoever has the same name is the same."""
        if not holder:
            raise BadInput("The name of the leader is missing.")
        place, holder = r.key(place, "The place"), r.key(holder, "The holder")
        now, until = r.moment(now), r.moment(now + seconds)
        # Not flushed: a power cut ends every controller that could have had it.
        rows = self.database.write(lambda tx: tx.rows(r.LEAD, (place, holder, until, now)), flushed=False)
        return Lease(place, holder, rows[0][0], rows[0][1]) if rows else None

    def leader(self, place: str) -> Lease | None:
        r.speakable(place, "The place that is asked for")
        rows = self.database.read(lambda tx: tx.rows(r.LEADER, (place,)))
        return Lease(place, *rows[0]) if rows and rows[0][0] else None

    def resign(self, lease: Lease) -> None:
        """The row stays, so that its epoch goes on growing."""
        self.database.write(lambda tx: tx.execute_many(r.RESIGN, [(lease.place, lease.holder, lease.epoch)]))

    def close(self) -> None:
        self.database.close()

    def _check(self, tx: Transaction, lease: Lease) -> None:
        lock = self.database.FOR_SHARE  # whoever wants the lease waits until this is written, and then sees it
        rows = tx.rows(f"SELECT holder, epoch FROM leases WHERE place = ?{lock}", (lease.place,))
        if not rows or tuple(rows[0]) != (lease.holder, lease.epoch):
            now = f"{rows[0][0] or 'no one'} does (epoch {rows[0][1]})" if rows else "no one did"
            raise Deposed(f"{lease.holder} (epoch {lease.epoch}) does not lead {lease.place or 'this place'} any more: {now}.")


def _id(id: str) -> str:
    if not id:
        raise BadInput("A job needs an id.")
    return r.key(id, "The id of a job")


def _draft(change: Change, moment: float) -> Draft:
    job, events = change.job, []
    for event in change.events:
        job = after(job, event, moment)
        events.append(_event(job, event, moment))
    return Draft(change.job, job, r.body_of(job) if events else "", tuple(events))


def _event(job: Job, event: Event, at: float) -> tuple[object, ...]:
    return (job.id, job.version, at, *r.parts_of(event, job.id))


def _happened(tx: Transaction, event: tuple[object, ...]) -> bool:
    """Whether it is in the record, as we wrote it: then all that was written with it is."""
    job, version, _, kind, body = event
    return bool(tx.rows(r.HAPPENED, (job, version, kind, body)))


def _versions(tx: Transaction, ids: Sequence[str], lock: str) -> dict[str, int]:
    return _columns(tx, ids, "version", lock)


def _columns(tx: Transaction, ids: Sequence[str], column: str, lock: str = "") -> dict[str, Any]:
    """Always in one order: of two that lock the same jobs, each would else wait for the other."""
    values: dict[str, Any] = {}
    ids = sorted(set(ids))
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        sql = f"SELECT id, {column} FROM jobs WHERE id IN ({', '.join('?' * len(chunk))}) ORDER BY id{lock}"
        values.update(tx.rows(sql, chunk))
    return values


def _stale(job: Job, versions: dict[str, int]) -> Stale | None:
    has = versions.get(job.id)
    if has is None:
        return Stale(f"Job {job.id} is not in the database, or not for you to see.")
    return (
        None
        if has == job.version
        else Stale(f"Job {job.id} was changed by another program: it has version {has}, not {job.version}.")
    )


def _put(tx: Transaction, drafts: Sequence[tuple[int, Draft]]) -> None:
    touched = tx.execute_many(
        r.UPDATE_JOB, [r.updated(draft.new, mark, draft.body, draft.old.version) for mark, draft in drafts]
    )
    assert touched == len(drafts), f"{len(drafts)} jobs were looked at and {touched} written"
    tx.execute_many(r.INSERT_EVENT, [event for _, draft in drafts for event in draft.events])
    if attempts := [values for _, draft in drafts for values in r.attempts(draft.old, draft.new)]:
        tx.execute_many(r.UPSERT_ATTEMPT, attempts)
