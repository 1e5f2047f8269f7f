"""One suite of rules that every row must pass: packaged rows in the tests, a user's and a feed's rows when they join.

A complaint is a value: which row, which rule, what was found. Bounds are what is physically or commercially plausible
in 2026, wide enough for the next generation and narrow enough to catch a unit taken for another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, TypeVar

from chipwise.catalog import ability, compatibility, names, sharing
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import Chip, ChipKind, Precision, Silicon
from chipwise.catalog.fact import Fact
from chipwise.catalog.feed import Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import PURCHASES, VERDICTS, Offer, Purchase, Verdict
from chipwise.catalog.region import Region

FAR = 3.0  # times off the median of the same machine over its regions
_DATE = re.compile(r"(19|20)\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")
# (more bits, fewer bits): halving the bits never makes a chip slower.
_ORDER = (
    (Precision.FP64, Precision.FP32),
    (Precision.FP64, Precision.FP64_TENSOR),
    (Precision.FP32, Precision.TF32),
    (Precision.TF32, Precision.FP16),
    (Precision.TF32, Precision.BF16),
    (Precision.FP16, Precision.FP8),
    (Precision.BF16, Precision.FP8),
    (Precision.FP8, Precision.FP4),
    (Precision.FP16, Precision.INT8),
)
_FEW_INT8_UNITS = {"Blackwell Ultra"}  # which gave them up for more units of FP4: int8 is slower there than fp16


_CHIP_FIELDS = {*Chip.__dataclass_fields__, *Silicon.__dataclass_fields__, *map(str, Precision)}


CHIP_KNOWN = "its chip is in the catalog"
CHIP_EXPLAINED = "a machine without a known chip says why"


@dataclass(frozen=True, slots=True)
class Complaint:
    row: str
    rule: str
    value: str

    def __str__(self) -> str:
        return f"{self.row}: {self.rule}: {self.value}"


def check(catalog: Catalog) -> list[Complaint]:
    """All complaints about the whole catalog; none is what we ship."""
    return [
        *(c for chip in catalog.chips.values() for c in check_chip(chip)),
        *(c for machine in catalog.machines for c in check_machine(machine, catalog.chips)),
        *(c for region in catalog.regions for c in check_region(region)),
        *(c for offer in catalog.offers for c in check_offer(offer)),
        *check_price_spread(catalog),
        *check_joins(catalog),
    ]


def sound(
    snapshot: Snapshot, chips: Mapping[str, Chip], known: Collection[tuple[str, str]]
) -> tuple[Snapshot, tuple[Complaint, ...]]:
    """The snapshot without the rows that the suite refuses, and what it said of them. `known` are machines kept elsewhere."""
    complaints: list[Complaint] = []
    # The rule about notes is for our own rows: a feed need not explain a chip it does not name.
    machines = _passing(snapshot.machines, complaints, lambda m: check_machine(m, chips), (CHIP_EXPLAINED,))
    regions = _passing(snapshot.regions, complaints, check_region, ())
    machine_keys = {machine.key for machine in machines} | set(known)

    def of_machine(offer: Offer) -> Iterator[Complaint]:
        yield from check_offer(offer)
        if (offer.provider, offer.machine) not in machine_keys:
            yield Complaint(f"offer {offer.provider} {offer.machine}"[:100], "its machine is known", ascii(offer.machine)[:60])

    offers = _passing(snapshot.offers, complaints, of_machine, ())
    return replace(snapshot, machines=machines, regions=regions, offers=offers), tuple(complaints)


R = TypeVar("R")


def _passing(
    rows: Iterable[R], complaints: list[Complaint], check_row: Callable[[R], Iterable[Complaint]], waived: tuple[str, ...]
) -> tuple[R, ...]:
    good = []
    for row in rows:
        row_complaints = [complaint for complaint in check_row(row) if complaint.rule not in waived]
        complaints.extend(row_complaints)
        if not row_complaints:
            good.append(row)
    return tuple(good)


def _check_range(row: str, what: str, value: float | None, low: float, high: float) -> Iterator[Complaint]:
    if value is not None and not low <= value <= high:
        yield Complaint(row, f"{what} between {low:g} and {high:g}", str(value)[:20])


def _check_texts(row: str, *texts: str) -> Iterator[Complaint]:
    """Names and notes that can be printed: no control characters, no halves of characters."""
    for text in texts:
        if not text or not text.isprintable():
            yield Complaint(row, "its texts can be printed", ascii(text)[:60])


def check_fact(row: str, fact: Fact, fields: Collection[str] = ()) -> Iterator[Complaint]:
    for name in fact.inferred:
        if fields and name not in fields:
            yield Complaint(row, "what is inferred is a field", name)
    if not _DATE.fullmatch(fact.as_of):
        yield Complaint(row, "has a date", repr(fact.as_of))
    if not any(fact.sources):
        yield Complaint(row, "has a source", "none")


def check_chip(chip: Chip) -> Iterator[Complaint]:
    row = f"chip {chip.name}"
    yield from check_fact(row, chip.fact, _CHIP_FIELDS)
    yield from _check_range(row, "memory in GB", chip.memory_gb, 0.001, 1024)
    yield from _check_range(row, "bandwidth in bytes/s", chip.memory_bytes_per_s, 1e9, 5e13)
    yield from _check_range(row, "link in bytes/s", chip.link_bytes_per_s, 1e9, 1e13)
    yield from _check_range(row, "power in W", chip.power_w, 0.5, 3000)
    yield from _check_range(row, "year", chip.year, 2005, 2035)
    yield from _check_range(row, "compute capability", chip.compute_capability, 2.0, 20.0)
    yield from _check_range(row, "MIG slices", chip.mig_slices, 0, 16)
    for precision, rate in chip.rates.items():
        yield from _check_range(row, f"{precision} in FLOP/s", rate, 1e9, 1e17)
    for slower, faster in _ORDER:
        # Vector rates of chips without matrix units and derived CPU bounds follow their own order.
        if slower in chip.rates and faster in chip.rates and chip.kind in (ChipKind.GPU, ChipKind.NEURON, ChipKind.TPU):
            exempt = (
                chip.architecture in _FEW_INT8_UNITS
                if faster is Precision.INT8
                else chip.compute_capability is not None and chip.compute_capability < 7.0
            )
            if chip.rates[slower] > chip.rates[faster] * 1.02 and not exempt:
                yield Complaint(row, f"{slower} not above {faster}", f"{chip.rates[slower]:.4g} > {chip.rates[faster]:.4g}")
    clocks = chip.silicon
    if clocks.base_mhz and clocks.boost_mhz and clocks.base_mhz > clocks.boost_mhz:
        yield Complaint(row, "base clock not above boost", f"{clocks.base_mhz} > {clocks.boost_mhz}")


def check_machine(machine: Machine, chips: Mapping[str, Chip]) -> Iterator[Complaint]:
    row = f"machine {machine.provider} {machine.name}"
    yield from _check_texts(row, machine.provider, machine.name)
    yield from check_fact(row, machine.fact, Machine.__dataclass_fields__)
    if machine.chip is not None and machine.chip not in chips:
        yield Complaint(row, CHIP_KNOWN, machine.chip)
    if machine.chip is None and not machine.fact.notes:
        yield Complaint(row, CHIP_EXPLAINED, "no note")
    yield from _check_range(row, "chips", machine.chips, 0.01, 20000)
    yield from _check_range(row, "vCPU", machine.vcpus, 0.25, 100000)
    yield from _check_range(row, "memory in bytes", machine.memory_bytes, 2.0**28, 2.0**47)
    yield from _check_range(row, "disk in bytes", machine.disk_bytes, 1e8, 1e16)
    yield from _check_range(row, "network in bytes/s", machine.network_bytes_per_s, 1e6, 1e13)
    chip = chips.get(machine.chip or "")
    if chip is not None:
        form = re.search(r"(pcie|nvl)(?![a-z])", machine.name, re.IGNORECASE)
        siblings = {c.name for c in chips.values() if c.family == chip.family}
        if form and any(form[1].lower() in name.lower() for name in siblings) and form[1].lower() not in chip.name.lower():
            yield Complaint(row, "a form factor in the name agrees with the chip", f"{chip.name}")
    if chip is not None and chip.memory_gb and machine.chip_memory_bytes:
        yield from _check_range(
            row, "memory of a chip, of what the chip has", machine.chip_memory_bytes / 2**30 / chip.memory_gb, 0.04, 1.08
        )


def check_region(region: Region) -> Iterator[Complaint]:
    row = f"region {region.provider} {region.name}"
    yield from _check_texts(row, region.provider, region.name)
    yield from check_fact(row, region.fact, Region.__dataclass_fields__)
    yield from _check_range(row, "latitude", region.latitude, -60, 75)
    yield from _check_range(row, "longitude", region.longitude, -180, 180)
    yield from _check_range(row, "grid carbon in g/kWh", region.grid_g_per_kwh, 0, 1200)
    yield from _check_range(row, "PUE", region.pue, 1.0, 2.5)
    if region.country is not None and not re.fullmatch("[A-Z]{3}", region.country):
        yield Complaint(row, "country is ISO alpha-3", region.country)


def check_offer(offer: Offer) -> Iterator[Complaint]:
    row = f"offer {offer.provider} {offer.region} {offer.machine} {offer.purchase}"
    yield from _check_texts(row, offer.source or "-", offer.why or "-", offer.notes or "-")
    yield from _check_range(row, "highest price in USD/h", offer.usd_per_hour_max, 1e-4, 5000)
    yield from _check_range(row, "price in USD/h", offer.usd_per_hour, 1e-4, 5000)
    if offer.usd_per_hour_max is not None and offer.usd_per_hour_max < offer.usd_per_hour:
        yield Complaint(row, "highest zone price not below the lowest", f"{offer.usd_per_hour_max} < {offer.usd_per_hour}")
    if not _DATE.fullmatch(offer.as_of) or len(offer.as_of) != 10:
        yield Complaint(row, "has a full date", repr(offer.as_of))
    if offer.verdict and not offer.why:
        yield Complaint(row, "a verdict has a reason", offer.verdict)


def check_price_spread(catalog: Catalog) -> Iterator[Complaint]:
    """No on-demand price far off its machine's median without a note; spot outliers and no-savers marked."""
    offers = catalog.offers
    for i in far_off(catalog, Purchase.ON_DEMAND):
        if offers.verdict[i] == 0 and not offers.texts[offers.text[i]][2]:
            yield Complaint(_name(offers[i]), f"on-demand within {FAR:g}x of its median, or noted", f"{offers.price[i]:g}")
    for i in far_off(catalog, Purchase.SPOT):
        if offers.verdict[i] == 0:
            yield Complaint(_name(offers[i]), f"spot within {FAR:g}x of its median, or marked", f"{offers.price[i]:g}")
    on_demand = _prices(catalog, Purchase.ON_DEMAND)
    for key, (i, price) in _prices(catalog, Purchase.SPOT).items():
        if key in on_demand and price >= on_demand[key][1] and VERDICTS[offers.verdict[i]] is Verdict.FINE:
            yield Complaint(_name(offers[i]), "spot below on-demand, or marked", f"{price:g} >= {on_demand[key][1]:g}")


