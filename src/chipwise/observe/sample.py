"""Samples and recordings as values. A sensor that is missing is a value with its reason, never a zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

HOST, PROGRAM, SERVER = "host", "program", "server"  # sources that are no devices; those are "nvidia:0", "amd:1", "neuron:3"


@dataclass(frozen=True, slots=True)
class NoReading:
    reason: str  # for people: "the driver does not allow it", "no such sensor on this chip"


Reading = float | NoReading


@dataclass(frozen=True, slots=True)
class Sample:
    at_s: float  # of a clock that nobody sets; only differences count
    source: str
    readings: Mapping[str, Reading]  # by the names in `metrics`; a name that the probe does not know is left out

    def value(self, name: str) -> float | None:
        reading = self.readings.get(name)
        return None if reading is None or isinstance(reading, NoReading) else reading


@dataclass(frozen=True, slots=True)
class SampledDevice:
    """What does not change while it is watched."""

    source: str  # "nvidia:0"
    name: str  # as its driver calls it
    chip: str | None = None  # in the catalog
    identity: str = ""  # UUID or serial number
    numa_node: int | None = None
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that was seen of one program or machine, in the order of time."""

    started_at: str  # ISO 8601 in UTC, for people
    devices: Sequence[SampledDevice] = ()
    samples: Sequence[Sample] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # job, owner, workload, engine
    predicted: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)  # metric: low, value, high
    usd_per_hour: float | None = None
    kg_per_kwh: float | None = None  # CO2 equivalent of electricity, where known
