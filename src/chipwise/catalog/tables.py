"""The tables beside chips, machines, regions and offers: what else costs, emits, breaks, is allowed or is needed.

Each is a CSV file in `data/tables/`, and its row type here is its schema: the columns are the fields by name, and the
annotation says how a cell is read. (Named tuples: rows are read by the thousand.) A blank cell is
None, or an empty text: nobody we read states it. `sources`, `as_of`, `inferred` and `notes` of a row become its `fact`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from chipwise.catalog.fact import Fact
from chipwise.catalog.price_tables import (
    BoardPrice,
    Commitment,
    EnergyPrice,
    Interruption,
    MediaPrice,
    PriceDecline,
    PriceDrift,
    PriceHistory,
    QuantumPrice,
    ServerlessPrice,
    StoragePrice,
    TokenPrice,
)
from chipwise.errors import InvalidFile, Problem


class FailureRate(NamedTuple):
    """How often hardware stopped the jobs of a large cluster."""

    what: str
    chips: float | None
    chip: str
    per_1000_chip_days: float | None
    planned: bool  # by the operators, for maintenance
    fact: Fact


class Quantised(NamedTuple):
    """What a model scored in a narrower number format, against the format it was published in."""

    model: str
    format: str  # fp8 | fp4 | int8 | int4
    method: str
    benchmark: str
    baseline: float | None
    quantised: float | None
    recovery_pct: float | None
    fact: Fact


class Embodied(NamedTuple):
    """Carbon of making a thing, never of using it. Scopes differ: do not add them blindly."""

    item: str
    kg_co2e: float | None
    unit: str
    scope: str
    lifetime_years: float | None
    basis: str
    fact: Fact


class Quota(NamedTuple):
    """What an account may start before it asks for more: the default, in the provider's own unit."""

    provider: str
    name: str
    code: str
    unit: str
    default: str
    adjustable: str
    families: str
    counts: str  # vcpu or chip; empty: not machines
    purchases: str  # on-demand, spot, reserved, joined by |
    fact: Fact


class ImageRow(NamedTuple):
    """A container image by what it is for, the device it drives, and the chips it still runs on."""

    purpose: str
    device: str  # nvidia, amd, neuron, tpu, cpu
    capability_low: float | None
    capability_high: float | None
    arch: str
    chips: str  # names, where not all of the device that the capability allows; empty: all
    image: str
    tag: str
    known: str  # how: seen (published files name this very tag), release (it follows one that exists), naming, recalled
    version: str
    cuda: str
    driver: str
    fact: Fact


class FabricRow(NamedTuple):
    """Network interfaces of a machine's fabric that one pod or job may take."""

    provider: str
    machine: str
    fabric: str
    interfaces: int | None
    fact: Fact


class Compliance(NamedTuple):
    """`level` says how far a statement reaches: a provider's programme does not prove a region's service is in scope."""

    provider: str
    region: str
    country: str | None
    in_eu: bool | None
    in_eea: bool | None
    sovereign: str
    hipaa: str
    fedramp: str
    iso27001: str
    pci: str
    level: str
    fact: Fact


class RuntimeFact(NamedTuple):
    """Read as: `component` `version` needs or offers (`requires`) `value`. The rules that refuse are in compatibility."""

    component: str
    version: str
    requires: str
    value: str
    fact: Fact


class CpuRates(NamedTuple):
    """Per socket. The rates are derived upper bounds: vector clocks are lower than the sustained clock."""

    name: str
    typical_sku: str
    cores: int | None
    sustained_ghz: float | None
    vector_bits: int | None
    fma_units: int | None
    amx: bool | None
    fp32_flop_per_cycle_core: float | None
    bf16_flop_per_cycle_core: float | None
    int8_op_per_cycle_core: float | None
    fp32_tflops: float | None
    bf16_tflops: float | None
    int8_tops: float | None
    memory_channels: int | None
    memory_speed: str
    memory_gb_per_s: float | None
    power_w: float | None
    used_by: str
    fact: Fact


