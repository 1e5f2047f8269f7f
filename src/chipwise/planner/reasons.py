"""Why something cannot be used, misses a goal or lost, as values: what kind of reason it is, how much, and which limit.

Code decides by the type and the numbers of a reason. `planner.explain.reason_words` alone turns reasons into sentences.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

# -- limits and offers


class RuleKind(StrEnum):
    """A hard limit that refuses offers."""

    UNREAL = "not-a-real-offer"
    RETIRED = "retired"
    UNKNOWN_SPEED = "no-speed-known"
    CLOUD = "cloud-not-asked-for"
    AVOIDED_CLOUD = "cloud-avoided"
    CHIP = "chip-not-asked-for"
    AVOIDED_CHIP = "chip-avoided"
    PROGRAMME = "programme"
    POWER = "power"
    REQUIRED = "required"
    REGION = "region-not-asked-for"
    AVOIDED_REGION = "region-avoided"
    UNKNOWN_COUNTRY = "country-not-known"
    COUNTRY = "country-not-allowed"
    AVOIDED_COUNTRY = "country-avoided"
    INTERRUPTIBLE = "interruptible"
    PURCHASE = "purchase-not-asked-for"
    PRICE_AGE = "price-too-old"
    MARKET = "not-durable"
    COMMITMENT = "commitment-not-asked-for"
    PRECISION = "precision-not-asked-for"
    CONFIDENCE = "not-sure-enough"
    OWNED = "owned"
    RENTED = "rented"
    QUOTA = "quota"
    QUOTA_MORE = "quota-with-more-machines"
    REPLICAS = "replicas"


@dataclass(frozen=True, slots=True)
class Rule:
    """A limit, with what it names and allows."""

    kind: RuleKind
    name: str = ""  # of a programme, requirement or quota
    limit: float | None = None
    own: bool = True  # of a quota: the user's


@dataclass(frozen=True, slots=True)
class NoOfferLeft:
    """The last rule that refused offers, and how many; None: there was none to refuse."""

    rule: Rule | None
    offers: int = 0


@dataclass(frozen=True, slots=True)
class NoComplianceData:
    """Of the providers that every other limit leaves, no data says whether they take part in programmes that are asked for."""

    programmes: tuple[str, ...]
    providers: tuple[str, ...]
    taking_part: tuple[str, ...] = ()  # providers known to take part in all of them; none: no data on one of them


@dataclass(frozen=True, slots=True)
class DoesNotRun:
    """A requirement that a chip or machine does not meet, as the rules of compatibility say it."""

    finding: str


@dataclass(frozen=True, slots=True)
class NotOffered:
    """No offer passes the limits."""


@dataclass(frozen=True, slots=True)
class NoPrice:
    """Nobody states what it costs."""

    name: str


@dataclass(frozen=True, slots=True)
class NotAtTheEdge:
    """It stands elsewhere, and `limits.where` asks for the edge."""


@dataclass(frozen=True, slots=True)
class OverPower:
    name: str
    watts: float
    limit_w: float


@dataclass(frozen=True, slots=True)
class OverQuota:
    """More at one time than a quota allows: the user's own, or what a provider grants by default."""

    name: str
    unit: str
    needed: float
    limit: float
    own: bool


@dataclass(frozen=True, slots=True)
class StagesOverQuota:
    """Stages of a pipeline that can run at the same time, what each needs, and the quota they share."""

    stages: tuple[tuple[str, float], ...]
    quota: OverQuota


