"""Queues for GPUs: jobs, clusters, and what a rule says of who goes first.

A job asks for a number of GPUs at once (a gang): all of them or none. Its work is counted in seconds at speed 1; machine types
may be faster or slower for it. A rule ranks jobs, and lower ranks go first: `rank` of a job that waits, `running` of those
that run, which the rank of a waiting one must be below to take their GPUs. All else (gangs, placement, what a preemption
costs) is the simulator's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import BadInput

Seconds = NDArray[np.float64]

MOST_GPUS = 1_000_000  # of a job
LONGEST_S = 1e11  # some thousand years: beyond, seconds are no longer told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueJob:
    """`estimate_s` is what a rule may know of `work_s`; `speeds` by machine type, those not named cannot run it."""

    name: str
    arrival_s: float
    gpus: int
    work_s: float
    estimate_s: float
    team: str = ""
    deadline_s: float | None = None  # on the clock of the arrivals
    speeds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fits = 1 <= self.gpus <= MOST_GPUS and 0.0 < self.work_s <= LONGEST_S and abs(self.arrival_s) <= LONGEST_S
        if not fits:  # also where one is not a number
            raise BadInput(
                f"Job {self.name} needs {self.gpus:g} GPUs for {self.work_s:g} s from {self.arrival_s:g} s on.",
                remedy=f"Allowed: 1 to {MOST_GPUS:,} GPUs, durations above zero, and times in seconds up to {LONGEST_S:g}.",
            )

    def speed(self, machine: str) -> float:
        """Zero: it cannot run there."""
        return self.speeds.get(machine, 0.0) if self.speeds else 1.0


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Equal machines."""

    machine: str
    gpus: int  # of each
    count: int

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.count < 1:
            raise BadInput(f"{self.count} machines with {self.gpus} GPUs each are no cluster.")


@dataclass(frozen=True, slots=True)
class Cluster:
    groups: tuple[NodeGroup, ...]

    @property
    def gpus(self) -> int:
        return sum(group.gpus * group.count for group in self.groups)

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(group.machine for group in self.groups))

    def gpus_of(self, machine: str) -> int:
        return sum(group.gpus * group.count for group in self.groups if group.machine == machine)


@dataclass(slots=True)
class QueuedJob:
    """A job under way. Only the simulator changes it."""

    job: QueueJob
    number: int
    left_s: float  # of the work, at speed 1, as last saved
    attained_s: float = 0.0  # GPU seconds so far
    starts: int = 0
    ended_s: float = inf

    @property
    def estimate_left_s(self) -> float:
        """By the estimate; never below a hundredth of it, since what is not over takes some time."""
        done_s = self.job.work_s - self.left_s
        return max(self.job.estimate_s - done_s, 0.01 * self.job.estimate_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningColumns:
    """Of all jobs that run: one entry for each machine of each."""

    rank: Seconds  # as of the start
    since_s: Seconds
    gpus: NDArray[np.int64]  # of the job
    gpus_here: NDArray[np.int64]  # of them on this machine
    team: NDArray[np.int64]  # position in `teams`


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """What a rule may know beside the jobs themselves."""

    now_s: float
    gpus: int  # of the cluster
    free: Mapping[str, int]  # GPUs of each machine type
    used: Mapping[str, int]  # GPUs that each team uses
    teams: tuple[str, ...]


class Overtaking(Enum):
    """What becomes of those behind a job that does not fit."""

    NONE = auto()  # they wait too
    EASY = auto()  # they may start where the first would not start later for it, by the estimates
    ANY = auto()  # they may start


def _since_start(columns: RunningColumns, state: QueueState) -> Seconds:
    return columns.rank


def _rank_at_start(queued: QueuedJob, rank: float, state: QueueState) -> float:
    return rank


def _by_size(job: QueueJob) -> Hashable:
    return job.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRule:
    """`line`: jobs of one line keep the order of their ranks among themselves; `turn` ranks the first of a line among lines,
    where that depends on more than the job. `claim`: it takes the GPUs of those whose rank is
    above this. `next_change_s`: how long a job runs until its rank is another. `best_types`: machine types in the order of
    preference."""

    rank: Callable[[QueuedJob], float]
    overtaking: Overtaking = Overtaking.ANY
    preempts: bool = False
    running: Callable[[RunningColumns, QueueState], Seconds] = _since_start
    line: Callable[[QueueJob], Hashable] = _by_size
    turn: Callable[[QueuedJob, QueueState], tuple[float, ...]] | None = None
    claim: Callable[[QueuedJob, float, QueueState], float] = _rank_at_start
    next_change_s: Callable[[QueuedJob], float] | None = None
    best_types: Callable[[QueuedJob, Mapping[str, int]], tuple[str, ...]] | None = None  # by GPUs that are free of each


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Of the cluster that is ruled: who may use how much, and what is typical of its jobs."""

    cluster: Cluster
    jobs: tuple[QueueJob, ...]
    quotas: Mapping[str, float] = field(default_factory=dict)  # GPUs by team; teams not named share the rest evenly


BeginQueue = Callable[[QueueSettings], QueueRule]
