"""Machines that somebody owns, from a CSV file: one row per kind of machine and site.

Columns (only `name` is needed; case, blanks and underscores do not count):
name, chip, chips, vcpus, memory, disk, network, region (or site), count, purchase price, power (watts),
hourly cost, lifetime years, usd per kwh, pue, paid. Quantities take units: 512GiB, 3.84TB, 400Gbps, $250k.

A row with an hourly cost is offered at it. Without one, and with a lifetime, the cost is derived:
    hourly = purchase / (lifetime years x 8,760) + power in kW x PUE x USD per kWh
and marked as derived. Of a machine that is paid (yes) electricity alone counts. Without either, it is listed and has no price.
A bare memory or disk number is GiB or GB.

Options: `path`, `provider` (default onprem), and for rows that leave them blank `lifetime_years`, `usd_per_kwh`, `pue`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from chipwise.adapters.wire.chips import find_chip
from chipwise.adapters.wire.options import check_options
from chipwise.adapters.wire.tables import need_columns, read_table, user_path
from chipwise.catalog.fact import Fact
from chipwise.catalog.feed import FeedSettings, Report, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Purchase
from chipwise.catalog.owned import energy_cost, hourly_cost
from chipwise.catalog.region import Region
from chipwise.errors import BadInput, InvalidFile, Problem
from chipwise.spelling import fold, nearest
from chipwise.units import GB, GIB, YEAR, parse_bandwidth, parse_bytes, parse_count, parse_usd, parse_watts

OPTIONS = ("path", "provider", "lifetime_years", "usd_per_kwh", "pue")
OWN_PROVIDER = "onprem"
_YES, _NO = ("yes", "true", "1"), ("", "no", "false", "0")

_COLUMNS = (
    "name",
    "chip",
    "chips",
    "vcpus",
    "memory",
    "disk",
    "network",
    "region",
    "count",
    "purchase price",
    "power",
    "hourly cost",
    "lifetime years",
    "usd per kwh",
    "pue",
    "paid",
)
_SPELT = {fold(name): name for name in _COLUMNS}
_ALSO = {  # other words for a column
    "machine": "name",
    "site": "region",
    "location": "region",
    "gpu": "chip",
    "accelerator": "chip",
    "gpus": "chips",
    "cpus": "vcpus",
    "ram": "memory",
    "memorygib": "memory",
    "diskgb": "disk",
    "quantity": "count",
    "price": "purchaseprice",
    "purchase": "purchaseprice",
    "purchaseusd": "purchaseprice",
    "watts": "power",
    "powerw": "power",
    "powerwatts": "power",
    "usdperhour": "hourlycost",
    "hourlyusd": "hourlycost",
    "lifetime": "lifetimeyears",
    "electricity": "usdperkwh",
}


@dataclass(slots=True)
class _Sheet:
    """What was read so far, and everything that is wrong."""

    machines: dict[str, Machine] = field(default_factory=dict)
    offers: dict[tuple[str, str], Offer] = field(default_factory=dict)
    places: dict[tuple[str, str], int] = field(default_factory=dict)  # (machine, region) -> line
    unpriced: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def takes(path: Path) -> bool:
    return not path.is_dir()


def parts(options: Mapping[str, str]) -> list[tuple[str, Mapping[str, str]]]:
    """All machines of a file are of one provider."""
    return [(options.get("provider") or OWN_PROVIDER, options)]


def fetch(settings: FeedSettings, report: Report) -> Snapshot:
    check_options("inventory", settings.options, OPTIONS)
    location = settings.options.get("path", "").strip()
    if not location:
        raise BadInput("The inventory feed needs a CSV file of machines.", remedy="Give path=FILE.")
    provider = settings.options.get("provider", "").strip() or OWN_PROVIDER
    if not fold(provider) or len(provider) > 60 or not provider.isprintable():
        raise BadInput(f"provider={provider[:60]!r} is not a name.", remedy="Try provider=onprem.")
    defaults = _defaults(settings.options)
    path = user_path(location)
    report(0, 1, f"reading {path}")
    sheet, empty = _Sheet(), True
    for line, cells in read_table(path):
        row = {_ALSO.get(name, name): text for name, text in cells.items()}
        if empty:
            need_columns(path, row, ("name",))
            sheet.problems += _unknown_columns(row)
        empty = False
        _read_row(sheet, _Cells(line, row, defaults, sheet.problems), provider, settings)
    if empty:
        sheet.problems.append(Problem("", "no machine in it", 1))
    if sheet.problems:
        remedy = "Fix these lines and import again; the catalog is unchanged."
        raise InvalidFile(str(path), sorted(sheet.problems, key=lambda problem: problem.line or 0), remedy=remedy)
    report(1, 1, f"{len(sheet.machines)} machines")
    fact = Fact((f"inventory {settings.options['path']}",), settings.today.isoformat())
    regions = tuple(Region(provider, name, fact=fact) for name in sorted({region for _, region in sheet.places}))
    skipped = (f"no hourly cost and no lifetime, so no price: {', '.join(sheet.unpriced)}",) if sheet.unpriced else ()
    return Snapshot(
        provider=provider,
        day=settings.today,
        machines=tuple(sheet.machines.values()),
        offers=tuple(sheet.offers.values()),
        regions=regions,
        skipped=skipped,
    )


def _defaults(options: Mapping[str, str]) -> dict[str, str]:
    columns = {"lifetimeyears": "lifetime_years", "usdperkwh": "usd_per_kwh", "pue": "pue"}
    defaults = {column: options[name].strip() for column, name in columns.items() if options.get(name, "").strip()}
    problems: list[Problem] = []
    cells = _Cells(0, defaults, {}, problems)
    for column in defaults:
        cells.number(column)
    if problems:
        raise BadInput(f"Option {problems[0].field.replace(' ', '_')}: {problems[0].message}")
    return defaults


def _unknown_columns(row: Mapping[str, str]) -> list[Problem]:
    allowed = ", ".join(_COLUMNS)
    return [
        Problem(field=name, message="no such column", line=1, allowed=allowed, nearest=nearest(name, _COLUMNS))
        for name in row
        if name and name not in _SPELT
    ]


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of one row; what cannot be read is noted and None, so that all problems are told at once."""

    line: int
    row: Mapping[str, str]
    defaults: Mapping[str, str]
    problems: list[Problem]

    def text(self, name: str) -> str:
        return self.row.get(name, "") or self.defaults.get(name, "")

    def wrong(self, name: str, message: str, near: tuple[str, ...] = ()) -> None:
        self.problems.append(Problem(_SPELT[name], message, self.line, nearest=near))

    def number(self, name: str, parse: Callable[[str], float] = parse_count, limit: float = 1e15) -> float | None:
        text = self.text(name)
        if not text:
            return None
        try:
            value = parse(text)
        except BadInput as error:
            self.wrong(name, str(error))
            return None
        if not 0 < value <= limit:
            self.wrong(name, f"{text!r} is not above zero and at most {limit:g}.")
            return None
        return value

    def size(self, name: str, unit: float) -> float | None:
        """A size with its unit, or a bare number of GiB or GB."""
        text = self.text(name)
        bare = text.replace(",", "").replace(".", "", 1).isdecimal()
        return self.number(name, (lambda text: parse_count(text) * unit) if bare else parse_bytes)


