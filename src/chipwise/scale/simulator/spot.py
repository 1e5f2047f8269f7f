"""A spot rule played on many scenarios at once, tick by tick, with whole ticks billed.

The semantics are those of the public "can't be late" benchmark: spot that is there at a tick stays until the next; a start is
paid without progress; the tick in which the work ends is paid whole. Every choice passes the law of `scale/spot.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.spot import ROUNDING_H, Begin, Flags, Hours, SpotChoice, SpotJob, SpotState, lawful


@dataclass(frozen=True, slots=True)
class SpotOutcome:
    """One entry per scenario."""

    usd: Hours
    is_late: Flags
    finish_h: Hours  # after the begin; infinite where it is late


def play(
    available: Flags,
    job: SpotJob,
    begin: Begin,
    *,
    true_work: Hours | None = None,
    true_restarts: Hours | None = None,
    each_tick: Callable[[int], None] | None = None,
) -> SpotOutcome:
    """`available`: scenario x tick. `true_work`: the hours that each scenario really takes, where the estimate is wrong;
    `true_restarts`: scenario x tick, what a start at that tick takes. Both stay within the errors that the job admits."""
    count = len(available)
    if available.ndim != 2 or available.shape[1] < job.ticks:
        raise BadInput(f"A trace of {available.shape[-1]} ticks is shorter than the deadline of {job.ticks} ticks.")
    decide = begin(job, count)
    hidden = np.zeros(count) if true_work is None else true_work - job.work_h  # more work than the estimate says
    prices = np.array([0.0, job.spot_usd, job.on_demand_usd]) * job.tick_h
    work, restart, pending, age, usd = (np.zeros(count) for _ in range(5))
    work += job.work_h
    finish = np.full(count, np.inf)
    choice = np.zeros(count, np.int8)
    for tick in range(job.ticks + 1):
        if tick > 0:
            runs = (choice != SpotChoice.WAIT) & np.isinf(finish)
            usd += np.where(runs, prices[choice], 0.0)
            work = work - np.where(runs, np.maximum(job.tick_h - restart, 0.0), 0.0)
            restart = np.where(runs, np.maximum(restart - job.tick_h, 0.0), restart)
            restart[restart < ROUNDING_H] = 0.0
            pending = np.where(restart == 0.0, 0.0, np.maximum(pending - job.tick_h, restart))
            age = age + job.tick_h
            finish[np.isinf(finish) & (work + hidden <= ROUNDING_H)] = tick * job.tick_h
        if tick == job.ticks or np.isfinite(finish).all():
            break
        spot = available[:, tick]
        choice = np.where((choice == SpotChoice.SPOT) & ~spot, np.int8(SpotChoice.WAIT), choice)
        state = SpotState(
            job=job,
            tick=tick,
            work_left_h=work,
            pending_h=pending,
            choice=choice,
            age_h=np.where(choice == SpotChoice.SPOT, age, 0.0),
            spot=spot,
            seen=available[:, : tick + 1],
        )
        choices = lawful(state, decide(state))
        starts = (choices != choice) & (choices != SpotChoice.WAIT)
        restart = np.where(starts, job.restart_h if true_restarts is None else true_restarts[:, tick], restart)
        pending = np.where(starts, job.longest_restart_h, pending)
        age = np.where(starts, 0.0, age)
        choice = choices
        if each_tick is not None:
            each_tick(tick)
    return SpotOutcome(usd=usd, is_late=np.isinf(finish), finish_h=finish)
