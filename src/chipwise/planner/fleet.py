"""The catalog's machines as columns. What decides speed is a shape: machines of one shape differ in price and place only.

A shape is a chip, how many of them one machine has, what joins machines, and the memory that each chip gives. There are some
hundreds of shapes behind some ten thousand offers, so speed is predicted per shape and prices are joined to it.

Three kinds of machine are no whole accelerators; they are shapes of a wide fleet only (`fleet_of(..., wide=True)`):
- a processor: its socket's rates, bandwidth and power by the share of its threads that the vCPUs are (two sockets: 2), and the
  machine's memory. Fair shares: a machine whose neighbours sleep draws more bandwidth (`perf/kernels/processor`);
- a slice: a chip's rates, bandwidth and power by its share, and the memory that the offer states;
- an FPGA, of which no sheet states arithmetic: it counts by its fabric (`perf/kernels/fpga`, `transcode`).
The parts of the first two are made here and named after what they are: `EPYC-Genoa (32 vCPU, 64 GiB)`, `L4 (1/8)`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.machine import Machine
from chipwise.catalog.query import chip_memory
from chipwise.perf.arrays import Array
from chipwise.perf.kernels.processor import Processors
from chipwise.perf.part import Part, Parts, scaled
from chipwise.text import gib, size

Index = NDArray[np.intp]
Trait = TypeVar("Trait", bound=Hashable)
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)  # machines that are tried
MOST_CHIPS = 4096
SLOWEST_FABRIC = 1.25e9  # bytes/s of one machine: below 10 Gbit/s nobody trains over several


@dataclass(frozen=True, slots=True)
class Shape:
    part: str  # a name in the fleet's `Parts`
    chips: int
    fabric: float  # bytes/s per chip between machines; 0: nobody states any
    memory_bytes: float  # of one chip
    share: float = 1.0  # of the catalog's chip that one chip of the shape is; of a socket, which may be more than one
    base_chip: str = ""  # the catalog's chip, where the part is made of it

    @property
    def is_whole(self) -> bool:
        return not self.base_chip

    @property
    def chip(self) -> str:
        """The catalog's name."""
        return self.base_chip or self.part


@dataclass(frozen=True, slots=True)
class Unusable:
    """A machine of which no speed can be predicted here, and why."""

    machine: int
    reason: str


@dataclass(frozen=True)
class Fleet:
    catalog: Catalog
    parts: Parts
    shapes: tuple[Shape, ...]
    shape_of: Index  # by machine: position in `shapes`, or -1
    unusable: tuple[Unusable, ...]
    reach: NDArray[np.float64]  # by machine: the most of them that can work on one job (`reach_of`)

    def part(self, shape: int) -> Part:
        return self.parts[self.shapes[shape].part]

    @property
    def parts_of_shapes(self) -> list[Part]:
        return [self.parts[shape.part] for shape in self.shapes]

    @cached_property
    def families(self) -> tuple[str, ...]:
        """By shape."""
        return tuple(family_of(part) for part in self.parts_of_shapes)

    def shape_reach(self) -> NDArray[np.float64]:
        """By shape: that of its machine that reaches farthest."""
        farthest = np.ones(len(self.shapes))
        known = self.shape_of >= 0
        np.maximum.at(farthest, self.shape_of[known], self.reach[known])
        return farthest

    def as_if_joined(self) -> Fleet:
        """With every network that nobody states taken for one that joins: to see what stating it would change."""
        unstated = np.array([not _stated(one) and not one.fabric for one in self.catalog.machines], dtype=bool)
        return replace(self, reach=np.where(unstated, np.inf, self.reach))


