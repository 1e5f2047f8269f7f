"""Joins the user's own catalog files to the rest: on-premises servers, private regions, negotiated prices and discounts.

    # ~/.config/chipwise/catalog/berlin.yaml
    machines:
      - {name: dgx-h100, chip: h100, chips: 8, region: berlin, memory: 2TiB, purchase_price: $280k, lifetime: 4y,
         power: 10.2 kW, usd_per_kwh: 0.19}
    regions:
      - {name: berlin, country: DEU, grid_g_per_kwh: 344, pue: 1.4}
    discounts:
      - {provider: aws, machine: p5, off: 22%, until: 2027-03-31}

Without `price_per_hour` a machine's cost is derived: purchase / lifetime + hosting + power x PUE x price of electricity. That
is what counts, unless the machine is `paid: true`: then it is electricity alone; plans show both. Rows are dated by their
file. A bad file is refused with all of its problems, unknown names among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chipwise.catalog import discount
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import Chip, ChipKind, usable_memory
from chipwise.catalog.chip import bare as bare_chip
from chipwise.catalog.fact import Fact
from chipwise.catalog.feed import Snapshot
from chipwise.catalog.integrity import (
    CHIP_EXPLAINED,
    CHIP_KNOWN,
    Complaint,
    check_chip,
    check_machine,
    check_offer,
    check_region,
)
from chipwise.catalog.load import load
from chipwise.catalog.machine import Machine
from chipwise.catalog.names import Names, names_of
from chipwise.catalog.offer import Offer, Purchase
from chipwise.catalog.own_rows import OwnChip, OwnDiscount, OwnFile, OwnMachine, OwnRegion
from chipwise.catalog.owned import energy_cost, hourly_cost
from chipwise.catalog.region import Region
from chipwise.errors import InvalidFile, Problem
from chipwise.files.source import Document, FieldPath, FileKind, read_text, read_yaml, show_where
from chipwise.spelling import nearest

KIND = FileKind(
    "catalog", "Sections are chips, machines, regions, offers and discounts; see docs/adding/own-catalog.md.", 200_000
)


@dataclass(slots=True)
class Source:
    """One file: what it says, where each value stands, and what was found wrong with it so far."""

    path: Path
    document: Document
    rows: OwnFile
    problems: list[Problem] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"your file {self.path.name}"

    @property
    def day(self) -> str:
        return datetime.fromtimestamp(self.path.stat().st_mtime, UTC).date().isoformat()

    def wrong(self, where: FieldPath, message: str, near: tuple[str, ...] = ()) -> None:
        line = next((self.document.lines[where[:n]] for n in range(len(where), -1, -1) if where[:n] in self.document.lines), 1)
        self.problems.append(Problem(field=show_where(where), message=message, line=line, allowed=None, nearest=near))

    def complain(self, field: FieldPath, *complaints: Iterable[Complaint]) -> None:
        """What the integrity suite says of a row; that a chip is not named needs no note here."""
        for complaint in (one for several in complaints for one in several):
            if complaint.rule not in (CHIP_KNOWN, CHIP_EXPLAINED):
                self.wrong(field, f"{complaint.rule}: it is {complaint.value}")


def read(directory: Path) -> list[Source]:
    """All files of the directory; InvalidFile with every problem of the first that cannot be read as a catalog file."""
    return [_read(path) for path in sorted(directory.glob("*.y*ml"))]


def _read(path: Path) -> Source:
    document = read_yaml(read_text(path, KIND), str(path), KIND)
    if document.problems:
        raise InvalidFile(str(path), document.problems, remedy=KIND.remedy)
    filled = {key: value for key, value in document.data.items() if value is not None}  # an empty section says nothing
    source = Source(path, document, OwnFile())
    try:
        return replace(source, rows=OwnFile.model_validate(filled))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            field = tuple(step for step in detail["loc"] if not (isinstance(step, str) and step.endswith("]")))
            source.wrong(field, *_in_words(detail, field))
        raise InvalidFile(str(path), sorted(source.problems, key=lambda p: p.line or 0), remedy=KIND.remedy) from None


def _in_words(detail: Any, field: FieldPath) -> tuple[str, tuple[str, ...]]:
    """What pydantic found, as a sentence, with the nearest field where one was misspelt."""
    match detail["type"]:
        case "extra_forbidden":
            fields = list(OwnFile.model_fields)
            if len(field) > 1 and (row := OwnFile.model_fields[str(field[0])].annotation) is not None:
                fields = list(row.__args__[0].model_fields)
            return f"is not a field here; allowed: {', '.join(fields)}", nearest(str(field[-1]), fields)
        case "missing":
            return "is required", ()
        case "tuple_type" | "list_type":
            return "stands where a list of rows belongs, each starting with '- '", ()
        case "model_type" | "model_attributes_type":
            return "stands where a row of fields belongs, such as {name: ...}", ()
        case "string_type":
            return "is not a text; put it in quotes if it looks like a number", ()
        case kind if kind.startswith("date"):
            return "is not a date; write it like 2027-03-31", ()
        case "value_error":
            return str(detail["msg"]).removeprefix("Value error, "), ()
        case _:
            message = str(detail["msg"])
            return f"{str(detail['input'])[:40]!r} is not valid: {message[0].lower()}{message[1:]}", ()


def read_chips(files: Sequence[Source]) -> list[Chip]:
    """The user's own chips, which machines and inventories may name."""
    names = names_of(load(prices=False)) if any(file.rows.chips for file in files) else None
    chips = []
    for file in files:
        for i, row in enumerate(file.rows.chips):
            assert names is not None
            base = _one_chip(file, ("chips", i, "like"), row.like, names)
            if row.like is None and row.kind is None:
                file.wrong(("chips", i), "a chip needs a kind, or a chip it is like")
            chips.append(_chip(row, base, file))
            file.complain(("chips", i), check_chip(chips[-1]))
    _refuse_bad(files)
    return chips


