"""Reads the packaged offers, one CSV file per provider, into columns.

A row of a file is wide: one machine in one region, with a price and a date for each purchase option. Reading goes column by
column rather than row by row, because every command that shows a price waits for it.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from chipwise.catalog.offer import NEVER_WIN, PURCHASES, VERDICTS, Offer, Offers, Purchase, Verdict
from chipwise.catalog.tables import check_header
from chipwise.errors import InvalidFile, Problem

OFFER_COLUMNS = (
    "region",
    "machine",
    "on_demand",
    "spot",
    "spot_max",
    "reserved_1y",
    "reserved_3y",
    "reserved_1y_upfront",
    "as_of",
    "spot_as_of",
    "reserved_as_of",
    "upfront_as_of",
    "source",
    "spot_source",
    "reserved_source",
    "upfront_source",
    "notes",
)
REGION, MACHINE, SPOT_MAX, SOURCE, NOTES = (
    OFFER_COLUMNS.index(name) for name in ("region", "machine", "spot_max", "source", "notes")
)
OfferKey = tuple[str, str, str, Purchase]
Text = tuple[str, str, str, str]  # why, source, notes, usual price


class _Option(NamedTuple):
    """A purchase option and the columns of its price, date and source (blank where it is the row's own)."""

    purchase: Purchase
    price: int
    day: int
    source: int


_OPTIONS = (
    _Option(Purchase.ON_DEMAND, 2, 8, 12),
    _Option(Purchase.SPOT, 3, 9, 13),
    _Option(Purchase.RESERVED_1Y, 5, 10, 14),
    _Option(Purchase.RESERVED_3Y, 6, 10, 14),
    _Option(Purchase.RESERVED_1Y_UPFRONT, 7, 11, 15),
)


class _Odd(NamedTuple):
    verdict: Verdict
    why: str
    usual: str


class _Days(dict[str, int]):
    """2026-11-15 -> 20261115, each day converted once."""

    def __missing__(self, day: str) -> int:
        self[day] = number = int(day.replace("-", ""))
        return number


def read_offers(data: Path, into: Offers, brought: dict[OfferKey, Offer], own: Mapping[OfferKey, Offer]) -> None:
    """Packaged offers into the columns, without those that are replaced; `brought` loses what is older than ours."""
    machines, regions = _by_provider(into.machine_keys), _by_provider(into.region_keys)
    verdicts = _read_verdicts(data)
    known: dict[Text, int] = {into.texts[0]: 0}

    def text_of(text: Text) -> int:
        found = known.get(text)
        if found is None:
            found = known[text] = len(into.texts)
            into.texts.append(text)
        return found

    days = _Days()
    for path in sorted((data / "offers").glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        provider = path.stem
        places = _Places(machines.get(provider, {}), regions.get(provider, {}))
        check_header(path, header, OFFER_COLUMNS)
        try:
            _read_file(provider, rows, places, verdicts.get(provider, {}), text_of, days, into, brought, own)
        except (KeyError, ValueError, IndexError) as error:
            raise _blamed(path, rows, places) from error


class _Places(NamedTuple):
    machines: dict[str, int]
    regions: dict[str, int]


def _by_provider(keys: Sequence[tuple[str, str]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for i, (provider, name) in enumerate(keys):
        found.setdefault(provider, {})[name] = i
    return found


def _read_file(
    provider: str,
    rows: list[list[str]],
    places: _Places,
    verdicts: Mapping[tuple[str, str], Mapping[Purchase, _Odd]],
    text_of: Callable[[Text], int],
    days: _Days,
    into: Offers,
    brought: dict[OfferKey, Offer],
    own: Mapping[OfferKey, Offer],
) -> None:
    columns = list(zip(*rows, strict=True))
    if not columns:
        return
    what = [places.machines[name] for name in columns[MACHINE]]
    where = [places.regions[name] for name in columns[REGION]]
    plain = [text_of(("", source, notes, "")) for source, notes in zip(columns[SOURCE], columns[NOTES], strict=True)]
    here = zip(columns[REGION], columns[MACHINE], strict=True)
    odd = {i: verdicts[key] for i, key in enumerate(here) if key in verdicts} if verdicts else {}
    for option in _OPTIONS:
        prices = columns[option.price]
        picked = [i for i, price in enumerate(prices) if price]
        if brought or own:
            picked = [i for i in picked if not _replaced(provider, rows[i], option, odd.get(i, {}), brought, own)]
        if not picked:
            continue
        start = len(into)
        when, sources = columns[option.day], columns[option.source]
        into.machine.extend([what[i] for i in picked])
        into.region.extend([where[i] for i in picked])
        into.purchase.extend(array("b", [PURCHASES.index(option.purchase)]) * len(picked))
        into.price_max.extend(_tops(columns[SPOT_MAX], picked, option))
        into.as_of.extend([days[when[i]] for i in picked])
        into.verdict.extend(array("b", bytes(len(picked))))
        into.text.extend(
            [
                plain[i] if option.source == SOURCE or not sources[i] else text_of(("", sources[i], rows[i][NOTES], ""))
                for i in picked
            ]
        )
        into.price.extend([float(prices[i]) for i in picked])  # last: the length of the table is that of its prices
        for at, i in enumerate(picked, start) if odd else ():
            if i in odd and option.purchase in odd[i]:
                found = odd[i][option.purchase]
                into.verdict[at] = VERDICTS.index(found.verdict)
                into.text[at] = text_of((found.why, sources[i] or rows[i][SOURCE], rows[i][NOTES], found.usual))


def _tops(column: Sequence[str], picked: list[int], option: _Option) -> array[float]:
    """The dearest zone of a spot price; nothing for the other options."""
    nan = float("nan")
    if option.purchase is not Purchase.SPOT:
        return array("d", [nan]) * len(picked)
    return array("d", [float(column[i]) if column[i] else nan for i in picked])


def _replaced(
    provider: str,
    row: list[str],
    option: _Option,
    odd: Mapping[Purchase, _Odd],
    brought: dict[OfferKey, Offer],
    own: Mapping[OfferKey, Offer],
) -> bool:
    """Whether another offer takes the place of a packaged one; one that feeds brought and that is older is dropped instead.

    A price near one that is known not to be a real offer is the same entry come back, and stays marked.
    """
    key = (provider, row[MACHINE], row[REGION], option.purchase)
    if key in own:
        return True
    offer = brought.get(key)
    if offer is None:
        return False
    if offer.as_of < row[option.day]:
        del brought[key]
        return False
    found, price = odd.get(option.purchase), float(row[option.price])
    near = price / 3 <= offer.usd_per_hour <= price * 3
    if found is not None and found.verdict in NEVER_WIN and offer.verdict is Verdict.FINE and near:
        brought[key] = replace(offer, verdict=found.verdict, why=found.why)
    return True


def _read_verdicts(data: Path) -> dict[str, dict[tuple[str, str], dict[Purchase, _Odd]]]:
    """What is odd about prices: by provider, then by region and machine, then by purchase option."""
    found: dict[str, dict[tuple[str, str], dict[Purchase, _Odd]]] = {}
    verdicts, purchases = {str(verdict): verdict for verdict in VERDICTS}, {str(purchase): purchase for purchase in PURCHASES}
    with (data / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        next(reader)
        for provider, region, machine, purchase, verdict, usual, why, _ in reader:
            options = found.setdefault(provider, {}).setdefault((region, machine), {})
            options[purchases[purchase]] = _Odd(verdicts[verdict], why, usual)
    return found


def _blamed(path: Path, rows: list[list[str]], places: _Places) -> InvalidFile:
    """The row that cannot be read, for whoever edited the data."""
    for line, row in enumerate(rows, 2):
        told = None
        if len(row) != len(OFFER_COLUMNS):
            told = f"{len(row)} cells in {len(OFFER_COLUMNS)} columns"
        elif row[MACHINE] not in places.machines:
            told = f"no machine of {path.stem} is called {row[MACHINE]!r}: add it to machines.csv"
        elif row[REGION] not in places.regions:
            told = f"no region of {path.stem} is called {row[REGION]!r}: add it to regions.csv"
        else:
            for option in _OPTIONS:
                try:
                    _ = float(row[option.price] or 0), int(row[option.day].replace("-", "") or 0) if row[option.price] else 0
                except ValueError as error:
                    told = str(error)
        if told:
            return InvalidFile(str(path), [Problem("", told, line)])
    return InvalidFile(str(path), [Problem("", "this file cannot be read as offers")])


def append(into: Offers, offers: Sequence[Offer]) -> None:
    """Further offers, whose machines and regions the columns know."""
    machines = {key: i for i, key in enumerate(into.machine_keys)}
    regions = {key: i for i, key in enumerate(into.region_keys)}
    for offer in offers:
        into.machine.append(machines[offer.provider, offer.machine])
        into.region.append(regions[offer.provider, offer.region])
        into.purchase.append(PURCHASES.index(offer.purchase))
        into.price_max.append(float("nan") if offer.usd_per_hour_max is None else offer.usd_per_hour_max)
        into.as_of.append(int(offer.as_of.replace("-", "")))
        into.verdict.append(VERDICTS.index(offer.verdict))
        into.text.append(len(into.texts))
        into.price.append(offer.usd_per_hour)
        usual = "" if offer.usual_usd_per_hour is None else repr(offer.usual_usd_per_hour)
        into.texts.append((offer.why, offer.source, offer.notes, usual))