def far_off(catalog: Catalog, purchase: Purchase) -> list[int]:
    """Positions of offers more than FAR times off the median of their machine over its regions."""
    by_machine: dict[int, list[tuple[int, float]]] = {}
    for (machine, _), (i, price) in _prices(catalog, purchase).items():
        by_machine.setdefault(machine, []).append((i, price))
    positions = []
    for rows in by_machine.values():
        middle = median(price for _, price in rows)
        positions += [i for i, price in rows if not middle / FAR <= price <= middle * FAR]
    return positions


def _prices(catalog: Catalog, purchase: Purchase) -> dict[tuple[int, int], tuple[int, float]]:
    offers, code = catalog.offers, PURCHASES.index(purchase)
    return {(offers.machine[i], offers.region[i]): (i, offers.price[i]) for i, p in enumerate(offers.purchase) if p == code}


def _name(offer: Offer) -> str:
    return f"offer {offer.provider} {offer.region} {offer.machine} {offer.purchase}"


def _hand_written(catalog: Catalog) -> Iterator[tuple[str, Sequence[Any]]]:
    """The tables that are rules and names of our own."""
    data = catalog.data
    yield "ability", ability.rules(data)
    yield "compatibility", compatibility.rules(data)
    yield "sharing", sharing.modes(data)
    yield "mig profile", sharing.mig_profiles(data)
    yield "vgpu profile", sharing.vgpu_profiles(data)
    yield "retired", names.retired_things(data)


