"""What happened to jobs that were played through on a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.catalog.offer import Purchase
from chipwise.runner.job import Job
from chipwise.runner.record import Happened


@dataclass(frozen=True, slots=True)
class Course:
    """How one job went."""

    job: Job
    hours: Mapping[Purchase, float]  # machine-hours
    usd: float
    interruptions: int  # attempts that were lost or had to leave
    lost_work_s: float  # steps that were done and not saved
    until: float
    guessed_s: float | None = None  # how long it was taken to run, where nobody said

    @property
    def late_s(self) -> float | None:
        """After its deadline, negative before it; None where it has none. One that is not over counts as if it ended now."""
        deadline = self.job.spec.deadline
        return None if deadline is None else (self.job.ended if self.job.ended is not None else self.until) - deadline


@dataclass(frozen=True, slots=True)
class Played:
    begins: float
    until: float
    is_over: bool  # all jobs
    courses: tuple[Course, ...]
    story: tuple[Happened, ...]
    turns: int = 0
    trouble: tuple[str, ...] = ()  # each that an engine gave, once
    asides: tuple[str, ...] = ()  # what of the whole was not played, in words

    @property
    def usd(self) -> float:
        return sum(one.usd for one in self.courses)

    @property
    def interruptions(self) -> int:
        return sum(one.interruptions for one in self.courses)

    @property
    def lost_work_s(self) -> float:
        return sum(one.lost_work_s for one in self.courses)

    @property
    def hours(self) -> dict[Purchase, float]:
        totals: dict[Purchase, float] = {}
        for course in self.courses:
            for purchase, hours in course.hours.items():
                totals[purchase] = totals.get(purchase, 0.0) + hours
        return totals

    @property
    def late(self) -> tuple[Course, ...]:
        return tuple(one for one in self.courses if (one.late_s or 0.0) > 0)