def fleet_of(catalog: Catalog, parts: Parts, wide: bool = False) -> Fleet:
    """`wide`: with processors, slices, FPGAs and small devices; else whole accelerators only."""
    places: dict[Shape, int] = {}
    shape_of = np.full(len(catalog.machines), -1, dtype=np.intp)
    unusable = []
    derived: dict[str, Part] = {}
    threads = _threads(catalog, parts) if wide else {}
    for index, machine in enumerate(catalog.machines):
        shape = _wide_shape(catalog, parts, machine, threads, derived) if wide else _shape(catalog, parts, machine)
        if isinstance(shape, str):
            unusable.append(Unusable(index, shape))
        else:
            shape_of[index] = places.setdefault(shape, len(places))
    joined = parts.joined(derived.values()) if derived else parts
    reach = np.array([reach_of(one, parts.find(one.chip) if one.chip else None) for one in catalog.machines])
    return Fleet(catalog=catalog, parts=joined, shapes=tuple(places), shape_of=shape_of, unusable=tuple(unusable), reach=reach)


def split_by(fleet: Fleet, traits: Sequence[Trait]) -> tuple[Fleet, tuple[Trait, ...]]:
    """With shapes cut further by a trait that every machine has; and the trait of each shape."""
    places: dict[tuple[int, Trait], int] = {}
    shape_of = fleet.shape_of.copy()
    for index, shape in enumerate(fleet.shape_of.tolist()):
        if shape >= 0:
            shape_of[index] = places.setdefault((shape, traits[index]), len(places))
    shapes = tuple(fleet.shapes[shape] for shape, _ in places)
    return replace(fleet, shapes=shapes, shape_of=shape_of), tuple(trait for _, trait in places)


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
        return f"gives {gib(memory, 0)} of the chip's {part.memory_bytes / 2**30:.0f}"
    return Shape(machine.chip, int(machine.chips), _fabric(machine, part), part.memory_bytes)


def _wide_shape(
    catalog: Catalog, parts: Parts, machine: Machine, threads: Mapping[str, float], derived: dict[str, Part]
) -> Shape | str:
    shape = _shape(catalog, parts, machine)
    if isinstance(shape, Shape) or machine.chip is None:
        return shape
    part = parts.find(machine.chip)
    if part is None:
        return shape
    if part.kind == "cpu" and machine.chips is None:
        return _processor(machine, part, threads, derived)
    if machine.chips is None:
        return "the number of its chips is not known"
    if part.kind in ("fpga", "edge"):
        return Shape(machine.chip, max(int(machine.chips), 1), _fabric(machine, part), part.memory_bytes)
    return shape if part.unstated else _slices(catalog, machine, part, derived)


def _threads(catalog: Catalog, parts: Parts) -> dict[str, float]:
    """vCPUs that a whole socket is, by processor."""
    processors = [part for part in parts if part.kind == "cpu"]
    counted = Processors.of(processors, "fp32", catalog.rows("cpus"))
    return dict(zip((part.name for part in processors), counted.threads.tolist(), strict=True))


def _processor(machine: Machine, part: Part, threads: Mapping[str, float], derived: dict[str, Part]) -> Shape | str:
    if not machine.vcpus or not machine.memory_bytes:
        return "vCPUs or memory are not stated"
    if part.unstated:
        return f"too little is stated of {part.name}"
    share = machine.vcpus / threads[part.name]
    name = f"{part.name} ({machine.vcpus:g} vCPU, {size(machine.memory_bytes)})"
    derived.setdefault(name, scaled(part, name, share, machine.memory_bytes))
    return Shape(
        part=name, chips=1, fabric=_network(machine), memory_bytes=machine.memory_bytes, share=share, base_chip=part.name
    )


def _slices(catalog: Catalog, machine: Machine, part: Part, derived: dict[str, Part]) -> Shape | str:
    """Slices count as chips: a machine with a quarter of a chip has one, a machine that gives a chip in four parts has four."""
    memory = chip_memory(catalog, machine)
    assert machine.chips is not None
    if memory is None or machine.chips <= 0:
        return "the memory of its slice is not stated"
    count = max(round(machine.chips * part.memory_bytes / memory), 1)
    share = machine.chips / count
    if share > 1:
        return f"{machine.chips:g} chips with {gib(memory, 0)} each: not understood"
    part_size = str(Fraction(share).limit_denominator(32)) if share < 1 else gib(memory, 0)
    name = f"{part.name} ({part_size})"
    derived.setdefault(name, scaled(part, name, share, memory))
    return Shape(
        part=name,
        chips=count,
        fabric=_fabric(machine, part),
        memory_bytes=derived[name].memory_bytes,
        share=share,
        base_chip=part.name,
    )