@dataclass(frozen=True, slots=True)
class Barred:
    """A service that is paid per use, and a limit that it breaks or cannot be shown to keep."""

    rule: RuleKind
    provider: str
    asked: tuple[str, ...] = ()  # what the limit names: clouds, chips, purchase options, a programme
    chips: tuple[str, ...] = ()  # of the service that the limit is about; none: not stated


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A service whose place breaks a limit, or whose place nobody states."""

    rule: RuleKind
    provider: str
    region: str  # that its price is of; empty: not stated
    countries: tuple[str, ...]  # in which it may run then
    asked: tuple[str, ...] = ()  # countries
    certain: bool = False  # its country is known


@dataclass(frozen=True, slots=True)
class OtherWeights:
    """A service sells another training of the shape of the model."""

    model: str


@dataclass(frozen=True, slots=True)
class RetiredService:
    date: str  # ISO


# -- abilities of chips and their software


@dataclass(frozen=True, slots=True)
class NoEngine:
    """No serving engine for language models runs on it."""


@dataclass(frozen=True, slots=True)
class ServesOnly:
    """Its software serves models and does not train them."""


@dataclass(frozen=True, slots=True)
class GpusOnly:
    """The libraries of a method are written for GPUs."""

    method: str


@dataclass(frozen=True, slots=True)
class WrongKind:
    kind: str
    able: tuple[str, ...]  # kinds of chips that do such work


@dataclass(frozen=True, slots=True)
class NoPrecision:
    asked: tuple[str, ...]
    known: tuple[str, ...] = ()  # formats that are stated; none: not listed here
    chip: str = ""
    instead: str = ""  # a format that is not searched unless it is asked for, and would do


@dataclass(frozen=True, slots=True)
class OtherFormat:
    """A service answers in another number format."""

    precision: str
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoSpeed:
    """Nobody states how fast these are; without a name: the processor of a service."""

    chips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoCodec:
    chip: str
    formats: str
    known: str


@dataclass(frozen=True, slots=True)
class NoFabric:
    """It holds no chain of circuits."""

    able: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LacksFabric:
    """A design that is larger than the fabric of an FPGA."""

    chip: str
    resource: str
    share: float  # of what is left for the design; above 1


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """Operations of a stream whose speed on a processor nobody measured."""

    operations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SharedSlice:
    """A slice of a chip, where sharing is not allowed."""

    chip: str


@dataclass(frozen=True, slots=True)
class Unpredicted:
    """Nothing can be predicted on it; the message of the prediction."""

    message: str


# -- memory and numbers


@dataclass(frozen=True, slots=True)
class LacksMemory:
    """By chip, of the way that comes nearest."""

    short_bytes: float


@dataclass(frozen=True, slots=True)
class HoldsTooLittle:
    """So much memory together, of what is needed."""

    holder: str  # "8 H100-SXM"
    has_bytes: float
    needed_bytes: float
    needed_by: str = ""  # "each person", "the model"


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """A model on the chips of a service."""

    model: str
    holder: str  # "1 x T4"
    precision: str = ""
    short_bytes: float | None = None  # by chip; None: not computed


@dataclass(frozen=True, slots=True)
class ShortContext:
    """A service accepts so many tokens, of those that must be accepted."""

    tokens: float
    needed: float


@dataclass(frozen=True, slots=True)
class NoSplit:
    """No split of an allowed number of chips suits the work."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class NoCount:
    """No number of machines is within `limits.chip_count`; `chips` are those of one machine."""

    chips: int
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class NeedsChips:
    needed: int
    allowed: int


@dataclass(frozen=True, slots=True)
class NeedsReplicas:
    needed: int
    allowed: int


@dataclass(frozen=True, slots=True)
class NeedsReplicasAndChips:
    replicas: int
    allowed_replicas: int
    chips: int
    allowed_chips: int


@dataclass(frozen=True, slots=True)
class NeedsNetwork:
    """It takes several machines at once, whose network is not stated or too slow."""

    machines: int | None = None  # at least; None: not counted


# -- goals


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


# -- the ranking


@dataclass(frozen=True, slots=True)
class Beaten:
    """It keeps all goals and something else ranks before it."""

    objective: str
    per: str  # job or month
    usd: float
    best_usd: float
    seconds: float
    best_s: float
    kg: float
    best_kg: float
    device: str = ""  # of a hybrid workload: QPU or simulator
    circuits_usd: float = 0.0
    porting: bool = False  # it takes porting, which the winner does not


# -- quantum devices


@dataclass(frozen=True, slots=True)
class Analogue:
    """It runs no circuits of gates."""


@dataclass(frozen=True, slots=True)
class FewQubits:
    qubits: float | None  # None: not stated
    needed: int
    simulator: bool


@dataclass(frozen=True, slots=True)
class SellerLeftOut:
    provider: str


@dataclass(frozen=True, slots=True)
class CountryLeftOut:
    country: str | None


@dataclass(frozen=True, slots=True)
class NoQuantumPrice:
    """No price by task, shot or minute is known."""


@dataclass(frozen=True, slots=True)
class TimeNotModelled:
    device: str  # what kind of simulator


@dataclass(frozen=True, slots=True)
class StateTooLarge:
    """A simulator's state, and the largest machine there is."""

    qubits: int
    state_bytes: float
    largest_bytes: float


@dataclass(frozen=True, slots=True)
class NoDevice:
    """No quantum device is left, and the circuits cannot be simulated on it."""


Limit = (
    NotOffered
    | NoOfferLeft
    | NoComplianceData
    | DoesNotRun
    | NoPrice
    | NotAtTheEdge
    | OverPower
    | OverQuota
    | StagesOverQuota
    | Barred
    | Misplaced
    | OtherWeights
    | RetiredService
)
Ability = (
    NoEngine
    | ServesOnly
    | GpusOnly
    | WrongKind
    | NoPrecision
    | OtherFormat
    | NoSpeed
    | NoCodec
    | NoFabric
    | LacksFabric
    | NotMeasured
    | SharedSlice
    | Unpredicted
)
Size = (
    LacksMemory
    | HoldsTooLittle
    | DoesNotFit
    | ShortContext
    | NoSplit
    | NoCount
    | NeedsChips
    | NeedsReplicas
    | NeedsReplicasAndChips
    | NeedsNetwork
)
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
Quantum = Analogue | FewQubits | SellerLeftOut | CountryLeftOut | NoQuantumPrice | TimeNotModelled | StateTooLarge | NoDevice
Reason = Limit | Ability | Size | Goal | Quantum | Beaten


def kind_of(reason: object) -> str:
    """The type as data has it: needs-chips."""
    return re.sub(r"(?<=.)(?=[A-Z])", "-", type(reason).__name__).lower()


def reason_data(reason: Any) -> dict[str, Any]:
    """A reason as plain data: its kind and its numbers, each with its unit in its name."""
    return {"kind": kind_of(reason), **asdict(reason)}
