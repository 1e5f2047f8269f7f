"""One entry of EC2's DescribeInstanceTypes as a Machine.

EC2 states memory in MiB, disks in GB, network in Gbit/s and block storage in MB/s. Its network cards sometimes each
carry the total (g6e) and sometimes half of it (p6-b200), so the `NetworkPerformance` text decides where it has a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from chipwise.adapters.wire.chips import find_chip
from chipwise.catalog.fact import Fact
from chipwise.catalog.machine import Machine
from chipwise.units import GB, MB, MIB

SOURCE = "AWS EC2 DescribeInstanceTypes"
Entry = Mapping[str, Any]

_GBIT = 1e9 / 8
_PERFORMANCE = re.compile(r"(Up to )?(?:(\d+)x )?(\d+(?:\.\d+)?) Gigabit")
# EC2's words, where the plain name means another part.
_SPELLINGS = {"RTX PRO 4500": "RTX PRO 4500 Blackwell Server Edition"}
# One Trainium2 has 96 GiB by the Neuron documentation; EC2 reports the 512 GiB of a whole trn1.32xlarge.
_MISREPORTED_MIB = {("Trainium2", 524288)}


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The accelerators of one machine, as EC2 names them."""

    name: str
    maker: str
    count: float
    memory_bytes: float | None
    is_whole: bool  # False: a slice, so the memory does not identify the part


def read_machine(entry: Entry, chip_of: Mapping[str, str], today: date) -> tuple[Machine, str | None]:
    """The machine, and why its accelerator has no chip where it has none."""
    name = str(entry["InstanceType"])
    parts = list(_parts(entry))
    part = parts[0] if parts else None
    chip = problem = None
    if part is not None:
        known_size = part.memory_bytes if part.is_whole else None
        chip = find_chip(chip_of, _SPELLINGS.get(part.name, part.name), known_size, part.maker)
        if chip is None:
            problem = f"the catalog has no chip for {part.maker} {part.name}".replace("  ", " ")
        elif any(other.name != part.name for other in parts):
            problem = "more than one kind of accelerator; the first is taken"
    peak, baseline = _network(_dict(entry, "NetworkInfo"))
    architectures = [a for a in _list(_dict(entry, "ProcessorInfo"), "SupportedArchitectures") if a != "i386"]
    machine = Machine(
        provider="aws",
        name=name,
        chip=chip,
        chips=sum(p.count for p in parts if part is not None and p.name == part.name) or None,
        chip_memory_bytes=part.memory_bytes if part else None,
        vcpus=_number(_dict(entry, "VCpuInfo"), "DefaultVCpus", 1),
        memory_bytes=_number(_dict(entry, "MemoryInfo"), "SizeInMiB", MIB),
        disk_bytes=_number(_dict(entry, "InstanceStorageInfo"), "TotalSizeInGB", GB),
        network_bytes_per_s=peak,
        network_baseline_bytes_per_s=baseline,
        fabric="efa" if _dict(entry, "NetworkInfo").get("EfaSupported") else "no",
        cpu_arch=str(architectures[0]) if architectures else None,
        storage_bytes_per_s=_number(_dict(_dict(entry, "EbsInfo"), "EbsOptimizedInfo"), "MaximumThroughputInMBps", MB),
        fact=Fact((SOURCE,), today.isoformat()),
    )
    return machine, problem


def _parts(entry: Entry) -> Iterator[Accelerator]:
    """GPUs, Neuron devices, FPGAs, media and other accelerators, whichever EC2 lists first in this order.

    Inferentia is listed twice, under NeuronInfo and under InferenceAcceleratorInfo; the first answers.
    """
    for section, listing in (
        ("GpuInfo", "Gpus"),
        ("NeuronInfo", "NeuronDevices"),
        ("InferenceAcceleratorInfo", "Accelerators"),
        ("FpgaInfo", "Fpgas"),
        ("MediaAcceleratorInfo", "Accelerators"),
    ):
        items = [item for item in _list(_dict(entry, section), listing) if isinstance(item, Mapping) and item.get("Name")]
        for item in items:
            name = str(item["Name"])
            share = _number(item, "GpuPartitionSize", 1) or 1.0
            count = _number(item, "Count", 1) or (_number(item, "LogicalGpuCount", 1) or 0.0) * share
            memory = _dict(item, "MemoryInfo")
            misreported = (name, memory.get("SizeInMiB")) in _MISREPORTED_MIB
            size = None if misreported else _number(memory, "SizeInMiB", MIB)
            yield Accelerator(
                name=name, maker=str(item.get("Manufacturer") or ""), count=count, memory_bytes=size, is_whole=share == 1
            )
        if items:
            return


def _network(info: Entry) -> tuple[float | None, float | None]:
    """Peak and guaranteed bytes/s of the whole machine."""
    cards = [card for card in _list(info, "NetworkCards") if isinstance(card, Mapping)]
    peaks = sum(_number(card, "PeakBandwidthInGbps", _GBIT) or 0 for card in cards) or None
    bases = sum(_number(card, "BaselineBandwidthInGbps", _GBIT) or 0 for card in cards) or None
    text = _PERFORMANCE.fullmatch(str(info.get("NetworkPerformance", "")))
    if text is None:
        return peaks, bases
    stated = float(text[2] or 1) * float(text[3]) * _GBIT
    return stated, bases if text[1] else stated


def _dict(holder: Entry, name: str) -> Entry:
    value = holder.get(name)
    return value if isinstance(value, Mapping) else {}


def _list(holder: Entry, name: str) -> Sequence[Any]:
    value = holder.get(name)
    return value if isinstance(value, list | tuple) else ()


def _number(holder: Entry, name: str, scale: float) -> float | None:
    """A positive number in our unit; EC2 writes 0 for "has none" (GPUs of a shared chip)."""
    value = holder.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e15:
        return None
    return float(value) * scale
