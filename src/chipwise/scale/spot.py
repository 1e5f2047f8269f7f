"""Spot with a deadline: what is decided, what a rule may know, and the law that no rule can break.

Time passes in ticks. At the start of a tick it is known whether spot machines can be had until the next one; then a choice is
made and paid for. A start costs `restart_h` without progress. Many scenarios of one job are decided at once: each field of a
`SpotState` is a column with one entry per scenario.

The law: a choice stands only if on-demand machines, ordered at the next tick at the latest, would still finish in time, with
the longest restart and the largest amount of work that the job admits (`restart_error`, `work_error`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from math import floor, isfinite

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import BadInput

Hours = NDArray[np.float64]
Flags = NDArray[np.bool_]
Choices = NDArray[np.int8]

ROUNDING_H = 1e-7  # of sums of ticks
MOST_TICKS = 1e18  # that are counted exactly enough; what can be simulated is far less


class SpotChoice(IntEnum):
    WAIT = 0
    SPOT = 1
    ON_DEMAND = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotJob:
    """A job, its deadline, and what machines cost. `work_h` may be underestimated by the share `work_error`, a restart may take
    longer than `restart_h` by the share `restart_error`."""

    work_h: float
    deadline_h: float
    restart_h: float
    spot_usd: float  # an hour
    on_demand_usd: float
    tick_h: float
    work_error: float = 0.0
    restart_error: float = 0.0

    def __post_init__(self) -> None:
        positive = {
            "work": self.work_h,
            "deadline": self.deadline_h,
            "spot price": self.spot_usd,
            "on-demand price": self.on_demand_usd,
            "tick": self.tick_h,
        }
        for name, value in positive.items():
            if not (isfinite(value) and value > 0.0):
                raise BadInput(f"The {name} must be above zero, not {value:g}.")
        for name, value in {"restart": self.restart_h, "error": min(self.work_error, self.restart_error)}.items():
            if not (isfinite(value) and value >= 0.0):
                raise BadInput(f"The {name} must not be below zero, as {value:g} is.")
        longest_h = max(self.work_h, self.deadline_h, self.restart_h)
        if not longest_h / self.tick_h < MOST_TICKS:
            raise BadInput(f"{longest_h:g} hours in ticks of {self.tick_h:g} hours cannot be counted: give fewer.")
        if self.ticks_needed(self.longest_work_h + self.longest_restart_h) > self.ticks:
            raise BadInput(
                f"{self.longest_work_h + self.longest_restart_h:g} hours of work and start do not fit into "
                f"{self.ticks} ticks of {self.tick_h * 60:g} minutes before the deadline."
            )

    @property
    def ticks(self) -> int:
        """Whole ones before the deadline."""
        return floor(self.deadline_h / self.tick_h + ROUNDING_H)

    @property
    def longest_work_h(self) -> float:
        return self.work_h * (1.0 + self.work_error)

    @property
    def longest_restart_h(self) -> float:
        return self.restart_h * (1.0 + self.restart_error)

    def ticks_needed(self, hours: float) -> int:
        return -floor(-hours / self.tick_h + ROUNDING_H / self.tick_h)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotState:
    """What a rule may know at one tick."""

    job: SpotJob
    tick: int
    work_left_h: Hours  # by the estimate; below zero where the estimate was too low
    pending_h: Hours  # of the current machine's restart, at most; zero once it works
    choice: Choices  # what is held now: WAIT where a spot machine was just lost
    age_h: Hours  # of the current spot machine
    spot: Flags  # whether spot machines can be had until the next tick
    seen: Flags  # the same of all ticks so far: scenario x tick, this one included

    @property
    def ticks_left(self) -> int:
        return self.job.ticks - self.tick

    @property
    def time_left_h(self) -> float:
        return self.ticks_left * self.job.tick_h

    @property
    def most_work_h(self) -> Hours:
        return np.maximum(self.work_left_h + self.job.work_h * self.job.work_error, 0.0)

    def restart_h(self, choice: SpotChoice) -> Hours:
        """Until work begins under this choice."""
        return np.where(self.choice == choice, self.pending_h, self.job.longest_restart_h)

    def ticks_needed(self, hours: Hours) -> NDArray[np.int64]:
        ticks: NDArray[np.int64] = np.ceil((hours - ROUNDING_H) / self.job.tick_h).astype(np.int64)
        return ticks


Decide = Callable[[SpotState], Choices]
Begin = Callable[[SpotJob, int], Decide]  # a rule for a number of scenarios; what it learns of them is its own


def before_the_deadline(state: SpotState, choices: Choices) -> Choices:
    """What the published rules do near the deadline, in place of their choice."""
    restart_h = state.job.longest_restart_h
    last_call = state.ticks_needed(state.most_work_h + restart_h) >= state.ticks_left
    near = state.ticks_needed(state.most_work_h + 2.0 * restart_h) >= state.ticks_left
    stays = near & ~last_call & (state.choice == SpotChoice.SPOT)
    return np.where(stays, np.int8(SpotChoice.SPOT), np.where(near, np.int8(SpotChoice.ON_DEMAND), choices)).astype(np.int8)


def lawful(state: SpotState, choices: Choices) -> Choices:
    """The choices that keep the law, and in place of others the nearest that does: the spot machine that works already, or
    on-demand."""
    job = state.job
    after_spot_h = state.most_work_h - np.maximum(job.tick_h - state.restart_h(SpotChoice.SPOT), 0.0)
    wait_is_safe = _in_time(state, state.most_work_h)
    spot_is_safe = state.spot & ((after_spot_h <= ROUNDING_H) | _in_time(state, after_spot_h))
    wanted = np.where((choices == SpotChoice.SPOT) & ~state.spot, np.int8(SpotChoice.WAIT), choices)
    broken = ((wanted == SpotChoice.WAIT) & ~wait_is_safe) | ((wanted == SpotChoice.SPOT) & ~spot_is_safe)
    instead = np.where(
        spot_is_safe & (state.choice == SpotChoice.SPOT), np.int8(SpotChoice.SPOT), np.int8(SpotChoice.ON_DEMAND)
    )
    return np.where(broken, instead, wanted).astype(np.int8)


def _in_time(state: SpotState, work_h: Hours) -> Flags:
    """Whether this work can be done from the next tick on by on-demand machines that must start first."""
    in_time: Flags = state.ticks_needed(work_h + state.job.longest_restart_h) <= state.ticks_left - 1
    return in_time
