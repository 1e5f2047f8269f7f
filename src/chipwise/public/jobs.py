"""Jobs as a program sees them: a handle that outlives the call, and the verbs that start, watch and stop them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from chipwise.errors import BadInput, TryLater, UnknownName
from chipwise.public.calling import verbs
from chipwise.public.opened import Opened
from chipwise.public.plans import NoPlan, Plan
from chipwise.public.records import Record, Table, with_plain_names
from chipwise.public.run_options import RunOptions, run_request
from chipwise.public.workloads import Names
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.runner.record import Row
    from chipwise.workload.common import Common

_LOOK_S = 0.2  # between two looks at a job that is waited for
_DAY_S = 86_400.0
_ROWS = ("id", "phase", "engine", "gpus", "cpus", "attempts", "team", "reason")


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the record, by its id: asking it looks it up anew. `before`: of a pipeline, its earlier stages."""

    id: str
    before: tuple[str, ...] = ()
    session: JobVerbs = field(default_factory=lambda: JobVerbs(), compare=False, repr=False)

    @property
    def data(self) -> Record:
        """As it is recorded now: phase, attempts, places, what it holds."""
        return self.session.describe(self.id)

    @property
    def phase(self) -> str:
        """queued, starting, running, leaving, done, failed or stopped; lost or ended where nothing of it runs any more and that
        is not recorded yet."""
        from chipwise.api.running import asking, sightings

        with asking.opened(self.session.api) as parts:
            return sightings.of_job(self.session.api, parts.record, parts.job(self.id)).phase

    @property
    def over(self) -> bool:
        return bool(_recorded_jobs(self.session, [self.id])[0].phase.over)

    def wait(self, timeout: str | float | None = None) -> str:
        """Until it is over, with the stages before it; the phase that it ended in. Raises `TryLater` after `timeout`."""
        from chipwise.units import parse_seconds

        until = None if timeout is None else time.monotonic() + parse_seconds(timeout)
        while True:
            jobs = _recorded_jobs(self.session, [*self.before, self.id])
            if all(job.phase.over for job in jobs):
                return str(jobs[-1].phase)
            if until is not None and time.monotonic() > until:
                raise TryLater(f"{self.id} is {jobs[-1].phase} after {timeout}.", remedy="Wait again; the job goes on.")
            time.sleep(_LOOK_S)

    def logs(self, *, attempt: int | None = None, rank: int | None = None, tail: int | None = None) -> str:
        """What it printed so far."""
        return self.session.logs(self.id, attempt=attempt, rank=rank, tail=tail)

    def follow(self) -> Iterator[str]:
        """What it prints, piece by piece, until it is over."""
        return self.session.attach(self.id)

    def stop(self, *, now: bool = False, wait: bool = False) -> None:
        """Ask it to save and end, the stages before it as well; `now` gives it no time."""
        self.session.stop(*self._live(), now=now, wait=wait)

    def resume(self) -> None:
        """Go on from its newest checkpoint after it was stopped."""
        self.session.resume(self.id)

    def retry(self) -> None:
        """Start it again after it failed or was stopped."""
        self.session.retry(self.id)

    def _live(self) -> list[str]:
        jobs = _recorded_jobs(self.session, [self.id, *reversed(self.before)])
        return [job.id for job in jobs if not job.phase.over] or [self.id]


def _recorded_jobs(session: Opened, ids: Sequence[str]) -> list[Any]:
    """As they are recorded; where none is over yet somebody is there who carries them out."""
    from chipwise.api.running import asking

    with asking.opened(session.api) as parts:
        return [parts.job(id) for id in ids]


def _ask(session: JobVerbs, jobs: Sequence[str | Job], wish: Any) -> list[Job]:
    from chipwise.api.running import asking

    if not jobs:
        raise BadInput("No job is named.", remedy="Give ids or names; cw.ps() lists them.")
    return [Job(id, session=session) for id in asking.ask(session.api, [_id(job) for job in jobs], wish)]


