"""Questions to the catalog: which offers or machines, in which order.

A question is a value. Answers are positions in the catalog's columns, so that asking costs a few milliseconds over all
offers and only what is shown becomes objects. Prices that are not real offers sort behind all that are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import ChipKind
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import NEVER_WIN, PURCHASES, VERDICTS, Purchase

# Verdict codes as a translation table: one pass over the column's bytes marks what may win.
_IS_REAL = bytes(i >= len(VERDICTS) or VERDICTS[i] not in NEVER_WIN for i in range(256))


class OfferOrder(StrEnum):
    PRICE = "price"
    PRICE_PER_CHIP = "price-per-chip"
    PRICE_PER_MEMORY = "price-per-memory"  # USD per hour and GiB of accelerator memory
    MACHINE = "machine"
    REGION = "region"
    AGE = "age"
    CARBON = "carbon"


@dataclass(frozen=True, slots=True)
class MachineQuery:
    """None asks for anything. Keys are (provider, name)."""

    providers: Collection[str] | None = None
    chips: Collection[str] | None = None
    machines: Collection[tuple[str, str]] | None = None
    kinds: Collection[ChipKind] | None = None
    min_chips: float | None = None
    max_chips: float | None = None
    min_chip_memory_bytes: float | None = None  # of one chip
    min_accelerator_memory_bytes: float | None = None  # of all chips together
    min_memory_bytes: float | None = None  # of the host
    min_vcpus: float | None = None
    retired: bool = True


@dataclass(frozen=True, slots=True)
class OfferQuery:
    machines: MachineQuery = MachineQuery()
    regions: Collection[tuple[str, str]] | None = None
    purchases: Collection[Purchase] | None = None
    max_usd_per_hour: float | None = None
    max_usd_per_chip_hour: float | None = None
    oldest: int | None = None  # yyyymmdd: no price from before
    real_only: bool = False  # leave out what can never win
    order: OfferOrder = OfferOrder.PRICE
    descending: bool = False


def find_machines(catalog: Catalog, query: MachineQuery) -> list[int]:
    """Positions of the machines that fit, in the catalog's order."""
    return [i for i, machine in enumerate(catalog.machines) if _fits(catalog, machine, query)]


def chip_memory(catalog: Catalog, machine: Machine) -> float | None:
    """Memory of one chip as the machine gives it; else what the chip itself has."""
    if machine.chips is None or machine.chip is None:
        return machine.chip_memory_bytes
    chip = catalog.chips[machine.chip]
    stated = machine.chip_memory_bytes
    if stated is None:
        return chip.memory_bytes
    # The same part: what a program can be given, rather than the figure on the box.
    is_whole_chip = chip.memory_gb is not None and abs(stated / 2.0**30 - chip.memory_gb) < 0.5
    return chip.memory_bytes if is_whole_chip else stated


def accelerator_memory(catalog: Catalog, machine: Machine) -> float | None:
    """Memory of all chips together. Of a shared chip the stated memory is a slice's, and the count a fraction of chips."""
    memory = chip_memory(catalog, machine)
    if memory is None or machine.chips is None or machine.chip is None:
        return None
    full_gb = catalog.chips[machine.chip].memory_gb
    if full_gb is None or memory / 2.0**30 > 0.9 * full_gb:
        return memory * machine.chips
    return memory * max(1, round(machine.chips * full_gb * 2.0**30 / memory))


def _fits(catalog: Catalog, machine: Machine, query: MachineQuery) -> bool:
    def short(value: float | None, least: float | None) -> bool:
        return least is not None and (value is None or value < least * 0.999)

    if query.providers is not None and machine.provider not in query.providers:
        return False
    if query.machines is not None and machine.key not in query.machines:
        return False
    if query.chips is not None and machine.chip not in query.chips:
        return False
    if query.kinds is not None and (machine.chip is None or catalog.chips[machine.chip].kind not in query.kinds):
        return False
    if machine.retired and not query.retired:
        return False
    if short(machine.chips, query.min_chips) or short(machine.memory_bytes, query.min_memory_bytes):
        return False
    if query.max_chips is not None and (machine.chips is None or machine.chips > query.max_chips * 1.001):
        return False
    if short(machine.vcpus, query.min_vcpus):
        return False
    if query.min_chip_memory_bytes is not None or query.min_accelerator_memory_bytes is not None:
        memory = chip_memory(catalog, machine)
        total = accelerator_memory(catalog, machine)
        return not short(memory, query.min_chip_memory_bytes) and not short(total, query.min_accelerator_memory_bytes)
    return True


