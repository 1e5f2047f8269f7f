"""What a job waits for and since when, as far as its record says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chipwise.runner.job import Job, Lack, Phase
from chipwise.runner.record import Record, Row, Unread

ROW_LIMIT = 50  # rows: each is read
UNSAID = "its controller has not said yet what it waits for"


def with_reason(row: Row, waits: Mapping[str, tuple[str, str]]) -> Row:
    """With why it waits, by `asked_and_why`."""
    return replace(row, reason=waits[row.id][1]) if row.id in waits else row


def phase_since(record: Record, rows: Sequence[Row]) -> dict[str, float]:
    """By id, since when it waits or starts, of those of which their row does not say that."""
    moments: dict[str, float] = {}
    unsaid = [row for row in rows if row.phase is Phase.QUEUED or (row.phase.placed and row.begun is None)]
    for row in unsaid[:ROW_LIMIT]:
        try:
            job = record.job(row.id)
        except Unread:
            continue
        if job is not None and (moment := _since(job)) is not None:
            moments[row.id] = moment
    return moments


def _since(job: Job) -> float | None:
    """When it was placed; of one that waits, when its attempt ended or when its owner asked for another. None: as submitted."""
    last = job.attempt
    if job.phase.placed:
        return last.placed if last is not None else None
    is_wished = job.forgiven == len(job.attempts) and job.not_before > job.submitted  # else the time of a try that is to come
    moments = [last.ended if last is not None else None, job.not_before if is_wished else None]
    return max((one for one in moments if one is not None), default=None)


def earlier(record: Record, job: Job) -> list[Job]:
    """What it comes after and is not done, here or elsewhere."""
    jobs: list[Job | None] = []
    for id in job.spec.after:
        try:
            jobs.append(record.job(id))
        except Unread as error:  # of a damaged one nobody knows that it was done
            jobs.append(error.damaged.job)
    return [one for one in jobs if one is not None and one.phase is not Phase.DONE]


def each_once(placed: Sequence[Job], before: Sequence[Job]) -> list[Job]:
    """A stage that comes before may be one of those that run here."""
    return list({one.id: one for one in (*placed, *before)}.values())


def gpu_count(job: Job) -> str:
    needs = job.spec.needs
    gpus = str(needs.gpus) if needs.fewest_gpus >= needs.gpus else f"{needs.fewest_gpus} to {needs.gpus}"
    return gpus if needs.machines == 1 else f"{needs.machines} x {gpus}"


def said_by_controller(record: Record, job: Job, now: float, *, here: bool) -> str:
    """Why a queued job waits, where whoever asks cannot know it: of a record of several people each sees a part, and of another
    machine (not `here`) nobody knows what is free. Empty: it can be reckoned from what is read."""
    if job.ready_at(now) > now:
        return ""
    if job.waiting and (job.lack is Lack.PERMIT or record.login or not here):
        return job.waiting
    return UNSAID if record.login or not here else ""
