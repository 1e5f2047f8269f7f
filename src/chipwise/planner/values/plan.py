"""A plan as a value: what to run, where, how, what it costs and why everything else lost. Nothing here reckons or prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from chipwise.money.carbon import CarbonLine, Greener
from chipwise.planner.defaults import NEARLY
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.limits import Mask, Refused, Rules
from chipwise.planner.preference import Advantage
from chipwise.planner.pricing import Priced
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.remedies import Remedy
from chipwise.planner.values.choice import Choice
from chipwise.workload.volume import Volume

if TYPE_CHECKING:  # parts of a plan that few plans have: their modules load where they are made
    from chipwise.planner.values.load import LoadPlan
    from chipwise.planner.values.mix import Mix
    from chipwise.planner.values.placement import Placement


@dataclass(frozen=True, slots=True)
class CheaperOption:
    """What a default keeps out and would be cheaper: an offer that does not last, one that binds for a term, a narrower number
    format."""

    kind: RuleKind  # MARKET, COMMITMENT or PRECISION
    choice: Choice
    saving: float  # share of the answer's cost
    term_years: float | None = None
    contract_usd: float | None = None  # what a promise comes to over its term
    break_even: float | None = None  # share of the term from which it costs less than the answer
    quality: str = ""  # of a narrower format, as far as it was published


@dataclass(frozen=True, slots=True)
class NearTie:
    """The cheapest, where the answer costs a little more and is better in other things."""

    choice: Choice
    advantages: tuple[Advantage, ...]  # of the answer


@dataclass(frozen=True, slots=True)
class Loss:
    """The best of a family that did not win, and the number that made it lose."""

    family: str
    choice: Choice | None  # None: nothing of the family can do it at all
    why: Reason
    remark: str = ""  # on the chip that lost


@dataclass(frozen=True, slots=True)
class Counts:
    """Candidates: machine, region, count, split, batch, precision and purchase, each combination once."""

    considered: int
    pruned: int
    estimated: int


class Obstacle(StrEnum):
    """What stood in the way."""

    OFFERS = "offers"
    COMPLIANCE = "compliance data"
    DISTANCE = "distance to the users"
    KIND = "a chip that can"
    PRECISION = "precision"
    SPLIT = "split"
    MEMORY = "memory"
    CHIPS = "chips"
    REPLICAS = "replicas"
    REPLICAS_AND_CHIPS = "replicas and chips"
    NETWORK = "network"
    LATENCY = "latency"
    THROUGHPUT = "throughput"
    DEADLINE = "deadline"
    BUDGET = "budget"
    DEADLINE_AND_BUDGET = "budget and deadline"
    QUOTA = "quota"
    OWNED = "own machines"


@dataclass(frozen=True, slots=True)
class Missing:
    """What stood in the way of everything, how much was missing, and the smallest changes that would help."""

    what: Obstacle
    reason: Reason
    remedies: tuple[Remedy, ...] = ()  # any of them
    nearest: str = ""  # the candidate that comes nearest, or the stages of a pipeline
    together: bool = False  # only with the changes of all others at once


@dataclass(frozen=True, slots=True)
class Turn:
    """What would change the answer, or is a risk to it."""

    what: str  # price, load, certainty, price age, porting
    told: str


@dataclass(frozen=True, slots=True)
class Emitted:
    """kg CO2e of the job, or of a month. `greener`: the cheapest kg saved first."""

    lines: tuple[CarbonLine, ...]
    basis: tuple[str, ...]  # how the share of making is known
    g_per_unit: float
    greener: tuple[Greener, ...]

    @property
    def kg(self) -> float:
        return sum(line.kg for line in self.lines)


@dataclass(frozen=True, slots=True)
class Answer:
    """A question that decides between kinds of hardware, and what the numbers of this case say to it."""

    question: str
    told: str


def _no_reason(shapes: Sequence[int]) -> Reason | None:
    return None


@dataclass(frozen=True, slots=True)
class Grounds:
    """What tells why something has no candidate: the rules for offers, and of shapes that are allowed why they have no way."""

    rules: Rules = field(default_factory=Rules)
    reason: Callable[[Sequence[int]], Reason | None] = _no_reason
    allowed: Index | None = None  # offers that were searched, where the rules do not say it: devices stand where the work is
    freed: Callable[[Iterable[RuleKind]], Plan | None] = lambda _: None  # the plan without some limits; None: they stay


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Every candidate that has a price, as columns: for those who set more side by side than the best."""

    fleet: Fleet
    priced: Priced
    ranked: Index  # positions in `priced`, the best first; those that keep the goals stand before all others
    kept: int  # how many of `ranked` keep the goals
    units: float  # of work in a job or month
    choice: Callable[[int], Choice]  # a position in full, with storage
    verdict: Callable[[Choice], Reason | None]  # which goal a choice misses; None: none
    precision: Callable[[int], str]  # of a position
    quantum: Callable[[int], str]  # of a position: the device that runs its circuits; empty: it has none
    storage_usd: Callable[[int], float] | None  # of a position, which its price does not hold yet; None: there is no data
    grounds: Grounds = field(default_factory=Grounds)
    needs_porting: Mask | None = None  # by position; None: nothing does
    least_replicas: int = 1  # that a service must have
    load: float = 0.0  # requests a second that must be answered; 0: not counted so
    leader: Callable[[Index], int] = lambda rows: int(rows[0])  # of ranked positions the one that would lead alone, by cost
    foresee: Callable[[Index], None] = lambda rows: None  # prepares `choice` of many positions at once
    load_chance: Callable[[int], float | None] = lambda row: None  # of a position: that its machines carry the load
    able: Callable[[str], Index] | None = None  # by objective: positions that keep the goals and may lead; None: all that do
    doubtful: Callable[[int], int | None] = lambda row: None  # cheaper than a position, at a price that is more doubtful

    @property
    def eligible(self) -> Index:
        """Positions that keep the goals and may lead: without porting where the answer needs none, at prices that are no more
        doubtful than the answer's."""
        good = self.ranked[: self.kept]
        if not len(good):
            return good
        doubt = self.priced.prices.doubt[self.priced.offer[good]]
        able = doubt <= doubt[0]
        if self.needs_porting is not None and not self.needs_porting[good[0]]:
            able &= ~self.needs_porting[good]
        return np.asarray(good[able], dtype=np.intp)


