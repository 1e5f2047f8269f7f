"""Owning against renting as values: what was asked, what it was reckoned with, and what came of it. Nothing here reckons."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog.offer import Offer, Purchase
from chipwise.money.rent import Decline
from chipwise.money.tco import Comparison, OwnCost, Ownership, Swing

# What the options of a command or a call are named as fields of a request, where the names differ.
OPTION_FIELDS = {
    "purchase": "purchase_usd",
    "power": "power_w",
    "power_price": "usd_per_kwh",
    "staff": "staff_usd_per_machine_year",
    "space": "space_usd_per_kw_month",
    "residual": "residual_share",
    "maintenance": "maintenance_share",
    "network": "network_storage_share",
    "provider": "providers",
    "region": "regions",
}
NEGOTIATED = "negotiated"  # the provider of a rent that somebody was offered


@dataclass(frozen=True, slots=True)
class Rent:
    """What somebody was offered, an hour."""

    usd: float
    is_machine: bool = False  # of a machine with all its chips; else of one chip


@dataclass(frozen=True, slots=True)
class TcoRequest:
    """What somebody wants to own, and against what. None: from the catalog, or by habit. Prices are of one machine."""

    chip: str
    chips: int = 8
    machines: int = 1
    years: float = 4.0
    utilisation: float = 0.7
    country: str | None = None
    purchase_usd: float | None = None
    power_w: float | None = None
    usd_per_kwh: float | None = None
    pue: float | None = None
    staff_usd_per_machine_year: float | None = None
    space_usd_per_kw_month: float | None = None
    interest: float | None = None
    residual_share: float | None = None
    maintenance_share: float | None = None
    network_storage_share: float | None = None
    against: tuple[str, ...] = ()  # machines, families of machines, chips; none: the chip itself, wherever it is rented
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    rent: Rent | None = None
    term: str = "none"  # to which the rent binds: none, 1y, 3y
    decline: float | None = None  # of rents, a year; None: as it was observed


@dataclass(frozen=True, slots=True)
class TcoSetting:
    """A figure of the calculation and its story."""

    name: str  # a field of `Ownership`
    value: float
    basis: str
    is_given: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """A machine to rent instead; `usd_per_hour` is for as many chips as one own machine has."""

    offer: Offer
    chip: str
    chips: float  # of the rented machine
    usd_per_hour: float
    place: str  # "cheapest of 9 providers"
    decline: Decline  # of the rent
    compared: Comparison
    slow: Comparison  # with the rent falling as little as the interval has it
    fast: Comparison  # and as much
    contract_usd: float | None  # to which one term binds, of all machines; None: nothing is promised
    is_durable: bool = True  # can be expected to be rented again next month
    rents: tuple[float, ...] = ()  # USD per hour of the same purchase option, by provider


@dataclass(frozen=True, slots=True)
class Tco:
    request: TcoRequest
    chip: str
    own: Ownership
    settings: tuple[TcoSetting, ...]
    cost: OwnCost
    low: OwnCost  # with the purchase at the low end of its prices
    high: OwnCost
    cloud: tuple[Alternative, ...]
    left_out: tuple[tuple[Purchase, str], ...]
    reference: Alternative | None  # what the answer and the sensitivity are against
    swings: tuple[Swing, ...]
    notes: tuple[str, ...]
