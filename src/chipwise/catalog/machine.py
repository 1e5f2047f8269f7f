"""A machine: what a provider rents, or an owner racks, under one name."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog.fact import UNKNOWN, Fact

# Chips that are soldered to an Arm processor, or are one.
_ON_ARM = ("GH200", "GB200", "GB300", "Graviton", "Jetson", "Orin", "Thor", "Raspberry", "Hailo", "Coral")


def runs_arm(machine: Machine | None, chip: str) -> bool:
    """As the provider states it, or as the chip's name tells: images for x86 do not start there."""
    return chip.startswith(_ON_ARM) or (machine is not None and (machine.cpu_arch or "").startswith(("arm", "aarch")))


@dataclass(frozen=True, slots=True)
class Machine:
    provider: str
    name: str
    chip: str | None  # a Chip's name; None where the catalog has no such part
    chips: float | None  # fractions are slices of a shared chip; None on CPU machines: the processor is the chip
    chip_memory_bytes: float | None = None  # of one chip as this machine exposes it
    vcpus: float | None = None
    memory_bytes: float | None = None
    disk_bytes: float | None = None  # local NVMe or temporary disk
    network_bytes_per_s: float | None = None
    network_baseline_bytes_per_s: float | None = None
    fabric: str | None = None  # EFA, InfiniBand, RoCE, ...; "no" where the provider says there is none
    fabric_bytes_per_s: float | None = None  # where the provider states the fabric apart from the network
    link: str | None = None  # between the chips of one machine
    pcie_gen: int | None = None
    cpu_arch: str | None = None
    storage_bytes_per_s: float | None = None  # attached block storage
    year: int | None = None
    retired: bool = False
    fact: Fact = UNKNOWN
    # Of machines that somebody owns:
    purchase_usd: float | None = None
    power_w: float | None = None
    full_usd_per_hour: float | None = None  # depreciation, hosting and electricity
    energy_usd_per_hour: float | None = None  # electricity alone: what an hour costs on top
    paid: bool = False  # its purchase is past: electricity alone counts
    owned: tuple[tuple[str, int], ...] = ()  # region, and how many there are; a region that is not named: not stated

    def owned_in(self, region: str) -> int | None:
        """How many there are; None: not stated."""
        return dict(self.owned).get(region)

    @property
    def key(self) -> tuple[str, str]:
        return (self.provider, self.name)