class FpgaRates(NamedTuple):
    """Device totals; a cloud shell takes a share. The INT8 rates assume every DSP slice busy: upper bounds."""

    name: str
    card: str
    luts: int | None
    flip_flops: int | None
    dsp_slices: int | None
    bram_36kb: int | None
    uram_288kb: int | None
    onchip_mb: float | None
    hbm_gb: float | None
    hbm_gb_per_s: float | None
    ddr_gb: float | None
    ddr_channels: int | None
    ddr_gb_per_s: float | None
    clock_mhz_low: float | None
    clock_mhz_high: float | None
    int8_tops_at_250mhz: float | None
    int8_tops_at_500mhz: float | None
    fact: Fact


class FpgaThroughput(NamedTuple):
    """What a published FPGA design reached, on which device and clock."""

    workload: str
    device: str
    clock_mhz: str
    throughput: float | None
    unit: str
    luts_used: str
    power_w: str
    basis: str
    fact: Fact


class EdgeDevice(NamedTuple):
    """A small device. Plan with the dense rate: vendors print the sparse one."""

    device: str
    chip: str | None
    form: str
    accelerator: str
    cores: int | None
    tensor_cores: int | None
    cpu: str
    memory_gb: float | None
    memory_type: str
    memory_gb_per_s: float | None
    fp32_tflops: float | None
    int8_tops_dense: float | None
    int8_tops_sparse: float | None
    power_min_w: float | None
    power_max_w: float | None
    power_modes_w: str
    usd_low: float | None
    usd_high: float | None
    price_basis: str
    fact: Fact


class Correction(NamedTuple):
    """A cell of an upstream machine list that was wrong, and what the catalog says instead."""

    provider: str
    machine: str
    field: str
    upstream: str
    corrected: str
    why: str


TABLES: dict[str, type[Any]] = {
    "boards": BoardPrice,
    "commitments": Commitment,
    "compliance": Compliance,
    "corrections": Correction,
    "cpus": CpuRates,
    "edge_devices": EdgeDevice,
    "embodied": Embodied,
    "energy": EnergyPrice,
    "failures": FailureRate,
    "fpga_throughput": FpgaThroughput,
    "fabrics": FabricRow,
    "fpgas": FpgaRates,
    "images": ImageRow,
    "interruptions": Interruption,
    "media": MediaPrice,
    "price_decline": PriceDecline,
    "price_drift": PriceDrift,
    "price_history": PriceHistory,
    "quantisation": Quantised,
    "quantum": QuantumPrice,
    "quotas": Quota,
    "runtimes": RuntimeFact,
    "serverless": ServerlessPrice,
    "storage": StoragePrice,
    "tokens": TokenPrice,
}

_READ: dict[str, Callable[[str], Any]] = {
    "str": str,
    "str | None": lambda cell: cell or None,
    "float | None": lambda cell: float(cell) if cell else None,
    "int | None": lambda cell: int(float(cell)) if cell else None,
    "bool": lambda cell: cell == "yes",
    "bool | None": lambda cell: (cell == "yes") if cell else None,
}


R = TypeVar("R", bound=tuple[Any, ...])


def _written(kind: Any) -> str:
    """An annotation as it stands in the source; NamedTuple wraps it in a forward reference."""
    return str(getattr(kind, "__forward_arg__", kind))


def check_header(path: Path, header: Sequence[str], columns: tuple[str, ...]) -> None:
    """Files that are read by position have exactly the columns in their order."""
    if tuple(header) != columns:
        raise InvalidFile(str(path), [Problem("", f"the columns are not {', '.join(columns)}", 1)])


def read_rows(path: Path, row_type: type[R]) -> Iterator[R]:
    """The rows of one CSV file as values of `row_type`."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        column = {name: i for i, name in enumerate(next(reader))}
        types = row_type.__annotations__
        plan = [(column[name], _READ[_written(kind)]) for name, kind in types.items() if name != "fact"]
        facts = tuple(column[name] for name in ("sources", "as_of", "inferred", "notes")) if "fact" in types else ()
        for cells in reader:
            values = [read(cells[i]) for i, read in plan]
            if facts:
                sources, as_of, inferred, notes = (cells[i] for i in facts)
                values.append(Fact(tuple(sources.split("|")), as_of, tuple(inferred.split()), notes))
            yield row_type(*values)
