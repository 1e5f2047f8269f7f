"""One product of the AWS Price List (GetProducts, format aws_v1) as prices per hour.

Each product is a JSON text: `product.attributes` says what it is, `terms` holds OnDemand and Reserved terms, each with
`priceDimensions` in a unit: Hrs is a price per hour, Quantity a fee paid once at the start. A year is 8,760 hours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from chipwise.adapters.wire.prices import usable_price
from chipwise.catalog.offer import Purchase
from chipwise.units import HOUR, YEAR

HOURS_PER_YEAR = YEAR / HOUR
# What GetProducts is asked for: the plain Linux price of a shared machine that is running.
WANTED = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
# Checked in the answer only: capacity blocks are products of their own, with an on-demand price of zero.
_ALSO = {"marketoption": "OnDemand"}
_TERMS = {
    ("1yr", "No Upfront"): (Purchase.RESERVED_1Y, 1),
    ("3yr", "No Upfront"): (Purchase.RESERVED_3Y, 3),
    ("1yr", "All Upfront"): (Purchase.RESERVED_1Y_UPFRONT, 1),
}


@dataclass(frozen=True, slots=True)
class Product:
    machine: str
    region: str
    prices: Mapping[Purchase, float]
    unusable: tuple[Purchase, ...] = ()  # stated, and not a price: missing, zero or not in USD


def filters(region: str) -> list[dict[str, str]]:
    """The `Filters` of GetProducts for one region."""
    return [{"Type": "TERM_MATCH", "Field": k, "Value": v} for k, v in ({"regionCode": region} | WANTED).items()]


def read_product(text: object, today: date) -> Product | str:
    """The product, or why it cannot be used. Never raises on what is in the text."""
    try:
        item = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return "not JSON"
    attributes = _dict(_dict(item, "product"), "attributes")
    machine, region = attributes.get("instanceType"), attributes.get("regionCode")
    if not isinstance(machine, str) or not isinstance(region, str) or not machine or not region:
        return "no instance type or region"
    for name, value in (WANTED | _ALSO).items():  # a server that ignores the filters must not mix Windows prices in
        if attributes.get(name, value) != value:
            return f"{name} is {str(attributes[name])[:40]}"
    terms = list(_priced(_dict(item, "terms"), today))
    prices = {purchase: price for purchase, price in terms if price is not None}
    return Product(machine, region, prices, tuple(purchase for purchase, price in terms if price is None))


def _priced(terms: Mapping[str, Any], today: date) -> Iterator[tuple[Purchase, float | None]]:
    for term in _in_force(_dict(terms, "OnDemand"), today):
        hourly, fee = _dimensions(term)
        yield Purchase.ON_DEMAND, usable_price(hourly if not fee else None)
    for term in _in_force(_dict(terms, "Reserved"), today):
        attributes = _dict(term, "termAttributes")
        if attributes.get("OfferingClass", "standard") != "standard":
            continue
        offering = _TERMS.get((str(attributes.get("LeaseContractLength")), str(attributes.get("PurchaseOption"))))
        if offering is None:
            continue
        purchase, years = offering
        hourly, fee = _dimensions(term)
        total = None if hourly is None and fee is None else (hourly or 0.0) + (fee or 0.0) / (years * HOURS_PER_YEAR)
        yield purchase, usable_price(total)


def _in_force(terms: Mapping[str, Any], today: date) -> Iterator[Mapping[str, Any]]:
    """Terms already in effect, the newest last so that it wins."""
    valid = [term for term in terms.values() if isinstance(term, Mapping)]
    started = [term for term in valid if str(term.get("effectiveDate", ""))[:10] <= today.isoformat()]
    yield from sorted(started, key=lambda term: str(term.get("effectiveDate", "")))


def _dimensions(term: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """USD per hour and USD once; None where there is no such dimension, or no number in it."""
    hourly = fee = None
    for dimension in _dict(term, "priceDimensions").values():
        amount = _amount(_dict(dimension, "pricePerUnit").get("USD")) if isinstance(dimension, Mapping) else None
        unit = dimension.get("unit") if isinstance(dimension, Mapping) else None
        if amount is None:
            continue
        if unit == "Hrs":
            hourly = amount
        elif unit == "Quantity":
            fee = amount
    return hourly, fee


def _amount(text: object) -> float | None:
    if not isinstance(text, str) or len(text) > 50:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


def _dict(holder: object, name: str) -> Mapping[str, Any]:
    value = holder.get(name) if isinstance(holder, Mapping) else None
    return value if isinstance(value, Mapping) else {}
