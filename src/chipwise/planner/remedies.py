"""Changes that would help where nothing fits, as values; `planner.explain.reason_words` turns them into words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ease:
    """The goal or limit that the reason names, looser by as much as is missing."""


@dataclass(frozen=True, slots=True)
class LiftLimit:
    """One limit lifted, as the file has it, and how many offers are left then."""

    change: str  # "without limits.clouds"
    offers: int


@dataclass(frozen=True, slots=True)
class AskProviders:
    """To ask providers for what no data says, and to go on with a warning meanwhile."""

    providers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnMachines:
    """Machines of one's own in the catalog."""


@dataclass(frozen=True, slots=True)
class UsePrecision:
    precision: str


@dataclass(frozen=True, slots=True)
class MoreChips:
    hardware: str  # "8 x H100-SXM"
    instead_of: int


@dataclass(frozen=True, slots=True)
class StateNetwork:
    """Machines joined whose network nobody states."""

    hardware: str


@dataclass(frozen=True, slots=True)
class Lighter:
    """A change of the workload after which it fits, and on what."""

    change: str  # "recompute: full"
    hardware: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What helps in general, where no single change was found that does."""

    change: str


Remedy = Ease | LiftLimit | AskProviders | OwnMachines | UsePrecision | MoreChips | StateNetwork | Lighter | Advice
