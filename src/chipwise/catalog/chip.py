"""A chip: one accelerator, processor or edge device as a buyer meets it, with its peak rates and what it can do.

Rates are dense (no 2:4 sparsity) and in FLOP/s or OP/s; bandwidths in bytes/s; `link_bytes_per_s` is the
bidirectional total of one chip (NVLink 4 = 900e9). None means nobody we read states it, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chipwise.catalog.fact import Fact


class ChipKind(StrEnum):
    GPU = "gpu"
    TPU = "tpu"
    NEURON = "neuron"  # AWS Inferentia and Trainium
    GAUDI = "gaudi"
    NPU = "npu"  # other inference accelerators
    FPGA = "fpga"
    CPU = "cpu"
    EDGE = "edge"


class Precision(StrEnum):
    FP64 = "fp64"
    FP64_TENSOR = "fp64_tensor"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    FP4 = "fp4"
    INT8 = "int8"


@dataclass(frozen=True, slots=True)
class Silicon:
    """What is on the die, in the words of data sheets. Zero cores of a sort means it has none of them."""

    cores: int | None = None
    tensor_cores: int | None = None
    rt_cores: int | None = None
    units: int | None = None  # streaming multiprocessors, compute units or NeuronCores
    base_mhz: float | None = None
    boost_mhz: float | None = None
    memory_bus_bits: int | None = None
    l2_bytes: float | None = None
    process_nm: float | None = None
    die_mm2: float | None = None
    transistors: float | None = None
    encoders: int | None = None
    decoders: int | None = None


@dataclass(frozen=True, slots=True)
class Chip:
    name: str
    vendor: str
    kind: ChipKind
    family: str  # what `h100` means: all members share it
    architecture: str
    aliases: tuple[str, ...]
    common: bool  # the form meant when the family name must mean exactly one chip
    compute_capability: float | None  # NVIDIA only
    target: str | None  # AMD's name of the instruction set, such as gfx942
    year: int | None
    memory_gb: float | None  # as the vendor prints it
    memory_bytes: float | None  # what a program can be given; see `usable_memory`
    memory_type: str | None
    memory_bytes_per_s: float | None
    rates: dict[Precision, float]
    interconnect: str | None
    link_bytes_per_s: float | None
    pcie_gen: int | None
    power_w: float | None
    mig_slices: int | None  # 0: cannot be sliced
    silicon: Silicon
    launch_price_usd: float | None
    launch_price_basis: str | None  # what the price is of, and how sure it is
    fact: Fact

    def rate(self, precision: Precision) -> float | None:
        return self.rates.get(precision)


def usable_memory(memory_gb: float | None, inline_ecc: bool = False) -> float | None:
    """Bytes a program can be given, from the gigabytes on the box.

    Memory is built in powers of two, so "80 GB" of HBM is 80 GiB with its check bits beside the data. Data-centre boards
    with GDDR5 or GDDR6 have no room beside and give up a sixteenth (`inline_ecc`): a 48 GB L40S reports 45 GiB and a 16 GB
    T4 15 GiB. Workstation and GeForce boards run without ECC, and GDDR7 has its own. Derived, within 1% of what drivers
    report.
    """
    return None if memory_gb is None else memory_gb * 2.0**30 * (15 / 16 if inline_ecc else 1.0)


def bare(name: str, vendor: str, kind: ChipKind, architecture: str, fact: Fact) -> Chip:
    """One of which only this is known."""
    return Chip(
        name=name,
        vendor=vendor,
        kind=kind,
        family=name,
        architecture=architecture,
        aliases=(),
        common=True,
        compute_capability=None,
        target=None,
        year=None,
        memory_gb=None,
        memory_bytes=None,
        memory_type=None,
        memory_bytes_per_s=None,
        rates={},
        interconnect=None,
        link_bytes_per_s=None,
        pcie_gen=None,
        power_w=None,
        mig_slices=None,
        silicon=Silicon(),
        launch_price_usd=None,
        launch_price_basis=None,
        fact=fact,
    )
