"""What all kinds of work have in common when they are planned: ways to do it on a shape, or why it cannot; then the table.

A kind is a function from a shape to its ways, or to `Cannot`. Everything behind it is the planner's own: limits, prices,
spot, transfer, carbon, order, families, losses. Of a family without any way the nearest miss is told, with its number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from chipwise.money.cost import Line
from chipwise.money.storage import Tiers
from chipwise.perf.arrays import Array
from chipwise.perf.part import Part
from chipwise.perf.power import Utilisation
from chipwise.planner import counts
from chipwise.planner.defaults import HOURS_PER_WEEK
from chipwise.planner.fleet import MOST_CHIPS, SLOWEST_FABRIC, Fleet
from chipwise.planner.ground import ground_for, market_of, slowest_s, tiers_of
from chipwise.planner.limits import Allowed, Rules, allowed
from chipwise.planner.pricing import Checkpoint, Market
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import WrongKind
from chipwise.planner.reasons.sizes import NeedsChips, NoCount
from chipwise.planner.tails import BOOT_S
from chipwise.planner.values.choice import QuantumPart
from chipwise.planner.values.load import AtLess
from chipwise.planner.values.split import UNSPLIT, Split
from chipwise.predictor.ability import ABLE
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.kinds.goals import stretch, time_limits
from chipwise.units import HOUR, MONTH, WEEK
from chipwise.workload.common import Common

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

LESS = 0.9  # of the time of fewer machines, start-up included: above it more of them are not worth a row
FASTEST_READ = 12.5e9  # bytes/s of one machine from storage: 100 Gbit/s, whatever joins the chips
BEYOND = 2  # counts that are kept after the first that is in time: spot machines need longer


@dataclass(frozen=True, slots=True)
class Way:
    """So many machines of a shape. Seconds of the whole job, or of a month's use."""

    shape: int
    machines: int
    seconds: float
    low: float
    high: float
    precision: str = ""
    unasked: bool = False  # a narrower number format than was asked for
    split: Split = UNSPLIT
    memory_share: float | None = None
    provenance: str = "formula"
    related: bool = False  # such work was measured on other chips of the same maker
    rate: float | None = None  # of one replica
    planned: float | None = None  # the part of it that replicas are counted by; None: all
    headroom: float | None = None  # above the load, where it is a hair less than asked for
    at_less: AtLess = ()  # the same at lower loads
    replicas: int | None = None
    rate_spread: float = 1.0  # the interval of `rate` ends at this factor above and below it
    request_chance: float | None = None  # that a request alone keeps the latency goals
    load_chance: float | None = None  # that the machines take all that comes
    latency: Mapping[str, float] = field(default_factory=dict)  # seconds by goal, such as "latency p99"
    answer_s: Mapping[str, float] = field(default_factory=dict)  # seconds of one answer, by what they go into
    use: Utilisation = field(kw_only=True)  # of every chip while it works
    limit_w: float | None = None  # that one chip may draw; None: what its sheet says
    lines: tuple[Line, ...] = ()  # bought besides machines
    quantum: QuantumPart | None = None


@dataclass(frozen=True, slots=True)
class Cannot:
    """Why a shape has no way: how many tests it passed before, and how far it misses this one, as a factor above 1."""

    why: Reason
    off: float = math.inf
    passed: int = 0  # KIND, FORMAT, MEMORY, TIME or COUNT
    remedy: str = ""  # what would help, where more is known than what helps at this test
    narrower: tuple[Way, ...] = ()  # ways in a narrower number format than was asked for

    @property
    def distance(self) -> tuple[int, float]:
        """Smaller is nearer to a way: what fails at the last test tells more than what fails at the first."""
        return -self.passed, self.off


Ways = Sequence[Way] | Cannot
KIND, FORMAT, MEMORY, TIME, COUNT = range(5)  # tests in their order: kind of chip, arithmetic, memory, latency, number


