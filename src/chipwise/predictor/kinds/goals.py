"""Goals and deadlines held against what is predicted, the chips that meet them, and the time of a whole job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.values import ChipPower, DataFeed, Goal, Interval, WholeJob
from chipwise.workload.common import Common
from chipwise.workload.schedule import HOURS_PER_WEEK, BusinessHours, MarketHours

if TYPE_CHECKING:
    from chipwise.perf.kernels.work import Terms

_MOST_CHIPS = 4096  # chips that are tried to meet a deadline


def time_limits(ask: Ask, work: Common) -> Iterator[tuple[str, float]]:
    """(goal, seconds) by which a job must be done; a date counts from the start of today."""
    if work.goals.deadline is not None:
        yield "deadline", work.goals.deadline
    if work.goals.finish_by is not None:
        yield "finish by", (work.goals.finish_by - datetime.combine(ask.known.today, time(), UTC)).total_seconds()


def stretch(work: Common) -> float:
    """Seconds that pass for a second of running."""
    schedule = work.schedule
    return HOURS_PER_WEEK / schedule.hours_per_week if isinstance(schedule, BusinessHours | MarketHours) else 1.0


def deadlines(ask: Ask, work: Common, seconds: float) -> tuple[Goal, ...]:
    return tuple(Goal(name, limit, seconds * stretch(work)) for name, limit in time_limits(ask, work))


def fewest_chips(
    ask: Ask, work: Common, seconds_of: Callable[[np.ndarray[Any, np.dtype[np.float64]]], Terms], most: float = _MOST_CHIPS
) -> float | None:
    """Chips with which the job is done in time; None: no deadline, or not with `most`."""
    limits = [limit / stretch(work) for _, limit in time_limits(ask, work)]
    if not limits:
        return None
    counts = np.arange(1.0, min(work.limits.chip_count.max or _MOST_CHIPS, most, _MOST_CHIPS) + 1)
    fine = np.flatnonzero(seconds_of(counts).total <= min(limits))
    return float(counts[fine[0]]) if len(fine) else None


def whole_job(power: ChipPower, chips: float, fed: DataFeed | None, amount: float, rate: Interval) -> WholeJob:
    """Time and energy of the whole job, waiting for data with it."""
    time = rate.of(amount).times(1.0 if fed is None else fed.slower)
    return WholeJob(time, power.with_cooling_w * chips * time.value / 3.6e6, fed)
