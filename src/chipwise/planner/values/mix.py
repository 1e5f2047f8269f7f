"""A mix of machine types as a value, and the sizes of requests that it answers."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.planner.values.split import GenerationSplit


@dataclass(frozen=True, slots=True)
class Band:
    """Lengths from `low` to `high` tokens."""

    low: float
    high: float
    mean: float
    share: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """Requests of one cell of the grid."""

    prompt: Band
    answer: Band
    share: float

    @property
    def longest(self) -> float:
        return self.prompt.high + self.answer.high


@dataclass(frozen=True, slots=True)
class Share:
    """Requests of one bucket that a member takes."""

    bucket: int
    part: float  # of the bucket
    rate: float  # requests per second


@dataclass(frozen=True, slots=True)
class Member:
    """So many machines of one type."""

    provider: str
    machine: str
    region: str
    chip: str
    chips: int  # of one machine
    purchase: str
    precision: str
    split: GenerationSplit
    machines: int
    usd: float  # all of them, a month
    busy: float  # share of what they can answer
    takes: tuple[Share, ...]
    provenance: str

    @property
    def title(self) -> str:
        return f"{self.provider} {self.machine} in {self.region}"


@dataclass(frozen=True, slots=True)
class Mix:
    """The cheapest machines for a service, of one type or several."""

    members: tuple[Member, ...]  # empty: no region has machines for every size
    usd: float
    single: Member | None  # the cheapest of one type alone, by the same reckoning
    buckets: tuple[Bucket, ...]
    proven: bool
    types: int  # kinds of machine and ways to run on them, over all regions
    places: int  # regions
    missing: str = ""  # why there is none
    notes: tuple[str, ...] = ()

    @property
    def saving_usd(self) -> float:
        return self.single.usd - self.usd if self.single is not None else 0.0