def unstated(rows: Rows) -> int:
    """How many of the machine types that have a candidate stand alone because nobody states the network between them."""
    used = np.flatnonzero(np.bincount(rows.priced.machine, minlength=len(rows.fleet.reach)))
    could = rows.fleet.as_if_joined().reach
    return int(np.count_nonzero(rows.fleet.reach[used] < could[used]))


@dataclass(frozen=True, slots=True)
class Service:
    """What is paid per use instead of per machine: a serverless accelerator or function, tokens, or minutes of video."""

    kind: str  # serverless, per token, per minute
    provider: str
    name: str
    hardware: str
    usd: float  # a month of this workload, or all of a job
    cold_share: float | None  # of requests that wait for a start
    break_even: str  # when a machine of one's own becomes cheaper
    assumed: tuple[str, ...]
    refused: tuple[Reason, ...]  # empty: it may be used
    cold_start_s: tuple[float, float, float] | None = None  # low, middle, high
    chips: tuple[str, ...] = ()  # of which one comes; none: a processor, or not stated
    warm: int = 0  # instances that are never given up
    at_once: int | None = None  # requests on one instance
    instances: float | None = None  # up on average
    price_of: str = ""  # ISO date
    unchecked: tuple[str, ...] = ()  # goals that nobody can hold against it, and why
    format_known: bool = True  # the number format of its weights is stated
    format_doubted: bool = False  # it is not, and may be narrower than what was asked for or published
    certain: bool = True  # its price, and that it is still sold
    retires: str = ""  # ISO date; empty: not announced
    price_days: int = 0  # since the price was read
    price_range: tuple[float, float] = (1.0, 1.0)  # factors on the cost that its price may have moved by since, 8 times of 10

    @property
    def low_usd(self) -> float:
        return self.usd * self.price_range[0]

    @property
    def high_usd(self) -> float:
        return self.usd * self.price_range[1]

    @property
    def is_sure(self) -> bool:
        return self.certain and not self.unchecked and not self.format_doubted

    @property
    def title(self) -> str:
        """Some are sold under their provider's name alone."""
        return self.name if self.name.startswith(self.provider) else f"{self.provider} {self.name}"