def find_offers(catalog: Catalog, query: OfferQuery) -> list[int]:
    """Positions of the offers that fit, in the order asked for; what can never win comes last."""
    offers = catalog.offers
    wanted = query.machines
    positions: Sequence[int] = range(len(offers))
    if wanted != MachineQuery():
        good = frozenset(find_machines(catalog, wanted))
        positions = [i for i, machine in enumerate(offers.machine) if machine in good]
    if query.regions is not None:
        places = {catalog.region_index[key] for key in query.regions if key in catalog.region_index}
        positions = [i for i in positions if offers.region[i] in places]
    if query.purchases is not None:
        codes = {PURCHASES.index(purchase) for purchase in query.purchases}
        positions = [i for i in positions if offers.purchase[i] in codes]
    if query.max_usd_per_hour is not None:
        positions = [i for i in positions if offers.price[i] <= query.max_usd_per_hour]
    if query.oldest is not None:
        positions = [i for i in positions if offers.as_of[i] >= query.oldest]
    if query.max_usd_per_chip_hour is not None:
        limit = query.max_usd_per_chip_hour
        positions = [i for i in positions if (by_chip := _per_chip(catalog, i)) is not None and by_chip <= limit]
    is_real = offers.verdict.tobytes().translate(_IS_REAL)
    real = [i for i in positions if is_real[i]]
    doubtful = [] if query.real_only or len(real) == len(positions) else [i for i in positions if not is_real[i]]
    key = _order(catalog, query.order)
    return [*_sorted(real, key, query.descending), *_sorted(doubtful, key, query.descending)]


def _sorted(positions: list[int], key: Callable[[int], Any], descending: bool) -> list[int]:
    """In order; what has no value to sort by comes last either way."""
    try:
        return sorted(positions, key=key, reverse=descending)
    except TypeError:  # None does not compare: rare, so it is looked for only then
        unknown = [i for i in positions if key(i) is None]
        return [*sorted((i for i in positions if key(i) is not None), key=key, reverse=descending), *unknown]


def cheapest(catalog: Catalog, query: OfferQuery, fresh_since: int, per_chip: bool = False) -> dict[Purchase, int]:
    """The cheapest real offer of each purchase option: among those since `fresh_since` (yyyymmdd) where there is one.

    By the chip or by the machine; a machine whose chips nobody counted has no price per chip, except a processor's.
    """
    best: dict[Purchase, tuple[bool, float, int]] = {}
    for i in find_offers(catalog, replace(query, real_only=True)):
        machine = catalog.machines[catalog.offers.machine[i]]
        price = catalog.offers.price[i]
        if per_chip:
            by_chip = _per_chip(catalog, i)
            processor = machine.chip is not None and catalog.chips[machine.chip].kind is ChipKind.CPU
            if by_chip is None and not processor:
                continue
            price = price if by_chip is None else by_chip
        rank = (catalog.offers.as_of[i] < fresh_since, price, i)
        purchase = PURCHASES[catalog.offers.purchase[i]]
        if purchase not in best or rank < best[purchase]:
            best[purchase] = rank
    return {purchase: i for purchase, (_, _, i) in sorted(best.items(), key=lambda item: item[1][1])}


def cheapest_on_demand(catalog: Catalog, fresh_since: int) -> dict[tuple[str, str], float]:
    """The lowest real on-demand price of every machine over its regions, by the same rule of age."""
    best: dict[tuple[str, str], tuple[bool, float]] = {}
    for i in find_offers(catalog, OfferQuery(purchases={Purchase.ON_DEMAND, Purchase.OWNED}, real_only=True)):
        key = catalog.offers.machine_keys[catalog.offers.machine[i]]
        rank = (catalog.offers.as_of[i] < fresh_since, catalog.offers.price[i])
        best[key] = min(best.get(key, rank), rank)
    return {key: price for key, (_, price) in best.items()}


def _per_chip(catalog: Catalog, index: int) -> float | None:
    chips = catalog.machines[catalog.offers.machine[index]].chips
    return catalog.offers.price[index] / chips if chips else None


def _order(catalog: Catalog, order: OfferOrder) -> Callable[[int], Any]:
    """What to sort by; None where there is nothing to go by."""
    offers, machines, regions = catalog.offers, catalog.machines, catalog.regions

    def per_memory(i: int) -> float | None:
        memory = accelerator_memory(catalog, machines[offers.machine[i]])
        return offers.price[i] / memory if memory else None

    def carbon(i: int) -> tuple[float, float] | None:
        grid = regions[offers.region[i]].grid_g_per_kwh
        return None if grid is None else (grid, offers.price[i])

    match order:
        case OfferOrder.PRICE:
            return offers.price.__getitem__
        case OfferOrder.PRICE_PER_CHIP:
            return lambda i: _per_chip(catalog, i)
        case OfferOrder.PRICE_PER_MEMORY:
            return per_memory
        case OfferOrder.MACHINE:
            return lambda i: (machines[offers.machine[i]].name, offers.price[i])
        case OfferOrder.REGION:
            return lambda i: (regions[offers.region[i]].name, offers.price[i])
        case OfferOrder.AGE:
            return lambda i: -offers.as_of[i]
        case OfferOrder.CARBON:
            return carbon