@dataclass(frozen=True)
class Ground:
    """What a plan stands on: the wide fleet, the market, and what the limits leave of both."""

    known: Known
    fleet: Fleet
    market: Market
    tiers: Tiers
    ok: Allowed
    unable: Mapping[str, Reason] = field(default_factory=dict)  # families without an offer, where more is known than that

    @property
    def shapes(self) -> list[int]:
        machine = np.frombuffer(self.fleet.catalog.offers.machine, dtype=np.int32)[self.ok.priced]
        return [int(at) for at in np.unique(self.fleet.shape_of[machine])]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every kind alike."""

    known: Known
    path: str
    work: Common
    rules: Rules
    objective: str | None
    top: int

    @property
    def aim(self) -> str:
        return self.objective or str(self.work.goals.objective)

    @property
    def chip_limits(self) -> tuple[int, int]:
        return counts.chip_limits(self.work.limits)

    @property
    def deadline_s(self) -> float | None:
        """Seconds of running until it must be done; a schedule that pauses leaves fewer of them."""
        limits = [limit for _, limit in time_limits(Ask(self.known, self.path, "", {}), self.work)]
        return min(limits) / stretch(self.work) if limits else None

    @property
    def month_s(self) -> float:
        """Seconds of a month in which it is on."""
        return float(self.work.schedule.hours_per_week or HOURS_PER_WEEK) * HOUR * MONTH / WEEK


@dataclass(frozen=True, slots=True)
class Table:
    """How a kind's answer is counted."""

    kind: str
    per: str  # job or month
    units: float
    unit: str
    apart: bool = True  # machines need no network between them
    checkpoint: Checkpoint | None = None
    notes: tuple[str, ...] = ()
    peak: float = 0.0  # requests per second that machines are counted for; 0: not counted so
    whole: bool = False  # what comes in is one stream: it is shared among machines only where no machine takes all of it


def ground_of(known: Known, rules: Rules) -> Ground:
    ground = ground_for(known, wide=True)
    return ground_on(known, ground.fleet, allowed(ground.fleet, rules, ground.market.prices))


def ground_on(known: Known, fleet: Fleet, ok: Allowed, unable: Mapping[str, Reason] | None = None) -> Ground:
    return Ground(
        known=known,
        fleet=fleet,
        market=market_of(fleet, known.today),
        tiers=tiers_of(fleet.catalog),
        ok=ok,
        unable=unable or {},
    )


def unable(part: Part, work: str) -> Cannot | None:
    """A part whose kind does no such work."""
    kinds = ABLE[work]
    if part.kind in kinds and (part.trains or work not in ("train", "hpc")):
        return None
    return Cannot(WrongKind(part.kind, tuple(kinds)))


def machine_counts(question: Question, chips: int, least: int = 1) -> Array:
    """Numbers of machines that the limits allow, with `chips` chips each, for work that `least` of them hold."""
    return np.array(counts.machine_counts(chips, question.chip_limits, least=least), dtype=np.float64)


def no_count(question: Question, chips: int, batch: float | None = None, least: int = 1) -> Cannot:
    """No number of machines with `chips` chips each is within the limits: the fewest chips that would be, or none."""
    fewest, largest = question.chip_limits
    wider = counts.machine_counts(chips, (fewest, MOST_CHIPS), least=least)
    able = [count * chips for count in wider if count * chips <= (batch or MOST_CHIPS)]
    if able and able[0] > largest:
        return Cannot(NeedsChips(able[0], largest), able[0] / largest, COUNT)
    return Cannot(NoCount(chips, fewest, min(largest, counts.LARGEST_CHIPS)), passed=COUNT)


def machines_within(question: Question, chips: int, needed: int) -> int | Cannot:
    """Machines with `chips` chips each for a load that needs `needed` of them: more where the limits ask for more."""
    largest = question.work.limits.chip_count.max
    machines = counts.least_machines(chips, question.chip_limits, needed)
    if largest is not None and machines * chips > largest:
        return Cannot(NeedsChips(machines * chips, largest), machines * chips / largest, COUNT)
    return machines


def worthwhile(question: Question, seconds: Array) -> list[int]:
    """The counts that are worth a row: while more machines help, and where cost counts until some are in time.

    Time does not fall with every count (six runs share 24 chips evenly, and 32 not): a count is held against the fastest
    before it, and one that does not help ends nothing. Machines start up however short the work is.
    """
    goal = min(filter(None, (question.deadline_s, slowest_s(question.work))), default=None)
    rows, fastest, left = [0], float(seconds[0]), math.inf
    for row in range(len(seconds)):
        in_time = goal is None or seconds[row] + BOOT_S <= goal
        helps = seconds[row] + BOOT_S <= LESS * (fastest + BOOT_S)
        if row and (helps or (in_time and goal is not None and fastest + BOOT_S > goal)):
            rows.append(row)
            left -= 1
        fastest = min(fastest, float(seconds[row]))
        if in_time and math.isinf(left) and question.aim in ("cost", "carbon"):
            left = BEYOND
        if left <= 0:
            break
    return rows


def reading_s(question: Question, ground: Ground, index: int, machines: Array) -> Array:
    """Seconds until the data has come over the network of so many machines; 0 where there is none to bring."""
    data, shape = question.work.data, ground.fleet.shapes[index]
    if data is None or not data.place:
        return np.zeros(len(machines))
    network = min(shape.fabric * shape.chips or SLOWEST_FABRIC, FASTEST_READ)
    return np.asarray(data.read_bytes / (network * machines))
