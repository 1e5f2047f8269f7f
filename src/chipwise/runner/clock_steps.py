"""Times that a controller wrote down before somebody set the wall clock, in the clock of today.

A controller decides by the time of day, since it shares its record with people and other machines. It also hears of a clock
that nobody sets. Where the two move apart between two turns, the wall clock was set: what was written before then is moved
by as much, for decisions only, so that no wait, no grace and no patience becomes longer or shorter. The record keeps what was
written.

Times that others wrote, such as when a machine came, are left as they are; an engine on this machine says how long an attempt
lasted (`Sight.lasted_s`), which also holds for a controller that started after the clock was set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from chipwise.runner.job import Attempt, Job, LeaveReason

LEAST_S = 1.0  # a clock that is only steered moves by less between two turns


@dataclass(frozen=True, slots=True)
class _Moved:
    """Times of a job as they are in the record, and by how much each was moved."""

    not_before: tuple[float, float]
    placed: tuple[float, float] | None
    leave_by: tuple[float, float] | None


@dataclass(slots=True)
class ClockSteps:
    _last: tuple[float, float] | None = None  # time of day and the other clock, at the turn before
    _moved: dict[str, _Moved] = field(default_factory=dict)

    def hear(self, now: float, elapsed: float, jobs: Mapping[str, Job]) -> float:
        """At each turn, with the jobs as they stood before it; by how many seconds the wall clock was set."""
        last, self._last = self._last, (now, elapsed)
        if last is None or elapsed <= last[1]:  # nobody gave us another clock
            return 0.0
        by = (now - last[0]) - (elapsed - last[1])
        if abs(by) < LEAST_S:
            return 0.0
        self._moved = {id: _moved(job, self._moved.get(id), by) for id, job in jobs.items()}
        return by

    def today(self, jobs: Mapping[str, Job]) -> Mapping[str, Job]:
        if not self._moved:
            return jobs
        return {id: _seen(job, self._moved[id]) if id in self._moved else job for id, job in jobs.items()}


def _moved(job: Job, before: _Moved | None, by: float) -> _Moved:
    last = job.attempts[-1] if job.attempts else None
    return _Moved(
        not_before=_sum(job.not_before, before.not_before if before else None, by),
        placed=_sum(last.placed, before.placed if before else None, by) if last else None,
        leave_by=_sum(job.leave_by, before.leave_by if before else None, by) if job.leave_by is not None else None,
    )


def _sum(recorded: float, before: tuple[float, float] | None, by: float) -> tuple[float, float]:
    return recorded, by + (before[1] if before is not None and before[0] == recorded else 0.0)


def _seen(job: Job, moved: _Moved) -> Job:
    """What was written since then is in the clock of today already; a notice names a time of its cloud's clock."""
    attempts: tuple[Attempt, ...] = job.attempts
    if attempts and moved.placed is not None:
        last = attempts[-1]
        attempts = (*attempts[:-1], replace(last, placed=_today(last.placed, moved.placed)))
    leave_by = job.leave_by
    if leave_by is not None and moved.leave_by is not None and job.leaving is not LeaveReason.NOTICE:
        leave_by = _today(leave_by, moved.leave_by)
    return replace(job, attempts=attempts, not_before=_today(job.not_before, moved.not_before), leave_by=leave_by)


def _today(recorded: float, moved: tuple[float, float]) -> float:
    return recorded + moved[1] if recorded == moved[0] else recorded
