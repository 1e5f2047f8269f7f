"""Jobs of a record by what people call them, and whether something can be asked of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from chipwise.errors import BadInput, UnknownName
from chipwise.runner.job import Job, Phase, Wish
from chipwise.runner.record import Record, Wanted
from chipwise.runner.waiting import earlier
from chipwise.spelling import nearest

SEARCHED_ROWS = 500  # rows, in which a name is looked for
SHOWN_IDS = 5  # of many that could be meant
ANEW = "Submit it again with `chipwise run`."


def beginning(name: str) -> str:
    """Of the ids of jobs that are called so, or so and more."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:30].strip("-")


def find(record: Record, text: str) -> Job:
    """By id, by the beginning of one, or the newest of a name."""
    if (job := record.job(text)) is not None:
        return job
    rows = record.rows(Wanted(name=text, newest=SEARCHED_ROWS)) if text else []
    matches = [row for row in rows if row.name == text]
    if matches:
        rows = matches[:1]  # the newest of that name
    if len(rows) == 1 and (job := record.job(rows[0].id)) is not None:
        return job
    if stages := next(_runs(record, text), []):
        ids = _listing([one.id for one in reversed(stages)])
        raise BadInput(f"{text} is a pipeline; the stages of its newest run are {ids}.", remedy="Name one of them.")
    if rows:
        ids = _listing([row.id for row in rows])
        raise BadInput(f"{len(rows)} jobs begin with {text!r}: {ids}.", remedy="Give more characters of the id.")
    known = [row.id for row in record.rows(Wanted(newest=500))]
    raise UnknownName("job", text, nearest(text, known), remedy="`chipwise ps --all` lists all.")


def _listing(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
    return f"{', '.join(ids[:SHOWN_IDS])}{more}"


def targets(record: Record, text: str, wish: Wish) -> list[Job]:
    """The job of that id; else one that is called so and of which this can be asked; else, of a pipeline that is, those stages
    of which it can, the last first: so none starts when the one before it goes. Where of none it can, that is told."""
    if not text or record.job(text) is not None:
        return [find(record, text)]
    rows = [row for row in record.rows(Wanted(name=text, newest=SEARCHED_ROWS)) if row.name == text]
    live = [row for row in rows if not row.phase.over]
    job = record.job((live if wish.stops and live else rows)[0].id) if rows else None
    if job is not None and _can(job, wish):
        return [job]
    runs = _runs(record, text)
    if not (newest := next(runs, [])):
        return [job or find(record, text)]
    older = runs if wish.stops else ()  # an older run is not started again unless its stages are named
    for run in chain([newest], older):
        if eligible := [one for one in run if _can(one, wish)]:
            return eligible
    if job is not None:
        return [job]
    raise _none(text, newest, wish)


def _runs(record: Record, pipeline: str) -> Iterator[list[Job]]:
    """Its stages, the last first; of the newest run, then of those older ones of which something is not over."""
    wanted = Wanted(name=beginning(pipeline), newest=SEARCHED_ROWS) if pipeline else None
    rows = [row for row in record.rows(wanted) if row.name.startswith(f"{pipeline}-")] if wanted else []
    first = True
    for _, at_once in groupby(rows, lambda row: row.submitted):
        run_rows = list(at_once)
        if not first and all(row.phase.over for row in run_rows):
            continue
        jobs = [job for row in run_rows if (job := record.job(row.id)) is not None and job.spec.pipeline == pipeline]
        for workload in dict.fromkeys(job.spec.workload for job in jobs):
            first = False
            yield [job for job in jobs if job.spec.workload == workload]


def _can(job: Job, wish: Wish) -> bool:
    """Whether this can be asked of it."""
    again = (job.wish.stops and not job.phase.over) or job.phase in (Phase.FAILED, Phase.STOPPED)
    return not job.phase.over if wish.stops else again


def _none(pipeline: str, stages: Sequence[Job], wish: Wish) -> BadInput:
    states = ", ".join(f"{one.id} is {one.phase}" for one in reversed(stages))
    ended = [one for one in stages if one.phase is not Phase.DONE]
    if wish.stops:
        again = f"`chipwise {_verb(ended)} {pipeline}` starts those again that are not done."
        return BadInput(f"All stages of {pipeline} are over: {states}.", remedy=again if ended else ANEW)
    remedy = "`chipwise describe` shows what happened to each." if ended else ANEW
    return BadInput(f"No stage of the newest run of {pipeline} failed or was stopped: {states}.", remedy=remedy)


def _verb(ended: Sequence[Job]) -> str:
    """What one asks of jobs that are to go on: the word for those that were stopped, where all were."""
    return "resume" if all(one.phase is Phase.STOPPED for one in ended) else "retry"


def in_order(record: Record, jobs: Sequence[Job]) -> list[Job]:
    """Those that are to run again, what comes before first. One alone would fail at once where a job before it is over and not
    done: that one must be named too."""
    by_id = {job.id: job for job in jobs}
    for job in by_id.values():
        ended = [one for one in _all_before(record, job) if one.phase.over and one.phase is not Phase.DONE]
        if missing := [one for one in ended if one.id not in by_id]:
            verb = _verb((*ended, job))
            names = " ".join(one.id for one in (*ended, job))
            raise BadInput(
                f"{job.id} comes after {missing[-1].id}, which is {missing[-1].phase}.",
                remedy=f"`chipwise {verb} {names}` starts them in their order.",
            )
    order = {one.id: None for job in by_id.values() for one in (*_all_before(record, job), job)}
    return [by_id[id] for id in order if id in by_id]


def _all_before(record: Record, job: Job) -> list[Job]:
    """What it comes after, and what that comes after, each once and before what waits for it."""
    ordered: dict[str, Job] = {}
    seen, still = {job.id}, [(one, False) for one in reversed(earlier(record, job))]
    while still:  # each is read once, by however many ways one comes to it
        current, beyond = still.pop()
        if beyond:
            ordered[current.id] = current
        elif current.id not in seen:
            seen.add(current.id)
            still += [(current, True), *((each, False) for each in reversed(earlier(record, current)))]
    return list(ordered.values())


def allowed(job: Job, wish: Wish) -> None:
    if wish.stops and job.phase.over:
        verb = "resume` continues it" if job.phase is Phase.STOPPED else "retry` starts it again"
        again = ANEW if job.phase is Phase.DONE else f"`chipwise {verb}."
        raise BadInput(f"{job.id} is {job.phase} already.", remedy=again)
    if wish is Wish.RUN and not job.phase.over and job.wish is Wish.RUN:
        raise BadInput(
            f"{job.id} is {job.phase}; it does not need to be started again.", remedy="`chipwise describe` shows what happened."
        )
    if wish is Wish.RUN and not (job.spec.command or job.spec.objects or job.spec.places):  # its database row was damaged
        raise BadInput(f"{job.id}: Its command is no longer known.", remedy=ANEW)
    if wish is Wish.RUN and job.phase is Phase.DONE:
        raise BadInput(f"{job.id} is done.", remedy=ANEW)
