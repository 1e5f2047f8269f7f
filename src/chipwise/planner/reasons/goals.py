"""Refused since a goal is missed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TooSlow:
    """Not even a request alone is answered in time: the goal that is missed most. Without one: no rate keeps the goals."""

    goal: str = ""  # "ttft p90"
    seconds: float = 0.0
    limit_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NoNetworkPort:
    """A goal that a rented FPGA misses because messages reach it through its host."""

    goal: str  # "latency p50"
    seconds: float  # at best
    limit_s: float


@dataclass(frozen=True, slots=True)
class MissesLatency:
    """A goal that a service misses; with a cold start where that is why."""

    goal: str  # "ttft p90"
    seconds: float
    limit_s: float
    cold_share: float = 0.0  # of the requests
    cold_start_s: tuple[float, float, float] | None = None  # low, middle, high; None: warm answers are too slow


@dataclass(frozen=True, slots=True)
class TooFar:
    """The round trip to the users is longer than may be; None: the place is not known."""

    users: str
    seconds: float | None
    limit_s: float


@dataclass(frozen=True, slots=True)
class MissesDeadline:
    seconds: float
    limit_s: float
    confidence: float | None = None  # with which it is done in so many seconds; None: they are expected
    moving_s: float = 0.0  # of them: until the data has come and the results are back


@dataclass(frozen=True, slots=True)
class UnsureLatency:
    """A request alone keeps the latency goals with less than the asked confidence; more machines would not help."""

    chance: float
    confidence: float


@dataclass(frozen=True, slots=True)
class OwnsFewer:
    """More machines of one's own are needed than there are."""

    machines: int
    owned: int


@dataclass(frozen=True, slots=True)
class MissesThroughput:
    rate: float
    limit: float
    item: str


@dataclass(frozen=True, slots=True)
class OverBudget:
    usd: float
    limit_usd: float
    period: str = ""  # " a day": of a budget for each period of a job
    layered: bool = False  # with machines that change as the load does
    stored: bool = False  # only with its storage
    confidence: float | None = None  # with which `usd` is not exceeded; None: it is expected


@dataclass(frozen=True, slots=True)
class StageOverBudget:
    """The storage of its data takes every candidate of a stage above the stage's own budget."""


@dataclass(frozen=True, slots=True)
class OneAtATime:
    """The goals are kept for one request at a time only."""

    goals: tuple[tuple[str, float], ...]  # ("ttft p90", seconds)


@dataclass(frozen=True, slots=True)
class NoRate:
    """It answers nothing at any rate, and no goal is given."""


@dataclass(frozen=True, slots=True)
class DeadlineAndBudget:
    """Each can be kept, not both at once."""


@dataclass(frozen=True, slots=True)
class MissesGoals:
    """Which goal is not known."""


Goal = (
    TooSlow
    | NoNetworkPort
    | OneAtATime
    | NoRate
    | MissesLatency
    | TooFar
    | MissesDeadline
    | UnsureLatency
    | OwnsFewer
    | MissesThroughput
    | OverBudget
    | StageOverBudget
    | DeadlineAndBudget
    | MissesGoals
)
