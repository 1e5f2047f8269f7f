"""What a job printed, wherever it ran, and on as it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from chipwise.adapters.engines.local.folder import ORDER
from chipwise.adapters.engines.local.printed import attempts, follow, parts, printed, tail
from chipwise.adapters.told_logs import LastLines, attempt_logs, follow_told
from chipwise.api.running.installed import package_or_none
from chipwise.api.running.place import is_here
from chipwise.errors import NotFound, OutsideFailed
from chipwise.runner.abilities import NumbersRanks, TellsLogs
from chipwise.runner.job import Job

if TYPE_CHECKING:
    from chipwise.api.running.held import Runtime


def follow_job(runtime: Runtime, look: Callable[[], Job], rank: int | None = None) -> Iterator[bytes]:
    job = look()
    engine = _logs(runtime, job)
    if engine is None:
        _still_here(runtime, job, None)
        return follow(runtime.root, look)
    return follow_told(engine, look, rank)


def follow_from(runtime: Runtime, look: Callable[[], Job], lines: int, rank: int | None = None) -> Iterator[bytes]:
    """The last lines of the newest attempt, and on from there. Elsewhere of one machine or pod, the first unless another is
    named: what follows can only be of one."""
    job = look()
    engine, number = _logs(runtime, job), max(len(job.attempts), 1)
    if engine is None:
        if job.attempts:
            yield tail_of(runtime, job, number, lines)
        yield from follow(runtime.root, look, from_end=True)
        return
    rank, so_far = rank or 0, 0
    end = LastLines(lines)
    if job.attempts:
        with suppress(OutsideFailed):  # not begun yet, or its machine does not answer now: then from the beginning
            for piece in engine.logs(job, number, follow=False, rank=rank):
                so_far += len(piece)
                end.add(piece)
    yield end.text
    yield from follow_told(engine, look, rank, number, so_far)


def _logs(runtime: Runtime, job: Job) -> TellsLogs | None:
    """None: they are files of this machine."""
    engine = runtime.engine_of(job)
    if engine is not None and not isinstance(engine, TellsLogs):
        raise NotFound(
            f"{job.spec.engine} does not provide the output of jobs.", remedy="Let the job write it where you can read it."
        )
    return engine


def check_rank(job: Job, number: int | None, rank: int | None) -> None:
    """Where that can be told before anything is asked for."""
    if rank is not None and isinstance(kind := package_or_none(job.spec.engine), NumbersRanks):
        kind.check_rank(job, number, rank)


def printed_by(runtime: Runtime, job: Job, number: int | None, rank: int | None = None) -> Iterator[bytes]:
    engine = _logs(runtime, job)
    if engine is None:
        _still_here(runtime, job, number)
        return printed(runtime.root, job, number)
    return attempt_logs(engine, job, number, rank)


def tail_of(runtime: Runtime, job: Job, number: int | None, lines: int, rank: int | None = None) -> bytes:
    engine = _logs(runtime, job)
    if engine is None:
        _still_here(runtime, job, number)
        return tail(runtime.root, job, number, lines)
    end = LastLines(lines)
    for piece in attempt_logs(engine, job, number, rank):
        end.add(piece)
    return end.text


def _still_here(runtime: Runtime, job: Job, number: int | None) -> None:
    """An empty output is one thing, one that somebody removed another: an attempt that is kept has its order."""
    folders = attempts(runtime.root, job, number)
    if not job.phase.over or not folders or any((one / ORDER).exists() or parts(one) for one in folders):
        return
    if not is_here(runtime.session, job.spec):
        raise NotFound(
            f"What {job.id} printed is not on this machine.", remedy=f"It ran at {job.spec.place}: run the command there."
        )
    if not any(one.begun is not None for one in job.attempts):
        reason = f": {job.reason}" if job.reason else ""
        raise NotFound(
            f"{job.id} never started, and printed nothing{reason}.", remedy=f"`chipwise describe {job.id}` shows why."
        )
    raise NotFound(f"What {job.id} printed was deleted.", remedy=f"`chipwise describe {job.id}` still shows what happened.")
