"""What all choices of a plan have in common: the goals, the data, and what a way of running adds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from chipwise.money.cost import Line
from chipwise.money.storage import Tiers
from chipwise.perf.arrays import Array
from chipwise.perf.seen import FORMULA
from chipwise.planner.defaults import UNKNOWN_TIMES
from chipwise.planner.fleet import Fleet
from chipwise.planner.limits import Mask, Rules
from chipwise.planner.pricing import Priced
from chipwise.planner.values.choice import QuantumPart
from chipwise.planner.values.load import AtLess, Followed
from chipwise.planner.values.placement import Reach
from chipwise.planner.values.plan import Rows
from chipwise.planner.values.split import Split
from chipwise.units import DAY, HOUR, MONTH, YEAR
from chipwise.workload.data import Data

NO_RULES = Rules()
Following = Callable[[Priced, Fleet, Callable[[int], "Described"]], tuple[Priced, dict[int, Followed]]]


@dataclass(frozen=True, slots=True)
class Described:
    """What a way of running adds to a choice, by its row."""

    precision: str
    split: Split
    memory_share: float | None
    provenance: str
    related: bool = False  # such work was measured on other chips of the same maker
    rate: float | None = None  # of one replica
    planned: float | None = None  # the part of it that replicas are counted by
    headroom: float | None = None  # above the load, where it is a hair less than asked for
    at_less: AtLess = ()  # the same at lower loads, where fewer replicas share a burst
    replicas: int | None = None
    lines: tuple[Line, ...] = ()  # bought besides machines; they sum to the row's `beside_usd`
    latency: Mapping[str, float] | None = None  # seconds at the asked load
    answer_s: Mapping[str, float] = field(default_factory=dict)  # seconds of one answer then, by what they go into
    rate_spread: float = 1.0
    request_chance: float | None = None  # that a request alone keeps the latency goals, by how sure the estimate is
    load_chance: float | None = None  # that all that comes is taken
    quantum: QuantumPart | None = None

    def is_unknown(self, slow: float) -> bool:
        """Whether its speed rests on a formula that was never held against such chips, and is very unsure; one time in ten it
        takes `slow` times as long."""
        times = max(self.rate_spread, slow) ** 2
        return self.provenance == FORMULA and not self.related and times > UNKNOWN_TIMES


@dataclass(frozen=True, slots=True)
class Goals:
    """What every choice must keep, and what to make small."""

    objective: str = "cost"
    deadline_s: float | None = None
    budget_usd: float | None = None  # of the job, of a month, or of a period of `budget_s`
    budget_s: float = math.inf
    throughput: float | None = None  # items a second on average, from start to end
    items: float = 0.0  # of the job
    item: str = "item"
    rules: Rules = NO_RULES  # quotas are held against candidates here, offers were before
    confidence: float = 0.9  # with which the deadline is kept, and latency goals as far as more machines would not help
    sure_enough: float = 0.9  # from which latency goals count as kept
    stated: bool = False  # the confidence: then ways carry their load with it, and the budget is kept with it
    horizon_s: float | None = None  # of a job without a deadline: longer ones are taken only where there are no others
    most_machines: float = math.inf  # likewise
    least_replicas: int = 1  # of a service
    native: frozenset[str] = frozenset({"gpu"})  # kinds of chips that the program runs on already; processors always

    @property
    def stated_confidence(self) -> float | None:
        return self.confidence if self.stated else None

    def spent(self, usd: Array, seconds: Array) -> Array:
        """In the dearest period: the cost is spread evenly over the time from start to end, and a job shorter than the period
        pays all of it in one. A commitment that outlasts the job is charged to the job's own time, which errs on the dear
        side."""
        return np.asarray(usd * np.minimum(self.budget_s / np.maximum(seconds, 1e-9), 1.0))

    def affords(self, usd: Array, seconds: Array) -> Mask:
        fine: Mask = self.spent(usd, seconds) <= (math.inf if self.budget_usd is None else self.budget_usd)
        return fine

    @property
    def period(self) -> str:
        names = {HOUR: " an hour", DAY: " a day", MONTH: " a month", YEAR: " a year"}
        return names.get(self.budget_s, "")


@dataclass(frozen=True, slots=True)
class Stored:
    """The data that must be fed, if there is any."""

    tiers: Tiers
    size_bytes: float
    bytes_per_unit: float  # of the data per unit of work
    passes: float
    files: float | None


@dataclass(frozen=True, slots=True)
class PlanningCase:
    """What all choices of a plan have in common."""

    workload: str
    kind: str
    per: str
    units: float  # of work in a job or month
    unit: str
    goals: Goals
    stored: Stored | None = None
    layered: Callable[[Rows], Array] | None = None  # USD by row in layers over the load's curve, which a budget is held against
    following: Following | None = None  # rows whose machines follow the load; None: as many at all times
    room: Array | None = None  # by way: what its machines can take, such as requests a second
    peak: float = 0.0  # requests a second that must be answered; 0: not counted so
    chance: Array | None = None  # by way: that a request alone keeps the latency goals; None: there are none
    unasked: Mask | None = None  # by way: those in a narrower number format than was asked for
    reach: Reach | None = None  # where the traffic of a service comes from
    data: Data | None = None  # what is read and written, and where it lies
