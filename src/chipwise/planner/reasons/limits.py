"""Refused by limits, offers, quotas and places."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