@dataclass(frozen=True, slots=True)
class DataMoved:
    """What is read and written, and what moving it takes: to the winner's place where that of the data is stated, else from
    another region or cloud, which is in no cost."""

    volume: Volume
    place: str | None  # None: not stated
    usd: tuple[float, float] | None  # low, high; None: not known, or nothing to move
    seconds: float
    assumed: tuple[str, ...] = ()

    @property
    def counted(self) -> bool:
        return self.place is not None


@dataclass(frozen=True, slots=True)
class Plan:
    workload: str
    kind: str
    objective: str
    per: str  # "job" or "month": what times and money are of
    choices: tuple[Choice, ...]  # best first; empty: nothing fits
    front: tuple[Choice, ...]
    losses: tuple[Loss, ...]
    refused: tuple[Refused, ...]
    missing: tuple[Missing, ...]
    counts: Counts
    turns: tuple[Turn, ...] = ()
    services: tuple[Service, ...] = ()  # allowed ones first, cheapest first
    confidence: float = 0.9  # with which goals are kept
    confidence_stated: bool = False  # then the load is carried with it too
    answers: tuple[Answer, ...] = ()  # parallel enough, latency, scaling, budget
    emitted: Emitted | None = None  # by the winner
    notes: tuple[str, ...] = ()
    without_terms: str = ""  # the machine or provider of the winner, where a commitment was asked for and none is known of it
    mix: Mix | None = None  # of several machine types, where it was asked for
    load: LoadPlan | None = None  # what carries the load over a month
    placement: Placement | None = None  # regions that reach the traffic
    alternatives: tuple[CheaperOption, ...] = ()  # that a default keeps out
    data: DataMoved | None = None  # None: nothing tells how much there is
    near_tie: NearTie | None = None  # that the answer was preferred to
    porting: Choice | None = None  # the best that needs porting where the answer does not, and the other way round
    farther: Choice | None = None  # the best that only the distance to the users excludes
    untried_on_amd: str = ""  # a library that the work needs and that nobody here has run on GPUs of AMD
    larger: Choice | None = None  # the best of more machines than are taken unasked, where nothing else ends within a month
    rows: Rows | None = field(default=None, compare=False, repr=False)

    @property
    def winner(self) -> Choice | None:
        """The best of machines; `service` may be cheaper still."""
        return self.choices[0] if self.choices else None

    @property
    def layered_usd(self) -> float | None:
        """What the winner takes a month over the load's curve, at most; None where no budget is held against that."""
        winner = self.winner
        if winner is None or winner.layered_usd is None:
            return None
        matches = self.load is not None and self.load.title == winner.where
        return min(winner.layered_usd, self.load.usd) if self.load is not None and matches else winner.layered_usd

    @property
    def service(self) -> Service | None:
        """One that may be used and costs less than the best machines, where cost is what counts. One of which nobody knows
        whether it keeps the goals or serves the weights as asked comes second to machines that do, whatever it saves
        (`unsure_service`)."""
        able = self._able_services
        if self.winner is None:  # machines would do it for more; what no machine does at all is more than a service takes, too
            return able[0] if able and any(one.what is Obstacle.BUDGET for one in self.missing) else None
        return next((one for one in able if one.is_sure and one.usd < (1 - NEARLY) * self.machines_usd), None)

    @property
    def unsure_service(self) -> Service | None:
        """One that would cost less than the best machines, but of which nobody knows whether it keeps the goals, in which
        format it serves the weights, or whether it is still sold: the surest, the cheapest of those."""
        if self.winner is None:
            return None
        unsure = [one for one in self._able_services if not one.is_sure and one.usd < self.machines_usd]
        return min(unsure, key=lambda one: (not one.certain, one.format_doubted, one.usd), default=None)

    @property
    def _able_services(self) -> list[Service]:
        """That may be used; none where something else than cost counts."""
        return [one for one in self.services if not one.refused] if self.objective == "cost" else []

    @property
    def machines_usd(self) -> float:
        """Of the best machines, over time where they follow the load."""
        assert self.winner is not None
        return min(self.load.usd, self.winner.usd) if self.load is not None else self.winner.usd
