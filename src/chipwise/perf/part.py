"""A part as the performance model sees it: peak rates, memory, links. From the catalog, joined with `data/perf/parts.csv`.

That table has what the catalog does not state: how many chips one fast link joins (`domain`), what each gets of it in one
direction, what each gets of the network between machines, and parts that are measured but not sold. Bandwidths are bytes/s
in one direction and nominal; rates are dense.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache

from chipwise.catalog.chip import Chip, ChipKind
from chipwise.perf.tables import rows
from chipwise.units import GB, GIB

SERVES_ONLY = ("Inferentia", "Cloud-AI")  # chips, by the start of their names, whose software does not train
PCIE_BYTES_PER_S = {3: 12e9, 4: 24e9, 5: 48e9, 6: 96e9}  # x16, one direction, after framing
_RATES = ("fp64", "fp64_tensor", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
# Where a format has no unit of its own the work is done in the first of these that has one (int4 weights: in 16 bits).
_FALLBACK = {
    "bf16": ("fp16", "tf32", "fp32"),
    "fp16": ("bf16", "tf32", "fp32"),
    "tf32": ("bf16", "fp32", "fp16"),
    "fp8": ("bf16", "fp16", "fp32"),
    "fp4": ("fp8", "bf16", "fp16", "fp32"),
    "int8": ("bf16", "fp16", "fp32"),
    "int4": ("fp16", "bf16", "fp32"),
    "nf4": ("bf16", "fp16", "fp32"),
    "fp32": ("tf32", "fp16", "bf16"),
    "fp64": ("fp64_tensor",),
    "fp64_tensor": ("fp64",),
}


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    vendor: str
    kind: str  # gpu, tpu, neuron, gaudi, npu, cpu, edge, fpga
    architecture: str
    memory_bytes: float
    bandwidth: float
    rates: Mapping[str, float] = field(hash=False)
    power_w: float
    link: float  # to the other chips of its domain
    domain: int  # chips that such links join; 1: none
    fabric: float  # between machines, per chip
    pcie: float
    stated: bool = True  # False: some rate or bandwidth is a rule of thumb
    power_stated: bool = True
    unstated: tuple[str, ...] = ()  # what nobody states and nothing tells: memory, bandwidth, rates
    known_as: tuple[str, ...] = field(default=())

    def rate(self, precision: str) -> float:
        """FLOP/s of the unit that does `precision`, or of the next best one where there is none."""
        if precision in self.rates:
            return self.rates[precision]
        for name in _FALLBACK.get(precision, ()):
            if name in self.rates:
                return self.rates[name]
        return max(self.rates.values(), default=1e11)

    def has(self, precision: str) -> bool:
        return precision in self.rates or (precision in ("int4", "nf4") and not self.integers_only)

    @property
    def integers_only(self) -> bool:
        """It multiplies 8-bit integers and nothing else: a network is quantised for it, or does not run."""
        return set(self.rates) == {"int8"}

    def runs(self, precision: str) -> bool:
        """In units of its own, or in FP32, which all have that have more than integers."""
        return self.has(precision) or (precision == "fp32" and not self.integers_only)

    @property
    def trains(self) -> bool:
        return not self.name.startswith(SERVES_ONLY)

    @property
    def watts_per_tflop(self) -> float | None:
        """Board power over the 16-bit peak. GPUs with little of it slow their clocks under full load."""
        return self.power_w / (self.rate("bf16") / 1e12) if self.kind == "gpu" and self.power_stated else None


def scaled(part: Part, name: str, share: float, memory_bytes: float) -> Part:
    """So much of a part, with memory of its own. Slices of one chip do not reach each other by its links."""
    rates = {precision: rate * share for precision, rate in part.rates.items()}
    portion = replace(
        part,
        name=name,
        memory_bytes=memory_bytes,
        bandwidth=part.bandwidth * share,
        rates=rates,
        power_w=part.power_w * share,
        known_as=(),
    )
    if share >= 1 or part.kind == "cpu":
        return portion
    return replace(portion, domain=1, pcie=part.pcie * share, link=part.pcie * share)


def _usual_power(rates: Mapping[str, float]) -> float:
    """Where nobody states it (TPUs, Neuron): 0.7 W for each TFLOP/s of 16 bits, as H100, MI325X and Gaudi 3 have."""
    return max(0.7 * max(rates.get("bf16", 0.0), rates.get("fp16", 0.0)) / 1e12, 100.0)


def _number(row: Mapping[str, str], name: str, scale: float = 1.0) -> float | None:
    return float(row[name]) * scale if row.get(name) else None


def _missing_rates(kind: str, vendor: str, year: int | None, rates: dict[str, float]) -> dict[str, float]:
    """16-bit rates of parts whose sheets state FP32 only: matrix units of NVIDIA's small cards give twice FP32."""
    if "fp16" in rates or "bf16" in rates or "fp32" not in rates or kind not in ("gpu", "edge"):
        return rates
    half = 2.0 * rates["fp32"] if vendor == "NVIDIA" and (year or 0) >= 2018 else rates["fp32"]
    completed = {**rates, "fp16": half}
    if vendor == "NVIDIA" and (year or 0) >= 2020:
        completed["bf16"] = half
    return completed