def _read_row(sheet: _Sheet, cells: _Cells, provider: str, settings: FeedSettings) -> None:
    before = len(sheet.problems)
    name, region = cells.text("name"), cells.text("region") or "default"
    if not name or len(name) > 100 or not name.isprintable():
        cells.wrong("name", "no name" if not name else "not a name of up to 100 printable characters")
    chip = _chip(cells, settings.chip_of)
    chips = cells.number("chips", limit=100_000)
    count = cells.number("count", limit=1_000_000)
    if count is not None and count != int(count):
        cells.wrong("count", f"{cells.text('count')!r} is not a whole number of machines.")
    if cells.text("chips") and not cells.text("chip"):
        cells.wrong("chip", "chips are counted and the chip is not named")
    machine = Machine(
        provider=provider,
        name=name,
        chip=chip,
        chips=chips if chips is not None or chip is None else 1.0,
        vcpus=cells.number("vcpus", limit=100_000),
        memory_bytes=cells.size("memory", GIB),
        disk_bytes=cells.size("disk", GB),
        network_bytes_per_s=cells.number("network", parse_bandwidth),
        fact=Fact((f"inventory {settings.options['path']}",), settings.today.isoformat()),
        purchase_usd=cells.number("purchaseprice", parse_usd, limit=1e9),
        power_w=cells.number("power", parse_watts, limit=1e7),
    )
    full, story, energy = _costs(cells, machine)
    paid = _paid(cells, energy)
    hourly = energy if paid else full
    priced = replace(machine, full_usd_per_hour=full, energy_usd_per_hour=energy, paid=paid)
    if (name, region) in sheet.places:
        cells.wrong("name", f"{name} in {region} is already on line {sheet.places[name, region]}")
    if not _equal(sheet.machines.get(name, machine), machine):
        cells.wrong("name", f"{name} has other figures on an earlier line; one name is one kind of machine")
    if len(sheet.problems) > before:
        return
    sheet.places[name, region] = cells.line
    known = sheet.machines.setdefault(name, priced)
    if count is not None:
        sheet.machines[name] = replace(known, owned=(*known.owned, (region, int(count))))
    owned = f"{count:g} owned" if count is not None else ""
    notes = "; ".join(filter(None, (owned, story, "paid: electricity alone counts" if paid else "")))
    if hourly is None:
        sheet.unpriced.append(name)
        return
    day, source = settings.today.isoformat(), f"inventory {settings.options['path']}"
    sheet.offers[name, region] = Offer(
        provider=provider,
        machine=name,
        region=region,
        purchase=Purchase.OWNED,
        usd_per_hour=hourly,
        as_of=day,
        source=source,
        notes=notes,
    )


