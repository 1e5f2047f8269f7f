"""What rules for spot machines come to on traces, side by side, and how long the job is that they are compared on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from chipwise.errors import BadInput
from chipwise.scale.spot import ROUNDING_H, Hours
from chipwise.scale.traces import Series
from chipwise.text import plural

JOB_H, DEADLINES_H = 48.0, (52.0, 70.0)  # of the public evaluation
_STEP_H = 0.1  # to which shorter jobs are rounded


@dataclass(frozen=True, slots=True)
class SpotAnswer:
    policy: str
    scenarios: int
    mean_usd: float
    late: int
    ratio_to_bound: float


@dataclass(frozen=True, slots=True)
class SpotComparison:
    """Answers, and what they are made of: an entry per scenario."""

    answers: tuple[SpotAnswer, ...]
    bounds_usd: Hours
    costs_usd: tuple[Hours, ...]  # of each policy
    unused: tuple[Hours, ...]  # share of the time until the deadline that was left; below zero where it is late
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpotHours:
    job: float
    deadlines: tuple[float, ...]
    is_stated: bool

    @classmethod
    def of(cls, job: float | None, deadlines: tuple[float, ...] | None) -> SpotHours:
        is_stated = job is not None or deadlines is not None
        return cls(JOB_H if job is None else job, DEADLINES_H if deadlines is None else deadlines, is_stated)

    @property
    def longest(self) -> float:
        return max(self.deadlines)

    def within(self, hours: float) -> SpotHours:
        """In proportion, so that the longest deadline fits into so many hours."""
        job, *deadlines = (
            floor(time_h * hours / self.longest / _STEP_H + ROUNDING_H) * _STEP_H for time_h in (self.job, *self.deadlines)
        )
        return SpotHours(job, tuple(deadlines), is_stated=True)


def fitted(all_series: Sequence[Series], hours: SpotHours) -> tuple[list[Series], SpotHours, list[str]]:
    """The series that are long enough, the job that is tried on them, and what is to be said of it. Where nobody stated the job
    and every series is too short for that of the public evaluation, it is shorter in proportion."""
    notes = []
    longest_h = max(len(series.available) * series.tick_h for series in all_series)
    if longest_h < hours.longest and not hours.is_stated and (shorter := hours.within(longest_h)).job > 0.0:
        hours = shorter
        deadlines = " and ".join(f"{deadline_h:g} h" for deadline_h in hours.deadlines)
        notes.append(f"The longest trace has {longest_h:.1f} h: jobs of {hours.job:g} h, until {deadlines}. Set --job-hours.")
    enough = [series for series in all_series if len(series.available) >= ticks_of(hours.longest, series)]
    if not enough:
        longest = max(all_series, key=lambda series: len(series.available) * series.tick_h)
        raise BadInput(
            f"{longest.name} has {len(longest.available)} ticks of {longest.tick_h * 3600:g} s, and the deadline needs "
            f"{ticks_of(hours.longest, longest)}.",
            remedy="Set a shorter --deadline-hours, or give a longer trace.",
        )
    if short := len(all_series) - len(enough):
        notes.append(f"{plural(short, 'trace')} shorter than the deadline of {hours.longest:g} h left out.")
    return enough, hours, notes


def ticks_of(hours: float, series: Series) -> int:
    return floor(hours / series.tick_h + ROUNDING_H)
