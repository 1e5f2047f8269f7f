"""What carries a load over time, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.catalog.region import region_phrase
from chipwise.money.cost import Cost
from chipwise.money.layering import Alone, Layer
from chipwise.units import HOUR, MONTH

# Loads of a whole service, rising, each with the requests a second that one replica is then planned for. Where bursts come, the
# fewer replicas share a load, the more of each burst one of them gets, and the less it is planned for.
AtLess = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class MachineHours:
    """Of a month: machines for the peak always on, on while the schedule is, and as an autoscaler has them."""

    static: float
    scheduled: float
    autoscaled: float
    starting: float = 0.0  # of those under an autoscaler: paid for before they are needed


@dataclass(frozen=True, slots=True)
class Followed:
    """Machines that follow a load, in a month."""

    fewest: int  # up at once while the schedule is on
    hours: float  # machine-hours, those of starting included
    always_hours: float  # of machines for the peak while the schedule is on

    @property
    def share(self) -> float:
        return self.hours / max(self.always_hours, 1e-12)


@dataclass(frozen=True, slots=True)
class OverTime:
    """What a choice is whose machines follow the load, and what they would cost and emit for the peak whenever the schedule
    is on."""

    fewest: int  # machines up at once while the schedule is on
    machine_hours: float  # a month
    always_cost: Cost
    always_kg: float
    hours_on: float = MONTH / HOUR  # of the schedule, a month: all of them where it is always on

    @property
    def is_scheduled(self) -> bool:
        """Outside the hours of its schedule no machine is up."""
        return self.hours_on < MONTH / HOUR * 0.999

    @property
    def always(self) -> str:
        """The hours that `always_cost` is of."""
        return "in all scheduled hours" if self.is_scheduled else "at all times"


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What carries the load over time, and what that costs a month."""

    pattern: str  # continuous | business-hours | bursty | batch | development
    unit: str  # of the load
    mean: float
    busiest: float  # the highest mean of a step
    peak: float  # that machines are counted for
    hours_per_week: float
    provider: str
    machine: str
    region: str
    chip: str
    per_machine: float  # of the load's unit, within the goals
    replicas_mean: int
    replicas_peak: int
    machines_mean: int
    machines_peak: int
    machine_hours: MachineHours
    layers: tuple[Layer, ...]  # from the base up
    usd: float
    alone: tuple[Alone, ...]  # the whole load on one option
    steps: tuple[tuple[int, float], ...]  # the duration curve: machines, hours of a month
    recommendation: str
    changed: str  # why this is another machine than the plan's first choice; empty: it is the same
    kind_count: int  # kinds of machines that were layered
    assumed: tuple[str, ...] = field(default=())
    low_usd: float = 0.0  # eight times of ten the cost is not below, by price and speed together
    high_usd: float = 0.0  # nor above
    country: str | None = None  # to order it in, where the region leaves that open
    other_usd: float = 0.0  # of `usd`: beside the machines, as transfer and storage
    by_hour: tuple[tuple[float, int], ...] = ()  # load and machines of the hours of a week from Monday on, where they are known

    @property
    def title(self) -> str:
        return f"{self.provider} {self.machine} {region_phrase(self.region, self.country)}"