def _chip(cells: _Cells, chip_of: Mapping[str, str]) -> str | None:
    text = cells.text("chip")
    if not text or fold(text) in ("none", "no", "cpu"):
        return None
    chip = find_chip(chip_of, text)
    if chip is None:
        cells.wrong("chip", f"no chip is called {text[:60]!r}.", nearest(text, dict.fromkeys(chip_of.values())))
    return chip


def _costs(cells: _Cells, machine: Machine) -> tuple[float | None, str, float | None]:
    """USD per hour of one machine with the story of the figure, and of its electricity alone; None: not known."""
    stated = cells.number("hourlycost", _per_hour, limit=100_000)
    is_stated = bool(cells.text("hourlycost"))
    years = None if is_stated else cells.number("lifetimeyears", _years, limit=50)
    price, pue = cells.number("usdperkwh", parse_usd, limit=10), cells.number("pue", limit=10)
    energy = energy_cost(machine.power_w, pue, price)
    if is_stated or years is None or machine.purchase_usd is None:
        return stated, "", energy
    if machine.power_w is not None and price is None:
        if not cells.text("usdperkwh"):
            cells.wrong("usdperkwh", "the power is known and the price of electricity is not; give usd_per_kwh=0.12")
        return None, "", energy
    if pue is not None and pue < 1:
        cells.wrong("pue", f"{pue:g} is below 1, which no data centre can be")
    return *hourly_cost(machine.purchase_usd, years * YEAR, machine.power_w, pue, price), energy


def _paid(cells: _Cells, energy: float | None) -> bool:
    text = cells.text("paid").strip().lower()
    if text not in _YES and text not in _NO:
        cells.wrong("paid", f"{text[:40]!r} is neither yes nor no")
    elif text in _YES and energy is None:
        cells.wrong("paid", "of a machine that is paid electricity alone counts; give power and usd per kwh")
    return text in _YES


def _equal(known: Machine, machine: Machine) -> bool:
    """But for what an hour costs and how many there are, which is the site's."""
    return replace(known, full_usd_per_hour=None, energy_usd_per_hour=None, paid=False, owned=()) == machine


def _years(text: str) -> float:
    cleaned = text.strip().lower()
    for word in ("years", "year", "y"):
        cleaned = cleaned.removesuffix(word)
    return parse_count(cleaned)


def _per_hour(text: str) -> float:
    cleaned = text.strip().lower()
    for word in ("/hour", "/hr", "/h", " per hour"):
        cleaned = cleaned.removesuffix(word)
    return parse_usd(cleaned)
