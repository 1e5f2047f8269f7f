"""A pipeline's plan as a value: hardware of every stage, what moves between them, and what planning them apart would cost.

Money that is paid once (jobs, hand-offs) and money that is paid every month (services, what flows out of them) stay apart;
where one number is needed, one month of the services is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.money.cost import Cost
from chipwise.planner.preference import Advantage
from chipwise.planner.reasons import Reason
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Missing, Plan


@dataclass(frozen=True, slots=True)
class Rival:
    """Another candidate of a stage: what the whole comes to with it, all other stages as they are."""

    choice: Choice
    usd: float
    seconds: float
    kg: float
    misses: Reason | None  # goal or quota of the whole; None: none


BY_USE = frozenset({"serverless", "per token", "per hour"})  # ways to buy that are no machine's


def by_use(one: Choice) -> bool:
    """A service that is paid by use: what it emits is not known."""
    return one.purchase in BY_USE


@dataclass(frozen=True, slots=True)
class Placed:
    """A stage and what it runs on. Seconds count from the start of the whole."""

    name: str
    kind: str
    per: str  # job or month: what the choice's time, money and carbon are of
    after: tuple[str, ...]  # stages that it takes from
    choice: Choice
    starts_s: float
    ready_s: float  # a job is done, a service is up
    alone: Choice  # what it would run on were there no other stages
    plan: Plan = field(compare=False, repr=False)
    assumed: tuple[str, ...] = ()  # of a service that is paid by use; empty: machines
    rivals: tuple[Rival, ...] = ()  # the best first, the choice among them; only where a report is asked for

    @property
    def per_use(self) -> bool:
        return by_use(self.choice)


@dataclass(frozen=True, slots=True)
class Moved:
    """What one stage gives to another."""

    source: str
    to: str
    size_bytes: float
    per: str  # once, month
    path: str  # in place, other region, other cloud, own site (from one), to own site
    usd: float
    seconds: float  # that the taker waits; 0 where it flows while a service runs
    how: str
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    once: Cost
    monthly: Cost
    seconds: float  # from the start until all jobs are done and all services are up
    kg_once: float
    kg_monthly: float
    unknown_kg: tuple[str, ...] = ()  # stages whose emissions nobody states: not in the sums

    @property
    def usd(self) -> float:
        """With one month of the services."""
        return self.once.usd + self.monthly.usd

    @property
    def kg(self) -> float:
        return self.kg_once + self.kg_monthly

    @property
    def balanced(self) -> float:
        """The geometric mean of the three."""
        return float((self.usd * self.seconds * max(self.kg, 1e-9)) ** (1 / 3))


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to plan the whole, and which goal of the whole it misses; None: none."""

    totals: Totals
    where: tuple[tuple[str, str], ...]  # stage, and what it runs on
    misses: Reason | None
    region: str = ""  # of the first stage, to read


@dataclass(frozen=True, slots=True)
class Lack:
    """What kept a stage from being placed; no stage: the whole."""

    stage: str
    missing: Missing


@dataclass(frozen=True, slots=True)
class Excluded:
    """A better combination that may not be used, and why."""

    combination: str
    why: Reason


@dataclass(frozen=True, slots=True)
class Tie:
    """What a stage would run on were cost alone to count, where the whole then costs a little less."""

    stage: str
    choice: Choice
    usd: float  # of the whole, at its cheapest
    advantages: tuple[Advantage, ...]  # of the answer


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    workload: str
    objective: str
    stages: tuple[Placed, ...]  # in the order of hand-offs; empty: nothing fits
    hand_offs: tuple[Moved, ...]
    totals: Totals | None
    alone: Alternative | None  # each stage as if it were alone
    one_region: Alternative | None  # all stages in the region that does best; None: no region can do all of them
    lacks: tuple[Lack, ...]
    considered: int  # candidates of all stages
    notes: tuple[str, ...] = ()
    front: tuple[tuple[str, Alternative], ...] = ()  # what each is best at; only where a report is asked for
    refused: tuple[Excluded, ...] = ()  # better combinations that exceed a quota which stages share

    near_ties: tuple[Tie, ...] = ()  # cheaper combinations that the answer was preferred to, by stage

    @property
    def fits(self) -> bool:
        return self.totals is not None

    @property
    def moved_together(self) -> tuple[Placed, ...]:
        """Stages that run elsewhere, or on something else, than they would alone."""
        return tuple(one for one in self.stages if one.choice != one.alone)


def what(one: Choice) -> str:
    return f"{one.machines} x {one.where}" if one.machines > 1 else one.where
