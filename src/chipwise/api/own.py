"""Joins the user's own catalog files to the rest: on-premises servers, private regions, negotiated prices and discounts.

    # ~/.config/chipwise/catalog/berlin.yaml
    machines:
      - {name: dgx-h100, chip: h100, chips: 8, region: berlin, memory: 2TiB, purchase_price: $280k, lifetime: 4y,
         power: 10.2 kW, usd_per_kwh: 0.19}
    regions:
      - {name: berlin, country: DEU, grid_g_per_kwh: 344, pue: 1.4}
    discounts:
      - {provider: aws, machine: p5, off: 22%, until: 2027-03-31}

Without `price_per_hour` a machine's cost is derived: purchase / lifetime + power x PUE x price of electricity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chipwise.api.ownrows import OwnChip, OwnDiscount, OwnFile, OwnMachine
from chipwise.catalog import discount
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import Chip, ChipKind, Silicon
from chipwise.catalog.fact import Fact
from chipwise.catalog.load import load
from chipwise.catalog.machine import Machine
from chipwise.catalog.names import Names
from chipwise.catalog.offer import Offer, Purchase
from chipwise.catalog.region import Region
from chipwise.errors import BadInput, InvalidFile, Problem, UnknownName
from chipwise.spelling import nearest
from chipwise.units import HOUR
from chipwise.workload.source import Document, read_text, read_yaml, show_where

DEFAULT_PUE = 1.5  # small server rooms are no better than the industry's average


def join(
    directory: Path, machines: Sequence[Machine], regions: Sequence[Region], offers: Sequence[Offer], today: date
) -> Catalog:
    """The catalog with everything in the directory joined; InvalidFile with all problems of the first bad file."""
    files = [(path, *_read(path)) for path in sorted(directory.glob("*.y*ml"))]
    names = Names(load((), machines, prices=False))
    own_chips = [_chip(path, document, row, i, names) for path, document, file in files for i, row in enumerate(file.chips)]
    if own_chips:
        names = Names(load(own_chips, machines, prices=False))
    own_machines: list[Machine] = []
    own_offers: list[Offer] = []
    own_regions: list[Region] = []
    for path, document, file in files:
        source = f"your file {path.name}"
        for row in file.regions:
            fact = Fact((source,), today.isoformat())
            own_regions.append(
                Region(
                    row.provider,
                    row.name,
                    row.location,
                    row.country,
                    row.latitude,
                    row.longitude,
                    row.grid_g_per_kwh,
                    today.year if row.grid_g_per_kwh is not None else None,
                    None,
                    None,
                    row.pue,
                    "yours" if row.pue else None,
                    fact,
                )
            )
        for i, machine in enumerate(file.machines):
            chip = _one_chip(path, document, ("machines", i, "chip"), machine.chip, names)
            own_machines.append(_machine(machine, chip, source, today))
            own_offers.extend(_cost(machine, source, today))
        for offer in file.offers:
            day = (offer.as_of or today).isoformat()
            own_offers.append(
                Offer(
                    offer.provider,
                    offer.machine,
                    offer.region,
                    offer.purchase,
                    offer.price_per_hour,
                    day,
                    source=source,
                    notes=offer.note,
                )
            )
    known = {machine.key for machine in (*names.catalog.machines, *own_machines)}
    for path, document, file in files:
        for i, offer in enumerate(file.offers):
            if (offer.provider, offer.machine) not in known:
                near = nearest(offer.machine, (name for provider, name in known if provider == offer.provider))
                _refuse(
                    path,
                    document,
                    ("offers", i, "machine"),
                    f"no machine of {offer.provider} is called {offer.machine!r}",
                    near,
                )
    catalog = load(own_chips, [*machines, *own_machines], [*regions, *own_regions], [*offers, *own_offers])
    names = Names(catalog)
    discounts = [
        found
        for path, document, file in files
        for i, row in enumerate(file.discounts)
        if row.until is None or row.until >= today
        for found in (_discount(path, document, row, i, names),)
    ]
    return discount.apply(catalog, discounts)


def _read(path: Path) -> tuple[Document, OwnFile]:
    document = read_yaml(read_text(path), str(path))
    if document.problems:
        raise InvalidFile(str(path), document.problems)
    try:
        return document, OwnFile.model_validate(document.data)
    except ValidationError as error:
        problems = [_problem(document, detail) for detail in error.errors(include_url=False)]
        raise InvalidFile(str(path), sorted(problems, key=lambda p: p.line or 0)) from None


def _problem(document: Document, detail: Any) -> Problem:
    where = tuple(step for step in detail["loc"] if not (isinstance(step, str) and step.endswith("]")))
    line = next((document.lines[where[:n]] for n in range(len(where), -1, -1) if where[:n] in document.lines), 1)
    message = str(detail["msg"]).removeprefix("Value error, ")
    near: tuple[str, ...] = ()
    if detail["type"] == "extra_forbidden":
        fields = _fields(where)
        message, near = f"is not a field here; allowed: {', '.join(fields)}", nearest(str(where[-1]), fields)
    return Problem(show_where(where), message, line, None, near)


def _fields(where: tuple[str | int, ...]) -> list[str]:
    if len(where) < 2:
        return list(OwnFile.model_fields)
    row = OwnFile.model_fields[str(where[0])].annotation
    return list(row.__args__[0].model_fields) if row is not None else []


def _refuse(path: Path, document: Document, where: tuple[str | int, ...], message: str, near: tuple[str, ...]) -> None:
    raise InvalidFile(str(path), [Problem(show_where(where), message, document.lines.get(where), None, near)])


def _one_chip(path: Path, document: Document, where: tuple[str | int, ...], text: str | None, names: Names) -> Chip | None:
    if text is None:
        return None
    try:
        return names.one_chip(text).chip
    except UnknownName as error:
        _refuse(path, document, where, error.message.rstrip("."), error.nearest)
        return None


def _chip(path: Path, document: Document, row: OwnChip, index: int, names: Names) -> Chip:
    fact = Fact((f"your file {path.name}",), "yours", (), row.note)
    base = _one_chip(path, document, ("chips", index, "like"), row.like, names)
    if base is None:
        if row.kind is None:
            _refuse(path, document, ("chips", index), "a chip needs a kind, or a chip it is like", ())
        base = Chip(
            row.name,
            row.vendor or "own",
            row.kind or ChipKind.GPU,
            row.name,
            row.architecture or "own",
            (),
            True,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            {},
            None,
            None,
            None,
            None,
            None,
            Silicon(),
            None,
            None,
            fact,
        )
    stated = {
        "vendor": row.vendor,
        "kind": row.kind,
        "architecture": row.architecture,
        "compute_capability": row.compute_capability,
        "memory_bytes": row.memory,
        "memory_gb": None if row.memory is None else row.memory / 2**30,
        "power_w": row.power,
        "memory_bytes_per_s": row.bandwidth,
        "link_bytes_per_s": row.link,
    }
    changes: dict[str, Any] = {key: value for key, value in stated.items() if value is not None}
    rates = {**base.rates, **row.rates}
    return replace(base, name=row.name, family=row.name, common=True, aliases=row.aliases, rates=rates, fact=fact, **changes)


def _machine(row: OwnMachine, chip: Chip | None, source: str, today: date) -> Machine:
    return Machine(
        row.provider,
        row.name,
        chip.name if chip else None,
        row.chips if row.chips or chip is None else 1.0,
        vcpus=row.vcpus,
        memory_bytes=row.memory,
        disk_bytes=row.disk,
        network_bytes_per_s=row.network,
        fabric=row.fabric,
        link=row.link,
        fact=Fact((source,), today.isoformat(), (), row.note),
        purchase_usd=row.purchase_price,
        power_w=row.power,
    )


def _cost(row: OwnMachine, source: str, today: date) -> list[Offer]:
    """The hourly cost as stated, else derived from what is known; none when there is nothing to derive it from."""
    price, note = row.price_per_hour, row.note
    if price is None:
        if row.purchase_price is None or row.lifetime is None:
            return []
        energy = (row.power or 0.0) / 1000 * (row.pue or DEFAULT_PUE) * (row.usd_per_kwh or 0.0)
        price = row.purchase_price / (row.lifetime / HOUR) + energy
        note = "; ".join(filter(None, (note, "derived: purchase / lifetime + power x PUE x electricity")))
    return [Offer(row.provider, row.name, row.region, Purchase.OWNED, price, today.isoformat(), source=source, notes=note)]


def _discount(path: Path, document: Document, row: OwnDiscount, index: int, names: Names) -> discount.Discount:
    try:
        provider = names.provider(row.provider)
        machines = (
            None if row.machine is None else frozenset(m.key for m in names.machines(row.machine) if m.provider == provider)
        )
    except BadInput as error:
        where = ("discounts", index, "provider" if "provider" in error.message else "machine")
        _refuse(path, document, where, error.message.rstrip("."), getattr(error, "nearest", ()))
        raise
    regions = None if row.region is None else frozenset({row.region})
    # Spot prices follow the market, whatever was agreed on the list price.
    purchases = frozenset({row.purchase} if row.purchase else set(Purchase) - {Purchase.SPOT, Purchase.OWNED})
    return discount.Discount(row.off, provider, machines, regions, purchases, row.note)
