"""From a recording to what rules need: one number per quantity over the steady part, and what it says about each device.

Nothing is guessed here: a quantity that was not read is None, and `why_missing` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chipwise.catalog.chip import Chip
from chipwise.observe.readings import Track, Tracks, by_source, read, table_of
from chipwise.observe.sample import HOST, PROGRAM, SERVER, Recording, SampledDevice
from chipwise.observe.steady import window

FEWEST_S = 1.0  # less is no evidence
# Bytes/s of a lane and direction after its encoding, by generation; what programs reach is some 85-90% of it.
LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
USUAL_LANES = 16


@dataclass(frozen=True, slots=True)
class Observed:
    """What was read of the host, the program, a rank or a device over the steady part."""

    name: str
    tracks: Mapping[str, Track] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def mean(self, metric: str) -> float | None:
        """Of a level; of a counter, its rate."""
        track = self.tracks.get(metric)
        return None if track is None else track.mean

    def percentile(self, metric: str, share: float) -> float | None:
        track = self.tracks.get(metric)
        return None if track is None else track.percentile(share)

    def share_above(self, metric: str, limit: float) -> float | None:
        track = self.tracks.get(metric)
        return None if track is None else track.share_above(limit)

    def or_zero(self, metric: str) -> float:
        """For signs that only count when they are there: what is not read gives none."""
        return self.mean(metric) or 0.0

    def why_missing(self, metric: str) -> str:
        return self.missing.get(metric, "" if metric in self.tracks else "not sampled")


@dataclass(frozen=True, slots=True)
class ObservedDevice(Observed):
    device: SampledDevice = field(default_factory=lambda: SampledDevice("", ""))
    chip: Chip | None = None

    @property
    def label(self) -> str:
        vendor, _, number = self.name.partition(":")
        return f"GPU {number}" if vendor in ("nvidia", "amd") else self.name.replace(":", " ")

    @property
    def has_counters(self) -> bool:
        """Of what the multiprocessors do; without them there is only what the driver calls utilisation."""
        return "graphics_active" in self.tracks and "sm_active" in self.tracks

    @property
    def active(self) -> float | None:
        """Share of the time in which kernels ran; without counters also copies, which utilisation counts too."""
        counted = self.mean("graphics_active")
        return self.mean("busy") if counted is None else counted

    @property
    def copying(self) -> float | None:
        """Share of the time in which the device was busy and no kernel ran: copies."""
        busy, counted = self.mean("busy"), self.mean("graphics_active")
        return None if busy is None or counted is None else max(busy - counted, 0.0)

    @property
    def filled(self) -> float | None:
        """Of the multiprocessors, while a kernel ran."""
        multiprocessors, active = self.mean("sm_active"), self.mean("graphics_active")
        return None if multiprocessors is None or not active or active < 0.002 else min(multiprocessors / active, 1.0)

    def while_active(self, metric: str) -> float | None:
        """A share of all time as one of the time in which kernels ran."""
        share, active = self.mean(metric), self.mean("graphics_active")
        return None if share is None or not active or active < 0.05 else min(share / active, 1.0)

    @property
    def power_share(self) -> float | None:
        power = self.mean("power")
        limit = self.mean("power_limit") or (self.chip.power_w if self.chip else None)
        return None if power is None or not limit else power / limit

    @property
    def memory_share(self) -> float | None:
        used, total = self.percentile("memory_used", 0.95), self.mean("memory_total")
        return None if used is None or not total else used / total

    @property
    def pcie_bytes_per_s(self) -> float | None:
        """In the direction that moves more."""
        directions = [rate for rate in (self.mean("pcie_received"), self.mean("pcie_sent")) if rate is not None]
        return max(directions) if directions else None

    @property
    def pcie_capacity(self) -> float | None:
        generation = self.percentile("pcie_generation", 0.95) or self.mean("pcie_generation_max")
        lanes = self.mean("pcie_width") or self.mean("pcie_width_max") or USUAL_LANES
        if generation is None:
            generation = self.chip.pcie_gen if self.chip else None
        rate = None if generation is None else LANE_BYTES_PER_S.get(round(generation))
        return None if rate is None else rate * lanes


@dataclass(frozen=True, slots=True)
class Evidence:
    devices: tuple[ObservedDevice, ...]
    host: Observed
    program: Observed
    server: Observed
    ranks: tuple[Observed, ...]
    window_s: tuple[float, float]  # the steady part, since the start of the recording
    length_s: float  # of the whole recording
    notes: tuple[str, ...]
    predicted: Mapping[str, tuple[float, float, float]]
    usd_per_hour: float | None

    @property
    def steady_s(self) -> float:
        return self.window_s[1] - self.window_s[0]

    @property
    def cores(self) -> float | None:
        return self.host.mean("cores")

    @property
    def active(self) -> float | None:
        """Of all devices."""
        shares = [share for device in self.devices if (share := device.active) is not None]
        return sum(shares) / len(shares) if shares else None


def gather(recording: Recording, chips: Mapping[str, Chip] | None = None) -> Evidence:
    """`chips`: of the catalog, by the names that devices carry."""
    sources = {name: read(name, samples) for name, samples in by_source(recording.samples).items()}
    times = [sample.at_s for sample in recording.samples]
    zero = min(times, default=0.0)
    start, end = window([tracks.levels for tracks in sources.values()])
    steady = {name: _steady_part(tracks, start, end) for name, tracks in sources.items()}
    described = {device.source: device for device in recording.devices}
    names = [name for name in steady if table_of(name) is table_of("nvidia:0")]
    names += [name for name in described if name not in steady]

    def device(name: str) -> ObservedDevice:
        tracks, missing = steady.get(name, ({}, {}))
        description = described.get(name, SampledDevice(name, name))
        chip = (chips or {}).get(description.chip or "")
        return ObservedDevice(name=name, tracks=tracks, missing=missing, device=description, chip=chip)

    def source(name: str) -> Observed:
        tracks, missing = steady.get(name, ({}, {}))
        return Observed(name, tracks, missing)

    return Evidence(
        devices=tuple(device(name) for name in sorted(names, key=_in_order)),
        host=source(HOST),
        program=source(PROGRAM),
        server=source(SERVER),
        ranks=tuple(source(name) for name in sorted(steady, key=_in_order) if name.startswith(f"{PROGRAM}:")),
        window_s=(start - zero, end - zero) if times else (0.0, 0.0),
        length_s=max(times, default=0.0) - zero,
        notes=tuple(note for tracks in sources.values() for note in tracks.notes),
        predicted=recording.predicted,
        usd_per_hour=recording.usd_per_hour,
    )


def _steady_part(tracks: Tracks, start: float, end: float) -> tuple[dict[str, Track], dict[str, str]]:
    cut = {name: part for name, track in tracks.levels.items() if (part := track.between(start, end)) is not None}
    absent = {name: "not read in the steady part" for name in tracks.levels if name not in cut}
    return cut, {**tracks.missing, **absent}


def _in_order(name: str) -> tuple[str, int]:
    """nvidia:2 before nvidia:10."""
    kind, _, number = name.partition(":")
    return kind, int(number) if number.isdecimal() else 0
