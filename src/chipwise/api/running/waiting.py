"""Why jobs wait, for a list of them and for who follows one: by what runs, without reading all that wait."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chipwise.api.running import controlling, place
from chipwise.api.running.installed import runs_here
from chipwise.errors import ChipwiseError
from chipwise.runner.engine import Room
from chipwise.runner.job import PLACED, Job, Phase
from chipwise.runner.queue import why_short
from chipwise.runner.record import Row, Unread, Wanted
from chipwise.runner.story import waits as waits

if TYPE_CHECKING:
    from chipwise.api.running.held import Runtime
    from chipwise.api.session.wiring import Session
    from chipwise.runner.record import Record

ROW_LIMIT = 50  # rows: each is read
LOOKS_S = 0.5
PATIENT_S = 1.5  # after which one who waits wants to know why


def asked_and_why(session: Session, record: Record, rows: Sequence[Row]) -> dict[str, tuple[str, str]]:
    """By id the GPUs that it asks for and what stands in its way, of queued jobs of this machine; of those elsewhere the
    stages that come before. A list is shown whatever happens: what cannot be told is left out."""
    waiting = [row for row in rows if row.phase is Phase.QUEUED]
    queued = [row for row in waiting if not runs_here(row.engine) or place.is_here(session, row)][:ROW_LIMIT]
    if not queued:
        return {}
    try:
        devices = place.given_out(session)  # nobody asks the driver for a list
        jobs = [job for row in queued if (job := record.job(row.id)) is not None]
        places = {job.spec.place for job in jobs if runs_here(job.spec.engine)} if devices is not None else set()
        placed = {where: record.jobs(Wanted(phases=PLACED, place=where)) for where in places}
        rules, now = place.rules(session), time.time()
        answers = {}
        for job in jobs:
            reason, before = job.waiting, earlier(record, job)
            if not runs_here(job.spec.engine):
                reason = why_short(job, before, Room(), rules, now) if before else reason
            elif devices is not None:
                room = Room(tuple(devices["gpus"]), tuple(devices["cpus"]))
                reason = why_short(job, _each_once(placed[job.spec.place], before), room, rules, now) or reason
            answers[job.id] = (_gpu_count(job), reason)
        return answers
    except ChipwiseError:
        return {}


def back_since(record: Record, rows: Sequence[Row]) -> dict[str, float]:
    """By id when its latest attempt ended, of jobs that wait for another one."""
    ends: dict[str, float] = {}
    for row in [row for row in rows if row.phase is Phase.QUEUED and row.attempts][:ROW_LIMIT]:
        try:
            job = record.job(row.id)
        except Unread:
            continue
        if job is not None and job.attempt is not None and job.attempt.ended is not None:
            ends[row.id] = job.attempt.ended
    return ends


def earlier(record: Record, job: Job) -> list[Job]:
    """What it comes after and is not done, here or elsewhere."""
    jobs: list[Job | None] = []
    for id in job.spec.after:
        try:
            jobs.append(record.job(id))
        except Unread as error:  # of a damaged one nobody knows that it was done
            jobs.append(error.damaged.job)
    return [one for one in jobs if one is not None and one.phase is not Phase.DONE]


def _each_once(placed: Sequence[Job], before: Sequence[Job]) -> list[Job]:
    """A stage that comes before may be one of those that run here."""
    return list({one.id: one for one in (*placed, *before)}.values())


def _gpu_count(job: Job) -> str:
    needs = job.spec.needs
    gpus = str(needs.gpus) if needs.fewest_gpus >= needs.gpus else f"{needs.fewest_gpus} to {needs.gpus}"
    return gpus if needs.machines == 1 else f"{needs.machines} x {gpus}"


class Watched:
    """What somebody who follows a job is told before it runs: why it waits, when that changes, and which stages are done."""

    def __init__(self, held: Runtime, before: Sequence[str] = ()) -> None:
        self._held, self._open, self._said, self._next = held, list(before), "", 0.0
        self._free = 0.0  # since when nothing that we see stands in its way

    def news(self, job: Job) -> list[str]:
        """Asked again and again; it looks now and then, and once more at the end. At the stage that is to end next it always
        looks: that it is over is told before the next one prints."""
        now = time.time()
        due = now >= self._next or job.phase.over
        lines = []
        for id in self._open[: None if due else 1]:
            stage = self._held.record.job(id)
            if stage is None or stage.phase.over:
                self._open.remove(id)
                if stage is not None:
                    lines.append(f"{id} {stage.phase}{f': {stage.reason}' if stage.reason else ''}")
        if not due:
            return lines
        self._next = now + LOOKS_S
        reason = self._reason(job, now)
        if reason and reason != self._said:
            self._said = reason
            lines.append(f"{job.id} {waits(reason)}")
        return lines

    def _reason(self, job: Job, now: float) -> str:
        """Of what is tried again something is said already; what starts at once needs no reason."""
        if job.phase in (Phase.STARTING, Phase.RUNNING) and not runs_here(job.spec.engine):
            return job.waiting  # of one that runs: why some of it does not
        if job.phase is not Phase.QUEUED or job.not_before > now or now - job.submitted < PATIENT_S:
            return ""
        record, config = self._held.record, self._held.engine.config
        if (silent := controlling.unanswered(self._held.session, job.spec.place)) is not None:
            return silent.summary
        before = earlier(record, job)
        if not place.is_here(self._held.session, job.spec):
            return why_short(job, before, Room(), self._held.rules, now) if before else job.waiting
        placed = record.jobs(Wanted(phases=PLACED, place=job.spec.place))
        reason = why_short(job, _each_once(placed, before), Room(config.gpus, config.cpus), self._held.rules, now)
        self._free = 0.0 if reason else self._free or now
        return reason or ("others are ahead of it" if now - self._free > PATIENT_S else "")