def join(files: Sequence[Source], chips: Sequence[Chip], snapshot: Snapshot, today: date) -> Catalog:
    """The catalog with the files' rows over everything else; InvalidFile with all problems of the first bad file."""
    names = names_of(load(chips, snapshot.machines, snapshot.regions, prices=False))
    regions = [_region(file, row, i, names) for file in files for i, row in enumerate(file.rows.regions)]
    places = {region.key: region for region in (*names.catalog.regions, *regions)}
    machines: list[Machine] = []
    offers: list[Offer] = []
    for file in files:
        for i, row in enumerate(file.rows.machines):
            chip = _one_chip(file, ("machines", i, "chip"), row.chip, names)
            machine = _machine(row, chip, file, _provider(row.provider, names))
            machine, cost = _cost(file, row, i, machine, places.get((machine.provider, row.region)))
            file.complain(("machines", i), check_machine(machine, names.catalog.chips), *map(check_offer, cost))
            machines.append(machine)
            offers.extend(cost)
    known = {machine.key for machine in (*names.catalog.machines, *machines)}
    for file in files:
        for i, own in enumerate(file.rows.offers):
            provider = _provider(own.provider, names)
            if (provider, own.machine) not in known:
                near = nearest(own.machine, (name for of, name in known if of == provider))
                file.wrong(("offers", i, "machine"), f"no machine of {provider} is called {own.machine!r}", near)
            if (provider, own.region) not in places:
                near = nearest(own.region, (name for of, name in places if of == provider))
                file.wrong(
                    ("offers", i, "region"), f"no region of {provider} is called {own.region!r}; list it under regions", near
                )
            day = own.as_of.isoformat() if own.as_of else file.day
            price = own.price_per_hour
            offer = Offer(
                provider=provider,
                machine=own.machine,
                region=own.region,
                purchase=own.purchase,
                usd_per_hour=price,
                as_of=day,
                source=file.name,
                notes=own.note,
            )
            file.complain(("offers", i), check_offer(offer))
            offers.append(offer)
    _refuse_bad(files)
    all_regions = [*snapshot.regions, *regions]
    catalog = load(chips, [*snapshot.machines, *machines], all_regions, snapshot.offers, offers)
    names = names_of(catalog)
    discounts = [
        entry
        for file in files
        for i, row in enumerate(file.rows.discounts)
        if (entry := _discount(file, row, i, names)) is not None and (row.until is None or row.until >= today)
    ]
    _refuse_bad(files)
    return discount.apply(catalog, discounts)


def _provider(text: str, names: Names) -> str:
    """A provider by any of its names; a new name is a provider of the user's own."""
    return names.provider_or_none(text) or text


def _region(file: Source, row: OwnRegion, index: int, names: Names) -> Region:
    year = int(file.day[:4]) if row.grid_g_per_kwh is not None else None
    basis = "yours" if row.pue else None
    place = (row.location, row.country, row.latitude, row.longitude)
    fact = Fact((file.name,), file.day)
    region = Region(
        _provider(row.provider, names), row.name, *place, row.grid_g_per_kwh, year, None, None, row.pue, basis, fact
    )
    file.complain(("regions", index), check_region(region))
    return region


def _refuse_bad(files: Sequence[Source]) -> None:
    for file in files:
        if file.problems:
            raise InvalidFile(str(file.path), sorted(file.problems, key=lambda p: p.line or 0), remedy=KIND.remedy)


def _one_chip(file: Source, field: FieldPath, text: str | None, names: Names) -> Chip | None:
    if text is None:
        return None
    if names.chips_or_none(text) is None:
        file.wrong(field, f"no chip is called {text!r}", names.nearest_chips(text))
        return None
    return names.one_chip(text).chip


