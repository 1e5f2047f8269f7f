"""The catalog's machines as columns. What decides speed is a shape: machines of one shape differ in price and place only.

A shape is a chip, how many of them one machine has, what joins machines, and the memory that each chip gives. There are some
hundreds of shapes behind some ten thousand offers, so speed is predicted per shape and prices are joined to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.machine import Machine
from chipwise.catalog.query import chip_memory
from chipwise.perf.part import Part, Parts

Index = NDArray[np.intp]
SLOWEST_FABRIC = 1.25e9  # bytes/s of one machine: below 10 Gbit/s nobody trains over several


@dataclass(frozen=True, slots=True)
class Shape:
    part: str  # a name in `Parts`
    chips: int
    fabric: float  # bytes/s per chip between machines; 0: what is usual for the part
    memory_bytes: float  # of one chip

    @property
    def whole(self) -> bool:
        return self.chips >= 1


@dataclass(frozen=True, slots=True)
class Unusable:
    """A machine of which no speed can be predicted here, and why."""

    machine: int
    why: str


@dataclass(frozen=True)
class Fleet:
    catalog: Catalog
    parts: Parts
    shapes: tuple[Shape, ...]
    shape_of: Index  # by machine: position in `shapes`, or -1
    unusable: tuple[Unusable, ...]

    def part(self, shape: int) -> Part:
        return self.parts[self.shapes[shape].part]


def fleet_of(catalog: Catalog, parts: Parts) -> Fleet:
    places: dict[Shape, int] = {}
    shape_of = np.full(len(catalog.machines), -1, dtype=np.intp)
    unusable = []
    for at, machine in enumerate(catalog.machines):
        found = _shape(catalog, parts, machine)
        if isinstance(found, str):
            unusable.append(Unusable(at, found))
        else:
            shape_of[at] = places.setdefault(found, len(places))
    return Fleet(catalog, parts, tuple(places), shape_of, tuple(unusable))


def _shape(catalog: Catalog, parts: Parts, machine: Machine) -> Shape | str:
    if machine.chip is None:
        return "its chip is not in the catalog"
    part = parts.find(machine.chip)
    if part is None or part.unstated:
        return f"too little is stated of {machine.chip}"
    if machine.chips is None:
        return "a processor without accelerator"
    if machine.chips < 1 or machine.chips != int(machine.chips):
        return f"a slice of {machine.chips:g} chips"
    memory = chip_memory(catalog, machine)
    if memory is not None and memory < 0.9 * part.memory_bytes:
        return f"gives {memory / 2**30:.0f} GiB of the chip's {part.memory_bytes / 2**30:.0f}"
    return Shape(machine.chip, int(machine.chips), _fabric(machine), part.memory_bytes)


def _fabric(machine: Machine) -> float:
    """Per chip. A stated network counts where the fabric is not told apart; both in steps, so that shapes stay few."""
    stated = machine.fabric_bytes_per_s or machine.network_bytes_per_s
    if not stated or not machine.chips:
        return 0.0
    return float(2.0 ** (round(2.0 * np.log2(stated / machine.chips)) / 2.0))


def joins(machine: Machine) -> bool:
    """Whether several of them can work on one job."""
    network = machine.fabric_bytes_per_s or machine.network_bytes_per_s
    return machine.fabric != "no" and (network is None or network >= SLOWEST_FABRIC)
