"""What the stages of a pipeline print, for who follows one of them: each in its turn, under its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from chipwise.api.running import following
from chipwise.errors import NotFound
from chipwise.runner.job import Job

if TYPE_CHECKING:
    from chipwise.api.running.held import Runtime


def before(runtime: Runtime, job: Job) -> list[str]:
    """Stages of the same pipeline, in an order in which they may run. They were submitted in one go; another job that was to be
    done first is none of them."""
    ids: dict[str, None] = {}
    for id in job.spec.after:
        stage = runtime.record.job(id)
        if (
            stage is not None
            and job.spec.workload
            and (stage.spec.workload, stage.submitted) == (job.spec.workload, job.submitted)
        ):
            ids |= dict.fromkeys([*before(runtime, stage), id])
    return list(ids)


def follow(
    runtime: Runtime,
    look: Callable[[], Job],
    lines: int | None = None,
    rank: int | None = None,
    tell: Callable[[], object] = bool,
) -> Iterator[bytes]:
    """The stages before a job to their end, and then the job itself; those that run side by side come one after the other, each
    whole. With `lines` from now on: stages that are over are passed over, and of what was printed the last lines are shown.
    `tell` is called again and again while a stage is shown, and `look` while the job is."""
    job = look()
    stages = [id for id in before(runtime, job) if lines is None or not runtime.job(id).phase.over]
    for id in stages:

        def look_at(id: str = id) -> Job:
            tell()
            return runtime.job(id)

        yield from _headed(runtime.job(id), _or_why_not(_follow_stage(runtime, look_at, lines, None)))
        tell()
    printed = _follow_stage(runtime, look, lines, rank)
    yield from _headed(job, printed) if stages else printed


def _follow_stage(held: Runtime, look: Callable[[], Job], lines: int | None, rank: int | None) -> Iterator[bytes]:
    return following.follow_job(held, look, rank) if lines is None else following.follow_from(held, look, lines, rank)


def _or_why_not(printed: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from printed
    except NotFound as error:  # forgotten meanwhile, or on another machine
        yield f"{error}\n".encode()


def _headed(job: Job, printed: Iterator[bytes]) -> Iterator[bytes]:
    """A stage that prints nothing, or never runs, has no heading."""
    for count, chunk in enumerate(printed):
        if not count:
            yield f"--- {job.spec.name}\n".encode()
        yield chunk
