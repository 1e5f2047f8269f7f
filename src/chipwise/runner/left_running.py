"""Attempts that may run on though the record does not say so: nothing is decided about them, and their devices are taken.

Of a damaged job nothing is ordered. What runs of one that the record calls over, since somebody gave it up from elsewhere or
wrote so, is ended; until it is gone its devices are nobody else's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from chipwise.runner.abilities import ListsLiving
from chipwise.runner.engine import End, Engine, Seen, Sight, State
from chipwise.runner.job import Job, Phase
from chipwise.runner.record import Record, Unread


@dataclass(slots=True)
class LeftRunning:
    _jobs: dict[tuple[str, int], Job] = field(default_factory=dict)  # over, each with the attempt that may run

    def hear(self, known: Job | None, job: Job) -> None:
        """What another wrote; `known`: the job as it was, where it had an attempt under way."""
        if known is not None and known.phase.placed and job.phase.over:
            self._add(replace(job, attempts=job.attempts or known.attempts))

    def find(self, record: Record, engine: Engine) -> None:
        """For whoever begins to lead: what its engine sees alive, of jobs that this record calls over."""
        self._jobs.clear()
        if not isinstance(engine, ListsLiving):
            return
        for id, number in engine.living():
            with suppress(Unread):
                job = record.job(id)
                if job is not None and job.phase.over and job.spec.place == engine.place and number <= len(job.attempts):
                    self._add(replace(job, attempts=job.attempts[:number]))

    def _add(self, job: Job) -> None:
        if job.attempts:
            self._jobs[(job.id, len(job.attempts))] = job

    @property
    def jobs(self) -> list[Job]:
        return unacted(self._jobs.values())

    def ends(self, seen: Seen) -> list[End]:
        """Of those that are seen alive; the others are forgotten."""
        self._jobs = {key: job for key, job in self._jobs.items() if _lives(seen, job)}
        return [End(job) for job in self._jobs.values()]


def unacted(jobs: Iterable[Job]) -> list[Job]:
    """As ones that start: nobody acts on what is seen of them, so that an engine that finds nothing need not ask further."""
    return [replace(job, phase=Phase.STARTING) for job in jobs]


def without(seen: Seen, jobs: Sequence[Job]) -> tuple[Seen, int]:
    """What is seen without what these hold, and how many of them live."""
    living = [job for job in jobs if _lives(seen, job)]
    gpus, cpus = set[int](), set[int]()
    for job in living:
        attempt, holds = job.attempts[-1], _sight(seen, job).holds
        gpus.update(holds.gpus or attempt.devices)
        cpus.update(holds.cpus or attempt.cpus)
    return (replace(seen, room=seen.room.without(gpus, cpus)) if gpus or cpus else seen), len(living)


def _sight(seen: Seen, job: Job) -> Sight:
    return seen.attempts.get((job.id, len(job.attempts)), Sight(State.ABSENT))


def _lives(seen: Seen, job: Job) -> bool:
    return _sight(seen, job).state in (State.PENDING, State.RUNNING)