def _id(job: str | Job) -> str:
    return job.id if isinstance(job, Job) else job


@verbs
class JobVerbs(Opened):
    """Jobs: start, watch, stop."""

    __slots__ = ()

    def run(
        self,
        work: str | Path | Mapping[str, Any] | Common | Plan | NoPlan | Sequence[str],
        **options: Unpack[RunOptions],
    ) -> Job:
        """Run a command (a list of words), a workload or a plan as a job, on this machine unless `engine` names another.

        The job outlives the call: a supervisor watches over it, and starts it again when it is lost. Of a pipeline the handle
        is that of the last stage, and knows those before it.

        >>> job = cw.run(["python", "train.py", "--epochs", "3"], gpus=1)
        >>> job.wait(), job.logs(tail=5)
        """
        from chipwise.api.running import asking

        submitted = asking.run(self.api, run_request(work, options))
        return Job(submitted[-1].id, tuple(job.id for job in submitted[:-1]), self)

    def simulate(
        self,
        work: str | Path | Mapping[str, Any] | Common | Plan | NoPlan | Sequence[str],
        *,
        seed: int = 0,
        **options: Unpack[RunOptions],
    ) -> Record:
        """What would happen to a job, by a virtual clock; nothing is started (`chipwise run --simulate`).

        >>> cw.simulate("workload.yaml", seed=7)
        """
        from chipwise.api.running import asking
        from chipwise.views import played

        return Record(played.view(asking.simulate(self.api, run_request(work, options), seed)))

    def ps(
        self,
        *,
        everything: bool = False,
        phase: Names | None = None,
        owner: str | None = None,
        team: str | None = None,
        project: str | None = None,
        limit: int = 50,
    ) -> Table:
        """List jobs, the newest first: those that wait or run, and those that ended within a day; `everything` for all.

        Jobs of this machine are looked at: one that is recorded as running and is gone has the phase lost or ended. `seen` is
        when a job was last seen alive, and `reason` says so where that is long ago.

        >>> cw.ps(phase="running", team="vision")
        """
        from chipwise.api.running import place, sightings, waiting
        from chipwise.runner.job import Phase
        from chipwise.runner.record import Wanted
        from chipwise.views.jobs import row_view

        wanted = (phase,) if isinstance(phase, str) else tuple(phase or ())
        for name in wanted:
            if name not in list(Phase):
                raise UnknownName("phase", name, nearest(name, list(Phase)), remedy=f"There are: {', '.join(Phase)}.")
        record = place.open_record(self.api, only_reads=True)
        try:
            selection = Wanted(
                phases=frozenset(map(Phase, wanted)),
                owner=owner or "",
                team=team or "",
                project=project or "",
                newest=None if everything else limit,
            )

            def more(rows: Sequence[Row]) -> dict[str, tuple[str, str]]:
                sightings.wake(self.api, rows)
                return waiting.asked_and_why(self.api, record, rows)

            rows, waits, known = sightings.listed(self.api, record, selection, more)
        finally:
            record.close()
        if not everything and not wanted:
            now = time.time()
            rows = [row for row in rows if row.ended is None or now - row.ended < _DAY_S]
        return Table((row_view(waiting.with_reason(row, waits), known.get(row.id)) for row in rows), _ROWS)

    def jobs(
        self,
        *,
        everything: bool = False,
        phase: Names | None = None,
        owner: str | None = None,
        team: str | None = None,
        project: str | None = None,
        limit: int = 50,
    ) -> Table:
        """The same as `ps`, by a word that is easier to remember.

        >>> cw.jobs(everything=True)
        """
        return self.ps(everything=everything, phase=phase, owner=owner, team=team, project=project, limit=limit)

    def find_job(self, name: str) -> Job:
        """The handle of a job that is there: by id, by the beginning of one, or by name (the newest that is called so).

        >>> cw.find_job("train").wait()
        """
        from chipwise.api.running import asking, jobs, stages

        with asking.opened(self.api) as parts:
            record = jobs.find(parts.record, name)
            return Job(record.id, tuple(stages.before(parts, record)), self)

    def describe(self, job: str | Job) -> Record:
        """A job's story: what was asked, why it waits, where it ran, how each attempt ended, predicted beside measured.

        >>> cw.describe("train-3f2a").story
        """
        from chipwise.api.running import asking, jobs, place, sightings
        from chipwise.runner.engine import Room
        from chipwise.views.jobs import compared_view, job_view

        with asking.opened(self.api) as parts:
            config = parts.engine.config
            wanted = jobs.find(parts.record, _id(job))
            sighting = sightings.of_job(self.api, parts.record, wanted)
            room, here = Room(config.gpus, config.cpus), place.is_here(self.api, wanted.spec)
            described = jobs.describe(parts.record, wanted, room, parts.rules, sighting.note, here=here)
        return Record(
            {
                **with_plain_names(job_view(described.job, sighting)),
                "waiting": described.waiting,
                "serves": jobs.serves_at(described.job) or None,
                "compared": compared_view(described.compared),
                "story": [{"at": moment, "text": line} for moment, line in described.story],
            }
        )

    def logs(self, job: str | Job, *, attempt: int | None = None, rank: int | None = None, tail: int | None = None) -> str:
        """What a job printed, all attempts in order; `tail` keeps the last lines.

        >>> print(cw.logs("train-3f2a", tail=20))
        """
        from chipwise.api.running import asking, following, jobs

        with asking.opened(self.api) as parts:
            record = jobs.find(parts.record, _id(job))
            if attempt is not None and not 1 <= attempt <= len(record.attempts):
                raise BadInput(f"{record.id} has {len(record.attempts)} attempts.", remedy="Leave attempt out.")
            following.check_rank(record, attempt, rank)
            if tail is not None:
                return following.tail_of(parts, record, attempt, tail, rank).decode("utf-8", "replace")
            return b"".join(following.printed_by(parts, record, attempt, rank)).decode("utf-8", "replace")

    def attach(self, job: str | Job) -> Iterator[str]:
        """What a job prints, piece by piece, until it is over; of a stage of a pipeline those before it come first.

        >>> for piece in cw.attach("train-3f2a"):
        ...     print(piece, end="")
        """
        from codecs import getincrementaldecoder

        from chipwise.api.running import asking, jobs, stages

        decoder = getincrementaldecoder("utf-8")("replace")
        with asking.opened(self.api) as parts:
            record = jobs.find(parts.record, _id(job))
            for chunk in stages.follow(parts, lambda: parts.job(record.id)):
                yield decoder.decode(chunk)
        if rest := decoder.decode(b"", True):
            yield rest

    def stop(self, *jobs: str | Job, now: bool = False, wait: bool = False) -> list[Job]:
        """Ask jobs to save and end; `now` gives them no time, `wait` returns when they have ended.

        >>> cw.stop("train-3f2a", wait=True)
        """
        from chipwise.runner.job import Wish

        stopping = _ask(self, jobs, Wish.END if now else Wish.STOP)
        if wait:
            for handle in stopping:
                handle.wait()
        return stopping

    def resume(self, *jobs: str | Job) -> list[Job]:
        """Go on with jobs that were stopped, from their newest checkpoint.

        >>> cw.resume("train-3f2a")
        """
        from chipwise.runner.job import Wish

        return _ask(self, jobs, Wish.RUN)

    def retry(self, *jobs: str | Job) -> list[Job]:
        """Start jobs again that failed or were stopped, with a clean slate of tries.

        >>> cw.retry("train-3f2a")
        """
        from chipwise.runner.job import Wish

        return _ask(self, jobs, Wish.RUN)

    def top(self) -> Table:
        """Jobs that run and what they use now: processor, memory, GPU, steps.

        >>> cw.top()
        """
        from chipwise.api.running import asking, watching

        with asking.opened(self.api) as parts:
            return Table([watching.view(standing) for standing in watching.look(parts, 0.2)])
