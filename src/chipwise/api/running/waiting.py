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
from chipwise.runner.record import Row, Wanted
from chipwise.runner.story import waits as waits
from chipwise.runner.waiting import ROW_LIMIT, each_once, earlier, gpu_count, said_by_controller
from chipwise.runner.waiting import phase_since as phase_since
from chipwise.runner.waiting import with_reason as with_reason

if TYPE_CHECKING:
    from chipwise.api.running.held import Runtime
    from chipwise.api.session.wiring import Session
    from chipwise.runner.record import Record

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
            elif not before and (said := said_by_controller(record, job, now, here=True)):
                reason = said
            elif devices is not None:
                room = Room(tuple(devices["gpus"]), tuple(devices["cpus"]))
                reason = why_short(job, each_once(placed[job.spec.place], before), room, rules, now) or reason
            answers[job.id] = (gpu_count(job), reason)
        return answers
    except ChipwiseError:
        return {}


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
        if not before and job.waiting and (said := said_by_controller(record, job, now, here=True)):
            return said
        placed = record.jobs(Wanted(phases=PLACED, place=job.spec.place))
        room = Room(place.usable_gpus(config), config.cpus)
        reason = why_short(job, each_once(placed, before), room, self._held.rules, now)
        self._free = 0.0 if reason else self._free or now
        if reason or now - self._free <= PATIENT_S:
            return reason
        queued = record.rows(Wanted(phases=frozenset({Phase.QUEUED}), place=job.spec.place))
        return "others are ahead of it" if any(row.id != job.id for row in queued) else ""  # else its controller is slow