def _chip(row: OwnChip, base: Chip | None, file: Source) -> Chip:
    """A chip like another belongs to its family, so that a filter by the family finds it too."""
    fact = Fact((file.name,), file.day, (), row.note)
    base = base or bare_chip(row.name, row.vendor or "own", row.kind or ChipKind.GPU, row.architecture or "own", fact)
    # "80GB" is the figure on the box, of which a program gets 80 GiB; any other size is what a program gets.
    box = None if row.memory is None else row.memory / 1e9 if row.memory % 1e9 == 0 else row.memory / 2**30
    memory = None if row.memory is None else usable_memory(box) if row.memory % 1e9 == 0 else row.memory
    stated = {
        "vendor": row.vendor,
        "kind": row.kind,
        "architecture": row.architecture,
        "compute_capability": row.compute_capability,
        "memory_bytes": memory,
        "memory_gb": box,
        "power_w": row.power,
        "memory_bytes_per_s": row.bandwidth,
        "link_bytes_per_s": row.link,
    }
    changes: dict[str, Any] = {key: value for key, value in stated.items() if value is not None}
    rates = {**base.rates, **row.rates}
    common = base.family == row.name
    return replace(base, name=row.name, common=common, aliases=row.aliases, rates=rates, fact=fact, **changes)


def _machine(row: OwnMachine, chip: Chip | None, file: Source, provider: str) -> Machine:
    return Machine(
        provider=provider,
        name=row.name,
        chip=chip.name if chip else None,
        chips=row.chips if row.chips or chip is None else 1.0,
        vcpus=row.vcpus,
        memory_bytes=row.memory,
        disk_bytes=row.disk,
        network_bytes_per_s=row.network,
        fabric=row.fabric,
        link=row.link,
        fact=Fact((file.name,), file.day, (), row.note),
        purchase_usd=row.purchase_price,
        power_w=row.power,
        owned=((row.region, row.count),) if row.count is not None else (),
    )


def _cost(file: Source, row: OwnMachine, index: int, machine: Machine, region: Region | None) -> tuple[Machine, list[Offer]]:
    """The hourly cost as stated, else derived from what is known, and electricity alone; no offer where that is not enough."""
    full, note = row.price_per_hour, row.note
    pue = row.pue or (region.pue if region else None)
    energy = energy_cost(row.power, pue, row.usd_per_kwh)
    if full is None and row.purchase_price is not None and row.lifetime is not None:
        if row.power is not None and row.usd_per_kwh is None:
            file.wrong(("machines", index), "the power is known and the price of electricity is not; give usd_per_kwh: 0.12")
            return machine, []
        full, story = hourly_cost(
            row.purchase_price, row.lifetime, row.power, pue, row.usd_per_kwh, row.hosting_per_month or 0.0
        )
        note = "; ".join(filter(None, (note, story)))
    if row.paid and energy is None:
        file.wrong(
            ("machines", index), "of a machine that is paid electricity alone counts; give power: 10 kW, usd_per_kwh: 0.12"
        )
        return machine, []
    machine = replace(machine, full_usd_per_hour=full, energy_usd_per_hour=energy, paid=row.paid)
    price = energy if row.paid else full
    if price is None:
        return machine, []
    return machine, [
        Offer(
            provider=machine.provider,
            machine=row.name,
            region=row.region,
            purchase=Purchase.OWNED,
            usd_per_hour=price,
            as_of=file.day,
            source=file.name,
            notes="; ".join(filter(None, (note, "paid: electricity alone counts" if row.paid else ""))),
        )
    ]


def _discount(file: Source, row: OwnDiscount, index: int, names: Names) -> discount.Discount | None:
    provider = names.provider_or_none(row.provider)
    if provider is None:
        near = nearest(row.provider, names.catalog.providers)
        file.wrong(("discounts", index, "provider"), f"no provider is called {row.provider!r}", near)
        return None
    machines = None
    if row.machine is not None:
        machines = frozenset(m.key for m in names.machines_or_none(row.machine) or () if m.provider == provider)
        if not machines:
            near = nearest(row.machine, (m.name for m in names.catalog.machines if m.provider == provider))
            file.wrong(("discounts", index, "machine"), f"no machine of {provider} is called {row.machine!r}", near)
    regions = {region.name for region in names.catalog.regions if region.provider == provider}
    if row.region is not None and row.region not in regions:
        near = nearest(row.region, regions)
        file.wrong(("discounts", index, "region"), f"no region of {provider} is called {row.region!r}", near)
    # Spot prices follow the market, whatever was agreed on the list price.
    purchases = frozenset({row.purchase} if row.purchase else set(Purchase) - {Purchase.SPOT, Purchase.OWNED})
    region_names = None if row.region is None else frozenset({row.region})
    return discount.Discount(
        fraction=row.off, provider=provider, machines=machines, regions=region_names, purchases=purchases, note=row.note
    )