def check_joins(catalog: Catalog) -> Iterator[Complaint]:
    """Every reference of one row to another resolves, and every row of the other tables has a date and a source."""
    from chipwise.catalog.tables import TABLES

    used: set[str] = set()
    facts: Iterable[tuple[str, Fact]] = (
        *((f"chip {c.name}", c.fact) for c in catalog.chips.values()),
        *((f"machine {m.provider} {m.name}", m.fact) for m in catalog.machines),
        *((f"region {r.provider} {r.name}", r.fact) for r in catalog.regions),
        *(
            (f"{table} row {i + 2}", row.fact)
            for table in TABLES
            for i, row in enumerate(catalog.rows(table))
            if hasattr(row, "fact")
        ),
    )
    for row, fact in facts:
        used.update(fact.sources)
        if row.split()[0] in TABLES:
            yield from check_fact(row, fact, {*TABLES[row.split()[0]]._fields, "as_of"})
    used.update(source for _, source, _, _ in catalog.offers.texts if source)
    # Ids of sources.csv hold no blank; what a feed or a user's file calls itself does.
    for source in sorted(source for source in used - set(catalog.sources) if " " not in source):
        yield Complaint(f"source {source}", "is listed in sources.csv", "missing")
    for listed in catalog.sources.values():
        if not _DATE.fullmatch(listed.date):
            yield Complaint(f"source {listed.id}", "has a date", repr(listed.date))
    for name, table in _hand_written(catalog):
        for row in table:
            ids = set(str(getattr(row, "sources", None) or getattr(row, "source", "")).split("|"))
            if ids - set(catalog.sources):
                yield Complaint(f"{name} {row[0]}", "its sources are listed in sources.csv", ", ".join(sorted(ids)))
    for row in (*catalog.rows("boards"), *catalog.rows("edge_devices")):
        if row.chip is not None and row.chip not in catalog.chips:
            yield Complaint(f"{type(row).__name__} {row[0]}", CHIP_KNOWN, row.chip)
    for row in (*catalog.rows("cpus"), *catalog.rows("fpgas")):
        if row.name not in catalog.chips:
            yield Complaint(f"{type(row).__name__} {row.name}", "is a chip of the catalog", row.name)