def placed(fleet: Fleet, index: int) -> Part:
    """A shape's part with the network that its machines have: chips of one machine by their links, others by the fabric.

    Of machines whose network nobody states copies stand side by side: what they exchange goes over the slowest that joins.
    """
    shape, part = fleet.shapes[index], fleet.part(index)
    usual = part.fabric if shape.chips >= 8 or part.kind == "tpu" else SLOWEST_FABRIC / shape.chips
    return replace(part, fabric=shape.fabric or usual, domain=max(linked(part, shape.chips), 1))


def linked(part: Part, chips: int) -> int:
    """Chips that fast links join, of machines with `chips` each: as `perf.hardware` has it.

    Links reach beyond a machine in pods of TPUs and racks of several chips a machine (GB200); a single GH200 is rented alone,
    and what joins the chips of a Trainium machine ends with it.
    """
    if part.kind == "tpu" or (part.kind == "gpu" and part.domain > 8 and chips > 1):
        return part.domain
    return min(chips, part.domain) if part.domain > 8 else chips


def _network(machine: Machine) -> float:
    stated = _stated(machine)
    return _in_steps(stated) if stated else 0.0


def _fabric(machine: Machine, part: Part) -> float:
    """Per chip. A stated network counts where the fabric is not told apart; both in steps, so that shapes stay few.

    A fabric that has a name and no number (RoCE, InfiniBand) counts as usual for the part, on small machines as the slowest
    that joins.
    """
    stated = _stated(machine)
    if not machine.chips:
        return 0.0
    if stated:
        return _in_steps(stated / machine.chips)
    has_fabric = machine.fabric not in (None, "", "no")
    return _in_steps(part.fabric if machine.chips >= 8 else SLOWEST_FABRIC / machine.chips) if has_fabric else 0.0


def _in_steps(value: float) -> float:
    return float(2.0 ** (round(2.0 * np.log2(value)) / 2.0))


def _stated(machine: Machine) -> float | None:
    return machine.fabric_bytes_per_s or machine.network_bytes_per_s


def reach_of(machine: Machine, part: Part | None) -> float:
    """The most of these machines that can work on one job; copies that need no network between them are not bound by it.

    Without end over a network that is fast enough or a fabric that has a name, and for TPUs, which are sold as pods. Where
    nobody states a network, machines are not taken to have one: as many as fast links join, and else one.
    """
    network = _stated(machine)
    if machine.fabric == "no" or (network is not None and network < SLOWEST_FABRIC):
        return 1.0
    if network is not None or machine.fabric or (part is not None and part.kind == "tpu"):
        return float("inf")
    chips = int(machine.chips or 1)
    return float(max(linked(part, chips) // max(chips, 1), 1)) if part is not None else 1.0


def machines_for(chips: Array, width: Array, replicas: Array) -> Array:
    """Machines of `chips` chips for replicas of `width`: several replicas in one, or one over several."""
    inside = np.maximum(np.floor(chips / width), 1.0)
    return np.where(width > chips, replicas * np.ceil(width / chips), np.ceil(replicas / inside))


def replicas_in(chips: Array, width: Array, machines: Array) -> Array:
    """Replicas of `width` chips that so many machines of `chips` chips hold; `machines_for` asks the other way round."""
    return np.where(width > chips, np.floor(machines / np.ceil(width / chips)), machines * np.floor(chips / width))


def family_of(part: Part) -> str:
    names = {
        "tpu": "Google TPU",
        "neuron": f"AWS {part.name.rstrip('0123456789')}",
        "gaudi": "Intel Gaudi",
        "cpu": "CPU",
        "fpga": "FPGA",
        "edge": f"edge {part.name.split('-')[0]}",
    }
    return names.get(part.kind) or f"{part.vendor} {part.architecture}"
