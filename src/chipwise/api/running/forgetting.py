"""`forget`: what jobs that are over left on this machine goes; what the record says of them stays.

The record is what money and machine hours are reckoned from, and its events are only ever added: no store deletes them, whoever
asks. So this is about room on the disk, and a job that was forgotten is still listed and described.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.api.running import jobs, place
from chipwise.errors import BadInput, OutsideFailed
from chipwise.runner.job import Job, Phase
from chipwise.runner.record import Unread

if TYPE_CHECKING:
    from pathlib import Path

    from chipwise.api.session.wiring import Session


NOTHING = "it has no files on this machine"


@dataclass(frozen=True, slots=True)
class Forgotten:
    id: str
    bytes: int
    left: str = ""  # why nothing of it was removed
    kept: int = 0  # bytes of checkpoints that stay, since it can go on from them
    phase: Phase = Phase.DONE


def forget(
    session: Session,
    names: Sequence[str],
    older_s: float | None = None,
    *,
    checkpoints: bool = False,
    dry_run: bool = False,
) -> list[Forgotten]:
    """Named ones, or all that ended at least `older_s` ago; with both, those of the named that did. Never one that is not over:
    where one of the named is not, nothing is removed at all. A job that failed or was stopped is over and can go on all the
    same: its checkpoints go when it is named, or with `checkpoints`. A damaged one is left alone."""
    if not names and older_s is None:
        raise BadInput("No jobs are given.", remedy="Name them, or give --older-than, such as 30d.")
    roots = [session.config.run_dir / "jobs", session.config.run_dir / "kubernetes-logs"]
    record = place.open_record(session)
    chosen: dict[str, Job] = {}
    unread: list[Forgotten] = []
    try:
        if names:
            chosen = {job.id: job for job in (jobs.find(record, name) for name in names)}
            for job in chosen.values():
                if not job.phase.over:
                    stop = "stop --now" if job.wish.stops else "stop"
                    raise BadInput(f"{job.id} is {job.phase}.", remedy=f"`chipwise {stop} {job.id}` ends it first.")
        else:
            ids = sorted({one.name for root in roots if root.is_dir() for one in root.iterdir() if one.is_dir()})
            for id in ids:
                try:
                    candidate = record.job(id)
                except Unread as error:
                    unread.append(Forgotten(id, 0, "its database row is damaged", phase=error.damaged.job.phase))
                    continue
                if candidate is not None and candidate.phase.over and _old(candidate, older_s):
                    chosen[candidate.id] = candidate
        all_of = bool(names) or checkpoints
        results = [_forgotten(job, roots, older_s, all_of or job.phase is Phase.DONE, dry_run) for job in chosen.values()]
        return [one for one in results if names or one.left != NOTHING] + unread  # of all, those forgotten before are not told
    finally:
        record.close()


GOES_WITHIN_S = 3.0


def _old(job: Job, older_s: float | None) -> bool:
    return older_s is None or (job.ended is not None and time.time() - job.ended >= older_s)


def _forgotten(job: Job, roots: Sequence[Path], older_s: float | None, checkpoints: bool, dry_run: bool) -> Forgotten:
    from chipwise.adapters.engines.local import forgetting

    if not _old(job, older_s):
        return Forgotten(job.id, 0, "it ended later", phase=job.phase)
    removed = 0
    for root in roots:
        try:
            until = time.monotonic() + GOES_WITHIN_S
            while (freed := forgetting.forget(root, job.id, checkpoints=checkpoints, dry_run=dry_run)) is None:
                if time.monotonic() >= until:
                    break
                time.sleep(0.05)  # a supervisor lives a moment longer than its job
        except OSError as error:
            raise OutsideFailed(f"{job.id}: {error.filename or root} could not be removed: {error.strerror}.") from error
        if freed is None:
            return Forgotten(job.id, removed, "some of its processes still run", phase=job.phase)
        removed += freed
    remaining = 0 if checkpoints else sum(forgetting.checkpoints_of(root, job.id) for root in roots)
    left = "" if removed else "only its checkpoints are here" if remaining else NOTHING
    return Forgotten(id=job.id, bytes=removed, left=left, kept=remaining, phase=job.phase)
