"""The schema of the user's own catalog files: chips, machines, regions, offers and discounts as people write them.

Quantities carry units ("80GiB", "$280k", "10 kW"). Unknown fields are refused, so that a typo is not silently ignored.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from chipwise.catalog.chip import ChipKind, Precision
from chipwise.catalog.offer import Purchase
from chipwise.errors import ChipwiseError
from chipwise.units import parse_bandwidth, parse_bytes, parse_flop, parse_seconds, parse_usd, parse_watts


def _validator(parse: Any) -> BeforeValidator:
    """A unit parser as a validator: its sentence becomes the problem's message."""

    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"{value!r} is not a quantity")
        try:
            return parse(value)
        except ChipwiseError as error:
            raise ValueError(str(error)) from None

    return BeforeValidator(read)


def _fraction(value: str | float) -> float:
    text = str(value).strip()
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?|\.\d{1,6})\s*(%?)", text)
    number = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < number < 1:
        raise ValueError(f"{value!r} is not a discount between 0% and 100%; write it like 30% or 0.3")
    return number


def _flop_per_s(value: str | float) -> float:
    return parse_flop(re.sub(r"(?i)\s*TOPS\b", " TFLOPS", value) if isinstance(value, str) else value)


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("holds characters that cannot be printed")
    return value


Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Note = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]
Bytes = Annotated[float, _validator(parse_bytes), Field(ge=2**20, le=2**60)]
Usd = Annotated[float, _validator(parse_usd), Field(gt=0, le=1e9)]
Lifetime = Annotated[float, _validator(parse_seconds), Field(ge=86400, le=1e9)]
Bandwidth = Annotated[float, _validator(parse_bandwidth), Field(ge=1e3, le=1e15)]
FlopRate = Annotated[float, _validator(_flop_per_s), Field(ge=1e6, le=1e18)]
Watts = Annotated[float, _validator(parse_watts), Field(gt=0, le=1e7)]
Fraction = Annotated[float, _validator(_fraction)]


class OwnRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, allow_inf_nan=False)


class OwnChip(OwnRow):
    """`like` takes over what is not stated from a chip of the catalog."""

    name: Text
    like: Text | None = None
    vendor: Text | None = None
    kind: ChipKind | None = None
    architecture: Text | None = None
    aliases: tuple[Text, ...] = ()
    compute_capability: Annotated[float, Field(ge=1, le=30)] | None = None
    memory: Bytes | None = None
    bandwidth: Bandwidth | None = None
    link: Bandwidth | None = None
    power: Watts | None = None
    rates: dict[Precision, FlopRate] = {}
    note: Note = ""


class OwnMachine(OwnRow):
    """A server that somebody owns, or a private offer. Its cost is `price_per_hour`, or follows from what it cost; of a machine
    that is `paid` electricity alone counts."""

    name: Text
    provider: Text = "onprem"
    region: Text = "default"
    chip: Text | None = None
    chips: Annotated[float, Field(ge=0.01, le=20000)] | None = None
    count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """How many of these machines there are."""
    vcpus: Annotated[float, Field(ge=0.25, le=100000)] | None = None
    memory: Bytes | None = None
    disk: Bytes | None = None
    network: Bandwidth | None = None
    fabric: Text | None = None
    link: Text | None = None
    price_per_hour: Usd | None = None
    purchase_price: Usd | None = None
    lifetime: Lifetime | None = None
    power: Watts | None = None
    usd_per_kwh: Annotated[float, _validator(parse_usd), Field(ge=0, le=100)] | None = None
    pue: Annotated[float, Field(ge=1, le=4)] | None = None
    hosting_per_month: Usd | None = None
    paid: bool = False
    note: Note = ""


class OwnRegion(OwnRow):
    name: Text
    provider: Text = "onprem"
    location: Text | None = None
    country: Annotated[str, Field(pattern="^[A-Z]{3}$")] | None = None
    latitude: Annotated[float, Field(ge=-90, le=90)] | None = None
    longitude: Annotated[float, Field(ge=-180, le=180)] | None = None
    grid_g_per_kwh: Annotated[float, Field(ge=0, le=1500)] | None = None
    pue: Annotated[float, Field(ge=1, le=4)] | None = None


class OwnOffer(OwnRow):
    provider: Text
    machine: Text
    region: Text
    purchase: Purchase = Purchase.ON_DEMAND
    price_per_hour: Usd
    as_of: Annotated[date, Field(ge=date(2000, 1, 1))] | None = None
    note: Note = ""


class OwnDiscount(OwnRow):
    """A negotiated share off the list price. `machine` is a machine or a family; left open, all of the provider's.

    Without `purchase` it holds for everything but spot.
    """

    provider: Text
    off: Fraction
    machine: Text | None = None
    region: Text | None = None
    purchase: Purchase | None = None
    until: date | None = None
    note: Note = ""


class OwnFile(OwnRow):
    """One file in the catalog directory."""

    chips: tuple[OwnChip, ...] = ()
    machines: tuple[OwnMachine, ...] = ()
    regions: tuple[OwnRegion, ...] = ()
    offers: tuple[OwnOffer, ...] = ()
    discounts: tuple[OwnDiscount, ...] = ()
