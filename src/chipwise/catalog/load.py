"""Reads the packaged data into a Catalog, and joins what the user and the feeds know to it.

The one place of the pure core that touches files: the package's own `data/` directory. Values are converted once,
here: gigabytes to bytes, gigabits/s to bytes/s, TFLOPS to FLOP/s.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import Chip, ChipKind, Precision, Silicon, usable_memory
from chipwise.catalog.chip import bare as bare_chip
from chipwise.catalog.fact import Fact
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Offers
from chipwise.catalog.offer_files import append, read_offers
from chipwise.catalog.region import Region, located
from chipwise.catalog.tables import CpuRates, EdgeDevice, check_header, read_rows
from chipwise.errors import InvalidFile, Problem

DATA = Path(__file__).resolve().parent.parent / "data"
_GIB, _GBIT = 2.0**30, 1e9 / 8
_RATE_COLUMNS = tuple((p, f"{p}_{'tops' if p is Precision.INT8 else 'tflops'}") for p in Precision)
MACHINE_COLUMNS = (
    "provider",
    "name",
    "chip",
    "chips",
    "chip_memory_gb",
    "vcpus",
    "memory_gib",
    "disk_gb",
    "network_gbit_per_s",
    "network_baseline_gbit_per_s",
    "fabric",
    "link",
    "pcie_gen",
    "cpu_arch",
    "storage_gbit_per_s",
    "year",
    "retired",
    "sources",
    "as_of",
    "inferred",
    "notes",
)


def load(
    chips: Sequence[Chip] = (),
    machines: Sequence[Machine] = (),
    regions: Sequence[Region] = (),
    offers: Sequence[Offer] = (),
    own_offers: Sequence[Offer] = (),
    data: Path = DATA,
    prices: bool = True,
) -> Catalog:
    """The packaged catalog with further rows joined under the same keys.

    Of `offers`, which feeds brought, the newer price counts, and what we know of a price that is no real offer stays with
    it; `own_offers` are the user's word and always count. Without `prices` the offers are left out: enough to resolve
    names, in a fraction of the time. What is packaged never changes while we run, so it is read once.
    """
    if data == DATA and not any((chips, machines, regions, offers, own_offers)):
        return _packaged(prices)
    return _join(_packaged_rows() if data == DATA else _read(data), chips, machines, regions, offers, own_offers, data, prices)


def chips_alone(own: Sequence[Chip] = ()) -> Catalog:
    """Without machines, regions and prices: enough to know a chip by what its driver calls it, in a twentieth of the time."""
    chips = {chip.name: chip for chip in (*read_chips(), *own)}
    return Catalog(chips=chips, machines=(), regions=(), offers=Offers((), ()), data=DATA)


class _Rows(NamedTuple):
    chips: tuple[Chip, ...]
    machines: tuple[Machine, ...]
    regions: tuple[Region, ...]


def _read(data: Path) -> _Rows:
    return _Rows(tuple(read_chips(data)), tuple(read_machines(data)), tuple(map(located, read_regions(data))))


@cache
def _packaged_rows() -> _Rows:
    return _read(DATA)


@cache
def _packaged(prices: bool) -> Catalog:
    return _join(_packaged_rows(), (), (), (), (), (), DATA, prices)


def _join(
    packaged: _Rows,
    chips: Sequence[Chip],
    machines: Sequence[Machine],
    regions: Sequence[Region],
    offers: Sequence[Offer],
    own_offers: Sequence[Offer],
    data: Path,
    prices: bool,
) -> Catalog:
    all_chips = {chip.name: chip for chip in (*packaged.chips, *chips)}
    machine_rows = {machine.key: machine for machine in packaged.machines}
    for machine in machines:
        known = machine_rows.get(machine.key)
        machine_rows[machine.key] = machine if known is None else richer(known, machine)
    region_rows = {region.key: region for region in (*packaged.regions, *map(located, regions))}
    for offer in (*offers, *own_offers):
        region_key = (offer.provider, offer.region)
        if region_key not in region_rows:
            note = "known from its prices only: place, grid and PUE unknown"
            region_rows[region_key] = located(Region(*region_key, fact=Fact((offer.source,), offer.as_of, (), note)))
    columns = Offers(tuple(machine_rows), tuple(region_rows))
    if prices:
        own = {offer.key: offer for offer in own_offers}
        feed_offers = {offer.key: offer for offer in offers if offer.key not in own}
        read_offers(data, columns, feed_offers, own)
        append(columns, (*feed_offers.values(), *own.values()))
    return Catalog(
        chips=all_chips, machines=tuple(machine_rows.values()), regions=tuple(region_rows.values()), offers=columns, data=data
    )


_OF_THE_CHIP = ("chip_memory_bytes", "link", "pcie_gen")


def richer(known: Machine, new: Machine) -> Machine:
    """The new row, with what only the known one states: a price feed knows fewer facts than a size page.

    What belongs to the chip is taken over only with the same chip, and what was inferred stays marked.
    """
    other_chip = new.chip is not None and new.chip != known.chip
    gaps = {
        name: getattr(known, name)
        for name in Machine.__dataclass_fields__
        if name not in ("fact", "retired") and getattr(new, name) is None and getattr(known, name) is not None
    }
    gaps = {name: value for name, value in gaps.items() if not (other_chip and name in _OF_THE_CHIP)}
    inferred = tuple(dict.fromkeys((*new.fact.inferred, *(name for name in known.fact.inferred if name in gaps))))
    sources = tuple(dict.fromkeys((*new.fact.sources, *known.fact.sources))) if gaps else new.fact.sources
    fact = replace(new.fact, sources=sources, inferred=inferred)
    return replace(new, **gaps, fact=fact, retired=known.retired or new.retired)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, strict=True)
        for row in reader:
            if None in row or None in row.values():
                raise InvalidFile(str(path), [Problem("", "this row has more or fewer cells than columns", reader.line_num)])
            yield row


def _float(cell: str, scale: float = 1.0) -> float | None:
    return float(cell) * scale if cell else None


def _int(cell: str) -> int | None:
    return int(float(cell)) if cell else None


def _fact(row: Mapping[str, str]) -> Fact:
    return Fact(tuple(row["sources"].split("|")), row["as_of"], tuple(row["inferred"].split()), row["notes"])


def read_chips(data: Path = DATA) -> Iterator[Chip]:
    """Chips, then the processors and edge devices that stand only in their own tables."""
    processors = {cpu.name: cpu for cpu in read_rows(data / "tables" / "cpus.csv", CpuRates)}
    families: set[str] = set()
    for row in _rows(data / "chips.csv"):
        chip = _chip(row)
        families.add(chip.family)
        processor = processors.pop(chip.name, None)
        yield chip if processor is None else _with_rates(chip, processor)
    for processor in processors.values():
        yield _processor(processor)
    for device in read_rows(data / "tables" / "edge_devices.csv", EdgeDevice):
        if device.chip is None:
            chip = _edge(device)
            yield replace(chip, common=chip.family not in families)


def _chip(row: Mapping[str, str]) -> Chip:
    kind = ChipKind(row["kind"])
    memory = _float(row["memory_gb"])
    rates = {p: float(row[column]) * 1e12 for p, column in _RATE_COLUMNS if row[column]}
    silicon = Silicon(
        cores=_int(row["cores"]),
        tensor_cores=_int(row["tensor_cores"]),
        rt_cores=_int(row["rt_cores"]),
        units=_int(row["units"]),
        base_mhz=_float(row["base_mhz"]),
        boost_mhz=_float(row["boost_mhz"]),
        memory_bus_bits=_int(row["memory_bus_bits"]),
        l2_bytes=_float(row["l2_mb"], 2.0**20),
        process_nm=_float(row["process_nm"]),
        die_mm2=_float(row["die_mm2"]),
        transistors=_float(row["transistors_m"], 1e6),
        encoders=_int(row["encoders"]),
        decoders=_int(row["decoders"]),
    )
    return Chip(
        name=row["name"],
        vendor=row["vendor"],
        kind=kind,
        family=row["family"],
        architecture=row["architecture"],
        aliases=tuple(alias for alias in row["aliases"].split("|") if alias),
        common=row["common"] == "yes",
        compute_capability=_float(row["compute_capability"]),
        target=row["target"] or None,
        year=_int(row["year"]),
        memory_gb=memory,
        memory_bytes=_float(row["reported_gib"], _GIB) or usable_memory(memory, row["inline_ecc"] == "yes"),
        memory_type=row["memory_type"] or None,
        memory_bytes_per_s=_float(row["memory_gb_per_s"], 1e9),
        rates=rates,
        interconnect=row["interconnect"] or None,
        link_bytes_per_s=_float(row["link_gb_per_s"], 1e9),
        pcie_gen=_int(row["pcie_gen"]),
        power_w=_float(row["power_w"]),
        mig_slices=_int(row["mig_slices"]),
        silicon=silicon,
        launch_price_usd=_float(row["launch_price_usd"]),
        launch_price_basis=row["launch_price_basis"] or None,
        fact=_fact(row),
    )


def _cpu_rates(cpu: CpuRates) -> dict[Precision, float]:
    stated = ((Precision.FP32, cpu.fp32_tflops), (Precision.BF16, cpu.bf16_tflops), (Precision.INT8, cpu.int8_tops))
    return {precision: value * 1e12 for precision, value in stated if value is not None}


def _with_rates(chip: Chip, cpu: CpuRates) -> Chip:
    rates = _cpu_rates(cpu)
    note = "; ".join(filter(None, (chip.fact.notes, "rates per socket are derived upper bounds")))
    fact = replace(
        chip.fact,
        sources=tuple(dict.fromkeys((*chip.fact.sources, *cpu.fact.sources))),
        inferred=tuple(dict.fromkeys((*chip.fact.inferred, *map(str, rates), *_of_chip(cpu.fact.inferred)))),
        notes=note,
    )
    silicon = replace(chip.silicon, cores=cpu.cores, base_mhz=cpu.sustained_ghz and cpu.sustained_ghz * 1e3)
    return replace(chip, rates=rates, fact=fact, silicon=silicon, power_w=chip.power_w or cpu.power_w)


def _of_chip(inferred: Iterable[str]) -> tuple[str, ...]:
    """Columns of the tables beside in the words of a chip; what a chip does not have is left out."""
    words = {"fp32_tflops": "fp32", "bf16_tflops": "bf16", "int8_tops": "int8", "int8_tops_dense": "int8"}
    words |= {"memory_gb_per_s": "memory_bytes_per_s", "power_w": "power_w", "power_max_w": "power_w"}
    return tuple(dict.fromkeys(words[name] for name in inferred if name in words))


def _processor(cpu: CpuRates) -> Chip:
    vendor = "Intel" if cpu.name.startswith("Xeon") else "AMD" if cpu.name.startswith("EPYC") else "AWS"
    architecture = cpu.name.removeprefix("Xeon-").removeprefix("EPYC-").replace("-", " ")
    bandwidth = cpu.memory_gb_per_s and cpu.memory_gb_per_s * 1e9
    return replace(
        _with_rates(bare_chip(cpu.name, vendor, ChipKind.CPU, architecture, replace(cpu.fact, inferred=())), cpu),
        memory_bytes_per_s=bandwidth,
    )


def _edge(device: EdgeDevice) -> Chip:
    vendor = device.device.partition(" ")[0]
    name = device.device.partition(" (")[0].replace("/", "-").replace(" ", "-")
    vendor = {"Jetson": "NVIDIA", "Raspberry": "Raspberry Pi"}.get(vendor, vendor.partition("-")[0])
    stated = ((Precision.FP32, device.fp32_tflops), (Precision.INT8, device.int8_tops_dense))
    inferred = _of_chip(device.fact.inferred)
    return replace(
        bare_chip(name, vendor, ChipKind.EDGE, device.accelerator, replace(device.fact, inferred=inferred)),
        family=re.sub(r"-\d+GB$", "", name),  # the sizes of one module are one family
        aliases=(device.device,),
        memory_gb=device.memory_gb,
        memory_bytes=usable_memory(device.memory_gb),
        memory_type=device.memory_type or None,
        memory_bytes_per_s=device.memory_gb_per_s and device.memory_gb_per_s * 1e9,
        rates={precision: value * 1e12 for precision, value in stated if value is not None},
        power_w=device.power_max_w,
        silicon=Silicon(cores=device.cores, tensor_cores=device.tensor_cores),
        launch_price_usd=device.usd_low,
        launch_price_basis=device.price_basis or None,
    )


def read_machines(data: Path = DATA) -> Iterator[Machine]:
    path = data / "machines.csv"
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        check_header(path, next(reader, []), MACHINE_COLUMNS)
        for (
            provider,
            name,
            chip,
            chips,
            chip_memory,
            vcpus,
            memory,
            disk,
            network,
            baseline,
            fabric,
            link,
            pcie,
            arch,
            storage,
            year,
            retired,
            sources,
            as_of,
            inferred,
            notes,
        ) in reader:
            yield Machine(
                provider=provider,
                name=name,
                chip=chip or None,
                chips=_float(chips),
                chip_memory_bytes=_float(chip_memory, _GIB),
                vcpus=_float(vcpus),
                memory_bytes=_float(memory, _GIB),
                disk_bytes=_float(disk, 1e9),
                network_bytes_per_s=_float(network, _GBIT),
                network_baseline_bytes_per_s=_float(baseline, _GBIT),
                fabric=fabric or None,
                fabric_bytes_per_s=_fabric_speed(fabric),
                link=link or None,
                pcie_gen=_int(pcie),
                cpu_arch=arch or None,
                storage_bytes_per_s=_float(storage, _GBIT),
                year=_int(year),
                retired=retired == "yes",
                fact=Fact(tuple(sources.split("|")), as_of, tuple(inferred.split()), notes),
            )


def _fabric_speed(fabric: str) -> float | None:
    """ "InfiniBand NDR 8x400 Gb/s" -> 4e11 bytes/s."""
    match = re.search(r"(?:(\d+)x)?(\d+) Gb(?:ps|/s)", fabric)
    return int(match[1] or 1) * int(match[2]) * _GBIT if match else None


def read_regions(data: Path = DATA) -> Iterator[Region]:
    for row in _rows(data / "regions.csv"):
        yield Region(
            provider=row["provider"],
            name=row["name"],
            location=row["location"] or None,
            country=row["country"] or None,
            latitude=_float(row["latitude"]),
            longitude=_float(row["longitude"]),
            grid_g_per_kwh=_float(row["grid_g_per_kwh"]),
            grid_year=_int(row["grid_year"]),
            marginal_g_per_kwh=_float(row["marginal_g_per_kwh"]),
            second_opinion_g_per_kwh=_float(row["ccf_g_per_kwh"]),
            pue=_float(row["pue"]),
            pue_basis=row["pue_basis"] or None,
            fact=_fact(row),
            grid_of_country=row["grid_scope"] == "country",
        )
