"""What carries a load over time, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.catalog.region import readable
from chipwise.money.layering import Alone, Layer


@dataclass(frozen=True, slots=True)
class MachineHours:
    """Of a month: machines for the peak always on, on while the schedule is, and as an autoscaler has them."""

    static: float
    scheduled: float
    autoscaled: float


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

    @property
    def title(self) -> str:
        return f"{self.provider} {self.machine} in {readable(self.region)}"
