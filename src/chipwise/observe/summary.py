"""What stays of a watched run: how busy its devices were, what they drew, what that cost. It is counted sample by sample, in
memory that does not grow: shares in a hundred bins, of which percentiles are known to one percent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chipwise.observe.sample import HOST, PROGRAM, NoReading, Sample, SampledDevice

BINS = 100
SHARES = ("busy", "sm_active", "tensor_active", "dram_active")
PERCENTILES = (10, 50, 90)
LONGEST_GAP_S = 60.0  # between two samples of power; what was drawn in a longer one is not known
_MEANS = ("processes", "cpu", "cores")
_J_PER_KWH = 3.6e6


class ShareHistogram:
    """How often a share had which size."""

    __slots__ = ("_bins", "_count", "_sum")

    def __init__(self) -> None:
        self._bins = [0] * (BINS + 1)
        self._count, self._sum = 0, 0.0

    def add(self, share: float) -> None:
        self._bins[min(max(round(share * BINS), 0), BINS)] += 1
        self._count += 1
        self._sum += share

    def percentile(self, rank: float) -> float | None:
        """The lowest share that so many percent do not exceed."""
        if not self._count:
            return None
        seen_count, wanted = 0, rank / 100.0 * self._count
        for place, count in enumerate(self._bins):
            seen_count += count
            if seen_count >= wanted and seen_count:
                return place / BINS
        return 1.0

    def value(self) -> dict[str, float] | None:
        if not self._count:
            return None
        ranks = {f"p{rank}": self.percentile(rank) or 0.0 for rank in PERCENTILES}
        return {"mean": round(self._sum / self._count, 4), **ranks}


@dataclass(slots=True)
class _Source:
    shares: dict[str, ShareHistogram] = field(default_factory=dict)
    first_energy_j: float | None = None
    counted_j: float = 0.0  # by the device's own counter
    drawn_j: float = 0.0  # by its power, since the counter was last seen to move
    power: tuple[float, float] | None = None  # when, and how much
    memory_peak: float | None = None
    hottest: float | None = None
    sums: dict[str, tuple[float, int]] = field(default_factory=dict)  # of what has a mean and no percentiles
    first_step: tuple[float, float] | None = None
    last_step: tuple[float, float] | None = None
    has_power: bool = False

    def add(self, sample: Sample) -> None:
        for name in (*SHARES, "cpu"):
            if (share := sample.value(name)) is not None and not (sample.source == PROGRAM and name == "cpu"):
                self.shares.setdefault(name, ShareHistogram()).add(share)
        for name in _MEANS if sample.source in (HOST, PROGRAM) else _MEANS[:1]:
            if (value := sample.value(name)) is not None:
                total, count = self.sums.get(name, (0.0, 0))
                self.sums[name] = (total + value, count + 1)
        self._add_energy(sample)
        if (memory := sample.value("memory_used")) is not None:
            self.memory_peak = max(memory, self.memory_peak or 0.0)
        if (heat := sample.value("temperature")) is not None:
            self.hottest = max(heat, self.hottest or 0.0)
        if (step := sample.value("step")) is not None:
            self.first_step = self.first_step or (sample.at_s, step)
            self.last_step = (sample.at_s, step)

    def _add_energy(self, sample: Sample) -> None:
        if (power := sample.value("power")) is not None:
            self.has_power = True
            if self.power is not None and 0 < (gap := sample.at_s - self.power[0]) <= LONGEST_GAP_S:
                self.drawn_j += gap * (power + self.power[1]) / 2.0
            self.power = (sample.at_s, power)
        if (energy := sample.value("energy")) is not None:
            if self.first_energy_j is not None and energy > self.first_energy_j:  # else its driver was loaded again
                self.counted_j += energy - self.first_energy_j
                self.drawn_j = 0.0
            self.first_energy_j = energy

    def mean(self, name: str) -> float | None:
        total, count = self.sums.get(name, (0.0, 0))
        return total / count if count else None

    @property
    def energy_j(self) -> float | None:
        """By the counter, which is read now and then, and since then by the power."""
        return self.counted_j + self.drawn_j if self.has_power or self.first_energy_j is not None else None

    @property
    def steps_per_s(self) -> float | None:
        if self.first_step is None or self.last_step is None:
            return None
        seconds, steps = self.last_step[0] - self.first_step[0], self.last_step[1] - self.first_step[1]
        return steps / seconds if seconds > 0 and steps > 0 else None


class Summary:
    """Of one run, while it goes on."""

    def __init__(
        self,
        devices: Sequence[SampledDevice] = (),
        usd_per_hour: float | None = None,
        kg_per_kwh: float | None = None,
        conditions: Mapping[str, str] | None = None,
    ) -> None:
        """`conditions`: what a later run of the same work may find changed, such as the program itself."""
        drivers = ", ".join(sorted({device.driver for device in devices if device.driver}))
        self._conditions = {**({"driver": drivers} if drivers else {}), **(conditions or {})}
        self._names = {device.source: device.chip or device.name for device in devices}
        self._usd_per_hour, self._kg_per_kwh = usd_per_hour, kg_per_kwh
        self._sources: dict[str, _Source] = {}
        self._reasons: dict[str, str] = {}
        self._span_s: tuple[float, float] | None = None

    def add(self, sample: Sample) -> None:
        first = sample.at_s if self._span_s is None else self._span_s[0]
        self._span_s = (first, sample.at_s)
        self._sources.setdefault(sample.source, _Source()).add(sample)
        busy = sample.readings.get("busy")
        if isinstance(busy, NoReading):
            self._reasons[sample.source] = busy.reason

    def add_all(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            self.add(sample)

    @property
    def seconds(self) -> float:
        return 0.0 if self._span_s is None else self._span_s[1] - self._span_s[0]

    @property
    def energy_kwh(self) -> float | None:
        """Of the devices that count it."""
        energies = [source.energy_j for source in self._sources.values() if source.energy_j is not None]
        return sum(energies) / _J_PER_KWH if energies else None

    def value(self) -> dict[str, Any]:
        """As plain data. What was not measured is left out."""
        energy = self.energy_kwh
        usd = None if self._usd_per_hour is None else self._usd_per_hour * self.seconds / 3600.0
        kg = None if energy is None or self._kg_per_kwh is None else energy * self._kg_per_kwh
        fields: dict[str, Any] = {
            "seconds": round(self.seconds, 1),
            "devices": {
                name: self._device(name, source)
                for name, source in self._sources.items()
                if name.partition(":")[0] not in (HOST, PROGRAM, "server")
            },
            "energy_kwh": None if energy is None else round(energy, 6),
            "usd": None if usd is None else round(usd, 6),
            "kg_co2e": None if kg is None else round(kg, 6),
        }
        if self._conditions:
            fields["conditions"] = dict(self._conditions)
        if (host := self._sources.get(HOST)) is not None:
            fields["host"] = _without_none(
                {"cpu": _shares(host, "cpu"), "memory_peak_bytes": host.memory_peak, "cpu_of_others": self._of_others(host)}
            )
        if (program := self._sources.get(PROGRAM)) is not None:
            fields["program"] = _without_none({"memory_peak_bytes": program.memory_peak, "steps_per_s": program.steps_per_s})
        return _without_none(fields)

    def _of_others(self, host: _Source) -> float | None:
        """Of all cores, what other programs used."""
        own, cores, used = self._sources.get(PROGRAM, _Source()).mean("cpu"), host.mean("cores"), host.mean("cpu")
        return None if own is None or not cores or used is None else round(max(used - own / cores, 0.0), 4)

    def _device(self, name: str, source: _Source) -> dict[str, Any]:
        fields: dict[str, Any] = {"name": self._names.get(name)}
        fields |= {share: _shares(source, share) for share in SHARES}
        fields |= {
            "energy_j": None if source.energy_j is None else round(source.energy_j, 1),
            "memory_peak_bytes": source.memory_peak,
            "temperature_max_c": source.hottest,
            "processes": None if (holders := source.mean("processes")) is None else round(holders, 2),
            "missing": self._reasons.get(name),
        }
        return _without_none(fields)


def _shares(source: _Source, name: str) -> dict[str, float] | None:
    shares = source.shares.get(name)
    return None if shares is None else shares.value()


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def sentence(value: Mapping[str, Any]) -> str:
    """For a job's history: the devices together, and what they drew."""
    from chipwise.text import number, percent

    listed = value.get("devices")
    devices = [device for device in listed.values() if isinstance(device, dict)] if isinstance(listed, dict) else []
    parts = []
    for name, words in (("busy", "busy"), ("sm_active", "multiprocessors"), ("dram_active", "memory bandwidth")):
        means = [device[name]["p50"] for device in devices if isinstance(device.get(name), dict) and "p50" in device[name]]
        if means:
            parts.append(f"{words} {percent(sum(means) / len(means))}")
    if isinstance(energy := value.get("energy_kwh"), float):
        parts.append(f"{number(energy)} kWh")
    if isinstance(carbon := value.get("kg_co2e"), float):
        parts.append(f"{number(carbon)} kg CO2e")
    return ", ".join(parts)