@cache
def _added() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in rows("parts.csv")}


@cache
def _processors() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in rows("../tables/cpus.csv")}


def _processor_rates(chip: Chip) -> tuple[dict[str, float], float]:
    """A server processor's rates are in a table of their own; a rule of thumb for one that is not there."""
    row = _processors().get(chip.name)
    if row is None:
        return {"fp32": 4e12}, 250.0
    rates = {name: _number(row, f"{name}_tflops", 1e12) for name in ("fp32", "bf16")}
    rates["int8"] = _number(row, "int8_tops", 1e12)
    return {name: rate for name, rate in rates.items() if rate}, _number(row, "power_w") or 300.0


def _unstated(chip: Chip, rates: Mapping[str, float], bandwidth: float | None) -> tuple[str, ...]:
    """A processor's memory is its machine's, so none is missing there."""
    stated = {
        "memory": chip.memory_bytes is not None or chip.kind is ChipKind.CPU,
        "memory bandwidth": bandwidth is not None,
        "arithmetic rates": any(name in rates for name in ("fp32", "tf32", "fp16", "bf16", "int8")),
    }
    return tuple(name for name, known in stated.items() if not known)


def _joined(chip: Chip) -> Part:
    row = _added().get(chip.name, {})
    rates = {name.value: rate for name, rate in chip.rates.items()}
    power = chip.power_w
    if chip.kind is ChipKind.CPU:
        cpu_rates, processor_power = _processor_rates(chip)
        rates |= cpu_rates
        power = power or processor_power
    for name in _RATES:
        stated = _number(row, f"{name}_{'tops' if name == 'int8' else 'tflops'}", 1e12)
        if stated:
            rates[name] = stated
    bandwidth = chip.memory_bytes_per_s or _number(row, "memory_gb_per_s", GB)
    complete = _missing_rates(chip.kind.value, chip.vendor, chip.year, rates)
    pcie = PCIE_BYTES_PER_S.get(chip.pcie_gen or 4, 24e9)
    link = _number(row, "link_gb_per_s", GB) or (chip.link_bytes_per_s or 0.0) / 2 or pcie
    return Part(
        name=chip.name,
        vendor=chip.vendor,
        kind=chip.kind.value,
        architecture=chip.architecture,
        memory_bytes=chip.memory_bytes or 64 * GIB,
        bandwidth=bandwidth or 100e9,
        rates=complete,
        power_w=power or _usual_power(complete),
        power_stated=power is not None,
        link=link,
        domain=int(row.get("domain") or 8),
        fabric=_number(row, "fabric_gb_per_s", GB) or 6.25e9,
        pcie=pcie,
        stated=bandwidth is not None and complete == rates,
        unstated=_unstated(chip, complete, bandwidth),
        known_as=tuple(name for name in row.get("known_as", "").split("|") if name),
    )


def _only_measured(row: Mapping[str, str]) -> Part:
    names = {name: f"{name}_{'tops' if name == 'int8' else 'tflops'}" for name in _RATES}
    rates = {name: _number(row, cell, 1e12) for name, cell in names.items() if row.get(cell)}
    return Part(
        name=row["name"],
        vendor=row["vendor"],
        kind=row["kind"],
        architecture=row["architecture"],
        memory_bytes=float(row["memory_gb"]) * GIB,
        bandwidth=float(row["memory_gb_per_s"]) * GB,
        rates={name: rate for name, rate in rates.items() if rate},
        power_w=float(row["power_w"]),
        link=float(row["link_gb_per_s"]) * GB,
        domain=int(row["domain"]),
        fabric=float(row["fabric_gb_per_s"]) * GB,
        pcie=24e9,
        stated=False,
        known_as=tuple(name for name in row["known_as"].split("|") if name),
    )


class Parts:
    """Parts by catalog name and by the names that published measurements give them."""

    def __init__(self, chips: Iterable[Chip]) -> None:
        self._parts = {chip.name: _joined(chip) for chip in chips}
        for name, row in _added().items():
            if name not in self._parts and row["vendor"]:
                self._parts[name] = _only_measured(row)
        self._names = {known: part.name for part in self._parts.values() for known in part.known_as}

    def joined(self, extra: Iterable[Part]) -> Parts:
        """These and `extra`, such as slices of them."""
        union = copy(self)
        union._parts = {**self._parts, **{part.name: part for part in extra}}
        return union

    def find(self, name: str) -> Part | None:
        return self._parts.get(name) or self._parts.get(self._names.get(name, ""))

    def __getitem__(self, name: str) -> Part:
        return self._parts[name]

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts.values())

    @property
    def by_name(self) -> Mapping[str, Part]:
        return self._parts
