"""Small devices beside the catalog's machines: bought, standing where the work is, paid for over three years.

    USD per hour of use = purchase / 3 years x (hours of a month / hours of use in it) + watts x price of electricity
A device is paid for whether it works or not, so its hours are dear where it works few of them. The purchase is the middle
of what it sells for (`data/tables/edge_devices.csv`); housing, camera, installation and repair are not in it. Accelerators
without memory of their own (Coral, Hailo) are bought with the board that they sit on, a Raspberry Pi 5. Electricity is
the median of the industrial prices that the catalog knows, unless the caller has a better one. A device whose price nobody
states has no offer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Offers, Purchase
from chipwise.catalog.offer_files import append
from chipwise.catalog.region import ON_SITE, Region
from chipwise.catalog.tables import EdgeDevice
from chipwise.planner.defaults import DEVICE_LIFETIME_S
from chipwise.text import price, usd
from chipwise.units import HOUR, MONTH

PROVIDER, PLACE = "edge", ON_SITE
HOST = "Raspberry Pi 5"
_COLUMNS = ("machine", "region", "purchase", "price", "price_max", "as_of", "verdict", "text")


@dataclass(frozen=True, slots=True)
class Use:
    """How devices are used: hours of a month, and the watts that each may draw."""

    hours_per_month: float
    watts: float | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """The catalog with an offer for every device, behind all others."""

    catalog: Catalog
    unpriced: tuple[str, ...]  # chips of devices that nobody prices
    least_w: Mapping[str, float]  # by chip: what a device draws at least while it works, with the board that it needs
    drawn_w: Mapping[str, float]  # by chip: what its electricity is paid for, board included, at most what it may draw


def chip_of(device: EdgeDevice, catalog: Catalog) -> str | None:
    """The catalog's chip of a device: the one its row names, or the one that goes by the device's name."""
    if device.chip is not None:
        return device.chip
    return next((name for name, chip in catalog.chips.items() if device.device in chip.aliases), None)


def usd_per_kwh(catalog: Catalog) -> float:
    prices = [row.value for row in catalog.rows("energy") if row.measure == "industrial_electricity_price" and row.value]
    return median(prices) if prices else 0.12


def with_devices(catalog: Catalog, use: Use) -> Joined:
    machines, offers, unpriced, least_w, drawn_w = [], [], [], {}, {}
    energy = usd_per_kwh(catalog)
    host = next((row for row in catalog.rows("edge_devices") if row.device == HOST), None)
    for row in catalog.rows("edge_devices"):
        chip = chip_of(row, catalog)
        if chip is None:
            continue
        if row.usd_low is None:
            unpriced.append(chip)
            continue
        board = host if row.memory_gb is None else None  # an accelerator without memory sits on a board
        own = row.power_max_w or 10.0
        least_w[chip] = own + (board.power_min_w or 0.0) if board is not None else row.power_min_w or 0.0
        drawn = min(own + (board.power_max_w or 0.0 if board is not None else 0.0), use.watts or float("inf"))
        drawn_w[chip] = drawn
        bought = _middle(row) + (_middle(board) if board is not None else 0.0)
        capital = bought / (DEVICE_LIFETIME_S / HOUR) * (MONTH / HOUR / use.hours_per_month)
        hourly = capital + drawn / 1e3 * energy
        with_board = f" with a {board.device}" if board is not None else ""
        formula = f"{usd(bought)}{with_board} over 3 years, and {drawn:g} W at {price(energy)}/kWh"
        machines.append(
            Machine(provider=PROVIDER, name=row.device, chip=chip, chips=1.0, fact=row.fact, purchase_usd=bought, power_w=drawn)
        )
        offers.append(
            Offer(
                provider=PROVIDER,
                machine=row.device,
                region=PLACE,
                purchase=Purchase.OWNED,
                usd_per_hour=hourly,
                as_of=row.fact.day,
                notes=formula,
            )
        )
    region = Region(PROVIDER, PLACE, pue=1.0, pue_basis="no cooling")
    return Joined(_joined(catalog, machines, region, offers), tuple(unpriced), least_w, drawn_w)


def _middle(row: EdgeDevice) -> float:
    low = row.usd_low or 0.0
    return (low + (row.usd_high or low)) / 2


def _joined(catalog: Catalog, machines: Sequence[Machine], region: Region, offers: Sequence[Offer]) -> Catalog:
    all_machines, regions = (*catalog.machines, *machines), (*catalog.regions, region)
    columns = Offers([one.key for one in all_machines], [one.key for one in regions])
    for name in _COLUMNS:
        setattr(columns, name, getattr(catalog.offers, name)[:])
    columns.texts = list(catalog.offers.texts)
    append(columns, offers)
    return Catalog(chips=catalog.chips, machines=all_machines, regions=regions, offers=columns, data=catalog.data)
