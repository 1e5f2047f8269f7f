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
    reason: str
    usual: str


class _Days(dict[str, int]):
    """2026-11-15 -> 20261115, each day converted once."""

    def __missing__(self, day: str) -> int:
        self[day] = number = int(day.replace("-", ""))
        return number


def read_offers(data: Path, columns: Offers, feed_offers: dict[OfferKey, Offer], own: Mapping[OfferKey, Offer]) -> None:
    """Packaged offers into the columns, without those that are replaced; `feed_offers` loses what is older than ours."""
    machines, regions = _by_provider(columns.machine_keys), _by_provider(columns.region_keys)
    verdicts = _read_verdicts(data)
    known: dict[Text, int] = {columns.texts[0]: 0}

    def text_of(text: Text) -> int:
        position = known.get(text)
        if position is None:
            position = known[text] = len(columns.texts)
            columns.texts.append(text)
        return position

    days = _Days()
    for path in sorted((data / "offers").glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        provider = path.stem
        places = _Places(machines.get(provider, {}), regions.get(provider, {}))
        check_header(path, header, OFFER_COLUMNS)
        try:
            _read_file(provider, rows, places, verdicts.get(provider, {}), text_of, days, columns, feed_offers, own)
        except (KeyError, ValueError, IndexError) as error:
            raise _blamed(path, rows, places) from error


class _Places(NamedTuple):
    machines: dict[str, int]
    regions: dict[str, int]


def _by_provider(keys: Sequence[tuple[str, str]]) -> dict[str, dict[str, int]]:
    positions: dict[str, dict[str, int]] = {}
    for i, (provider, name) in enumerate(keys):
        positions.setdefault(provider, {})[name] = i
    return positions


def _read_file(
    provider: str,
    rows: list[list[str]],
    places: _Places,
    verdicts: Mapping[tuple[str, str], Mapping[Purchase, _Odd]],
    text_of: Callable[[Text], int],
    days: _Days,
    offers: Offers,
    feed_offers: dict[OfferKey, Offer],
    own: Mapping[OfferKey, Offer],
) -> None:
    columns = list(zip(*rows, strict=True))
    if not columns:
        return
    machine_positions = [places.machines[name] for name in columns[MACHINE]]
    region_positions = [places.regions[name] for name in columns[REGION]]
    plain = [text_of(("", source, notes, "")) for source, notes in zip(columns[SOURCE], columns[NOTES], strict=True)]
    keys = zip(columns[REGION], columns[MACHINE], strict=True)
    odd = {i: verdicts[key] for i, key in enumerate(keys) if key in verdicts} if verdicts else {}
    for option in _OPTIONS:
        prices = columns[option.price]
        picked = [i for i, price in enumerate(prices) if price]
        if feed_offers or own:
            picked = [i for i in picked if not _replaced(provider, rows[i], option, odd.get(i, {}), feed_offers, own)]
        if not picked:
            continue
        start = len(offers)
        price_days, sources = columns[option.day], columns[option.source]
        offers.machine.extend([machine_positions[i] for i in picked])
        offers.region.extend([region_positions[i] for i in picked])
        offers.purchase.extend(array("b", [PURCHASES.index(option.purchase)]) * len(picked))
        offers.price_max.extend(_tops(columns[SPOT_MAX], picked, option))
        offers.as_of.extend([days[price_days[i]] for i in picked])
        offers.verdict.extend(array("b", bytes(len(picked))))
        offers.text.extend(
            [
                plain[i] if option.source == SOURCE or not sources[i] else text_of(("", sources[i], rows[i][NOTES], ""))
                for i in picked
            ]
        )
        offers.price.extend([float(prices[i]) for i in picked])  # last: the length of the table is that of its prices
        for position, i in enumerate(picked, start) if odd else ():
            if i in odd and option.purchase in odd[i]:
                remark = odd[i][option.purchase]
                offers.verdict[position] = VERDICTS.index(remark.verdict)
                offers.text[position] = text_of((remark.reason, sources[i] or rows[i][SOURCE], rows[i][NOTES], remark.usual))


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
    feed_offers: dict[OfferKey, Offer],
    own: Mapping[OfferKey, Offer],
) -> bool:
    """Whether another offer takes the place of a packaged one; one that feeds brought and that is older is dropped instead.

    A price near one that is known not to be a real offer is the same entry come back, and stays marked.
    """
    key = (provider, row[MACHINE], row[REGION], option.purchase)
    if key in own:
        return True
    offer = feed_offers.get(key)
    if offer is None:
        return False
    if offer.as_of < row[option.day]:
        del feed_offers[key]
        return False
    remark, price = odd.get(option.purchase), float(row[option.price])
    near = price / 3 <= offer.usd_per_hour <= price * 3
    if remark is not None and remark.verdict in NEVER_WIN and offer.verdict is Verdict.FINE and near:
        feed_offers[key] = replace(offer, verdict=remark.verdict, why=remark.reason)
    return True


def _read_verdicts(data: Path) -> dict[str, dict[tuple[str, str], dict[Purchase, _Odd]]]:
    """What is odd about prices: by provider, then by region and machine, then by purchase option."""
    remarks: dict[str, dict[tuple[str, str], dict[Purchase, _Odd]]] = {}
    verdicts, purchases = {str(verdict): verdict for verdict in VERDICTS}, {str(purchase): purchase for purchase in PURCHASES}
    with (data / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        next(reader)
        for provider, region, machine, purchase, verdict, usual, reason, _ in reader:
            options = remarks.setdefault(provider, {}).setdefault((region, machine), {})
            options[purchases[purchase]] = _Odd(verdicts[verdict], reason, usual)
    return remarks


def _blamed(path: Path, rows: list[list[str]], places: _Places) -> InvalidFile:
    """The row that cannot be read, for whoever edited the data."""
    for line, row in enumerate(rows, 2):
        flaw = None
        if len(row) != len(OFFER_COLUMNS):
            flaw = f"{len(row)} cells in {len(OFFER_COLUMNS)} columns"
        elif row[MACHINE] not in places.machines:
            flaw = f"no machine of {path.stem} is called {row[MACHINE]!r}: add it to machines.csv"
        elif row[REGION] not in places.regions:
            flaw = f"no region of {path.stem} is called {row[REGION]!r}: add it to regions.csv"
        else:
            for option in _OPTIONS:
                try:
                    _ = float(row[option.price] or 0), int(row[option.day].replace("-", "") or 0) if row[option.price] else 0
                except ValueError as error:
                    flaw = str(error)
        if flaw:
            return InvalidFile(str(path), [Problem("", flaw, line)])
    return InvalidFile(str(path), [Problem("", "this file cannot be read as offers")])


def append(columns: Offers, offers: Sequence[Offer]) -> None:
    """Further offers, whose machines and regions the columns know."""
    machines = {key: i for i, key in enumerate(columns.machine_keys)}
    regions = {key: i for i, key in enumerate(columns.region_keys)}
    for offer in offers:
        columns.machine.append(machines[offer.provider, offer.machine])
        columns.region.append(regions[offer.provider, offer.region])
        columns.purchase.append(PURCHASES.index(offer.purchase))
        columns.price_max.append(float("nan") if offer.usd_per_hour_max is None else offer.usd_per_hour_max)
        columns.as_of.append(int(offer.as_of.replace("-", "")))
        columns.verdict.append(VERDICTS.index(offer.verdict))
        columns.text.append(len(columns.texts))
        columns.price.append(offer.usd_per_hour)
        usual = "" if offer.usual_usd_per_hour is None else repr(offer.usual_usd_per_hour)
        columns.texts.append((offer.why, offer.source, offer.notes, usual))
