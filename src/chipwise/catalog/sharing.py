"""The ways one chip is shared, what isolation each gives, and the slices a chip can be cut into."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chipwise.catalog.chip import Chip, ChipKind
from chipwise.catalog.tables import read_rows


class SharingMode(NamedTuple):
    """A way to share one chip, and what it isolates."""

    mode: str
    title: str
    tenants: str
    memory_isolation: bool
    fault_isolation: bool
    performance_isolation: bool
    applies_to: str
    how: str
    when_to_use: str
    sources: str
    as_of: str


class Slice(NamedTuple):
    """One profile: how many of it fit on a chip, and the memory of each."""

    chip: str
    profile: str
    memory_gb: float | None
    instances: int | None
    sources: str
    as_of: str


@lru_cache(maxsize=4)
def modes(data: Path) -> tuple[SharingMode, ...]:
    return tuple(read_rows(data / "sharing.csv", SharingMode))


def modes_of(chip: Chip, data: Path) -> tuple[SharingMode, ...]:
    """The modes this chip can be shared in; passthrough always."""
    capability = chip.compute_capability or 0.0
    board = chip.vendor == "NVIDIA" and chip.kind is ChipKind.GPU
    can = {
        "passthrough": True,
        "mig": bool(chip.mig_slices),
        "vgpu": any(profile.chip == chip.name for profile in vgpu_profiles(data)),
        "mps": board and capability >= 7.0,
        "time-slicing": board and capability >= 6.0,
    }
    return tuple(mode for mode in modes(data) if can[mode.mode])


@lru_cache(maxsize=4)
def mig_profiles(data: Path) -> tuple[Slice, ...]:
    return tuple(read_rows(data / "mig_profiles.csv", Slice))


@lru_cache(maxsize=4)
def vgpu_profiles(data: Path) -> tuple[Slice, ...]:
    return tuple(read_rows(data / "vgpu_profiles.csv", Slice))
