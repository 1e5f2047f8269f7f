"""Refused since memory is too small, or by numbers of chips and copies."""

from __future__ import annotations

from dataclasses import dataclass


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
