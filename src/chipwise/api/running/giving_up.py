"""`forget --damaged`: a job that the record cannot read any more is given up, so that it is over for everybody.

Nobody knows enough of it to start or save it. What may still run of it is ended first, by its id and the number of its attempt,
and it is only called over when its engine says that nothing of it is left. Of another machine, which may be gone, and of
another system user nothing can be ended from here: whoever the record lets clears the row all the same, and is told what stays;
the controller that leads the place, or the next one, ends it (`runner/left_running`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chipwise.api.running import jobs, place, submitting
from chipwise.api.running.held import Runtime, opened
from chipwise.api.running.installed import runs_here
from chipwise.errors import BadInput, TryLater
from chipwise.runner.engine import End, Engine, State
from chipwise.runner.job import Phase, Wish
from chipwise.runner.record import Damaged, Stale, Unread

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

ENDS_WITHIN_S = 120.0
LOOKS_S = 0.3


@dataclass(frozen=True, slots=True)
class GivenUp:
    damaged: Damaged
    instead: str = ""  # how it stands, where it could be read again before it was given up
    left: str = ""  # what could not be reached from here, and may still run or lie there


def give_up(session: Session, names: Sequence[str], *, dry_run: bool = False) -> list[GivenUp]:
    """All are found before the first is given up."""
    if not names:
        raise BadInput("No jobs are given.", remedy="Name them; `chipwise ps` shows which are damaged.")
    with opened(session) as runtime:
        damaged = [_damaged(runtime, name) for name in names]
        return [GivenUp(one, left=_elsewhere(runtime, one)) if dry_run else _given_up(runtime, one) for one in damaged]


def _given_up(runtime: Runtime, damaged: Damaged) -> GivenUp:
    left = _elsewhere(runtime, damaged) or _end(runtime, damaged)
    author = runtime.record.login or submitting.submitter()
    try:
        runtime.record.give_up(damaged, f"its database row was damaged, and {author} gave it up", time.time())
    except Stale as error:
        return GivenUp(damaged, _ended_as_read(runtime, damaged, author, error))
    return GivenUp(damaged, left=left)


def _damaged(runtime: Runtime, name: str) -> Damaged:
    try:
        job = jobs.find(runtime.record, name)
    except Unread as error:
        return error.damaged
    raise BadInput(f"{job.id} is not damaged.", remedy="Leave --damaged out; `chipwise stop` stops a job.")


def _ended_as_read(runtime: Runtime, damaged: Damaged, author: str, error: Stale) -> str:
    """Its controller still knew it, and wrote all of it anew when it saw it end. It would be started again like any other that
    was lost, so it is ended as one that can be read."""
    try:
        job = runtime.record.job(damaged.id)
    except Unread:
        job = None
    if job is None:
        raise TryLater(f"{damaged.id} changed in the meantime, and was not given up.", remedy="Try again.") from error
    with suppress(BadInput):  # over already
        job = jobs.ask(runtime.record, job, Wish.END, author, "its database row was damaged")
        runtime.awake(job)
    stands = f"is {job.phase}" if job.phase.over else "is being killed"
    return f"{stands}, and is no longer damaged: its controller wrote it again"


def _elsewhere(runtime: Runtime, damaged: Damaged) -> str:
    """Of one that belongs to another machine, or to another data directory of this one: what is not looked at."""
    job = damaged.job
    if job.phase.over or not job.attempts or not runs_here(job.spec.engine) or place.is_here(runtime.session, job.spec):
        return ""
    return f"the controller of {job.spec.place} will kill its remaining processes; its files (run/jobs/{job.id}) stay"


def _end(runtime: Runtime, damaged: Damaged) -> str:
    """What of it could not be reached; empty: nothing of it runs any more."""
    job = damaged.job
    if job.phase.over or not job.attempts:
        return ""
    engine: Engine = runtime.engine_of(job) or runtime.local_engine(job)
    starting = replace(job, phase=Phase.STARTING)
    until = time.monotonic() + ENDS_WITHIN_S
    while True:
        try:
            engine.do(End(job))
        except PermissionError as error:  # the data directory is another system user's
            return f"its controller will kill its remaining processes, since you may not write to {error.filename}"
        sight = engine.look([starting], time.time()).attempts[(job.id, len(job.attempts))]
        if sight.state not in (State.PENDING, State.RUNNING):
            return ""
        if time.monotonic() > until:
            raise TryLater(f"Some processes of {job.id} still run, so it was not given up.", remedy="Try again.")
        time.sleep(LOOKS_S)
