"""What every offer counts with, as columns beside the catalog's: its price in the ranking, how far that may be off, its age.

A price counts as it is listed, but for two kinds. Spot has a price in each zone of a region: the middle between the cheapest
and the dearest counts. A price that is doubtful (one source only, currency not stated, older than 2024, a floor, far off the
same machine elsewhere, or a spot price far below it in a list that is the only source) counts as the median of its peers, if
that is higher: doubt never makes a machine cheaper. Its peers are the same machine in other regions, else machines with as many
chips of the same kind, bought in the same way. Spot without any peer counts as the provider's usual share of the machine's
price on demand; any other doubtful price without a peer as the upper end of its own range, at least a quarter above the list
(an assumption: a euro that was taken for a dollar is less).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.names import Provider, providers
from chipwise.catalog.offer import NEVER_WIN, PURCHASES, VERDICTS, Purchase, Verdict, date_of
from chipwise.money.price_range import ACCELERATOR, PROCESSOR, PriceRanges
from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index

Mask = NDArray[np.bool_]
DOUBTFUL = frozenset({Verdict.VERIFY, Verdict.CURRENCY_UNKNOWN, Verdict.STALE, Verdict.FLOOR, Verdict.OUTLIER})
ONE_SOURCE = frozenset({Verdict.VERIFY, Verdict.CURRENCY_UNKNOWN})  # what is said of a list, not of one price in it
DOUBTED = 0.25  # of the cost: for so much less nobody signs a price that is doubtful
UNKNOWN_CURRENCY = 1.0  # and none whose currency is not stated, for so much less
FAR_BELOW = 0.6  # of the median of the same machine's spot prices
FEWEST_PEERS = 3  # of other machines; of the same machine elsewhere one is enough
WITHOUT_PEERS = 1.25  # times the list, at least: a doubtful price that nothing can be held against
SPOT_DAYS = 180.0  # by then one spot price in ten has halved, and one in ten doubled
# A list that nobody looked at a second time is durable for so long: by then three in ten of such offers are gone.
UNSEEN_DAYS = 180.0
OLD_DAYS = 180.0  # from here on the first line of an answer says how old its price is


@dataclass(frozen=True, slots=True)
class OfferPrices:
    """By offer."""

    counted: Array  # USD an hour
    low: Array  # of eight in ten
    high: Array
    days: Array  # since it was read
    durable: Mask  # a customer can expect to rent it again next month
    doubt: Array  # of the cost, which a surer price may be dearer and still lead; 0: none
    replaced: Mask  # counts by its peers
    alone: Mask  # doubtful and without peers: counts by the upper end of its range


def offer_prices(catalog: Catalog, today: date) -> OfferPrices:
    return catalog.derived(f"offer prices {today}", lambda: _columns(catalog, today))


def _columns(catalog: Catalog, today: date) -> OfferPrices:
    offers = catalog.offers
    listed, dearest = np.frombuffer(offers.price), np.frombuffer(offers.price_max)
    machine = np.frombuffer(offers.machine, dtype=np.int32).astype(np.intp)
    purchase = np.frombuffer(offers.purchase, dtype=np.int8).astype(np.intp)
    verdict = np.frombuffer(offers.verdict, dtype=np.int8)
    days = _days(np.frombuffer(offers.as_of, dtype=np.int32), today)
    middle = np.where(np.isnan(dearest), listed, (listed + np.fmax(dearest, listed)) / 2)
    doubtful = np.array([one in DOUBTFUL for one in VERDICTS])[verdict]
    doubtful |= _listed_with_doubt(catalog, middle, machine, purchase, verdict)
    sound = ~doubtful & ~np.array([one in NEVER_WIN for one in VERDICTS])[verdict]
    own = {one.name: one for one in providers(catalog.data)}
    names = catalog.providers
    position = {name: at for at, name in enumerate(names)}
    provider = np.array([position[one.provider] for one in catalog.machines], dtype=np.intp)[machine]
    peers = _peers(catalog, middle, machine, purchase, sound, doubtful)
    peers = np.where(peers > 0.0, peers, _usual_spot(catalog, middle, machine, provider, purchase, sound))
    low, high = _ranges(catalog, own, names, provider, machine, purchase, days)
    alone = doubtful & (peers <= 0.0)
    peers = np.where(alone, middle * np.maximum(high, WITHOUT_PEERS), peers)
    replaced = doubtful & (peers > middle)
    counted = np.where(replaced, peers, middle)
    reach = np.where(np.isnan(dearest), 1.0, np.fmax(dearest, listed) / np.maximum(middle, 1e-12))  # zones differ by that much
    low, high = counted * low / reach, counted * high * reach
    return OfferPrices(
        counted=counted,
        low=np.where(replaced, np.minimum(low, listed), low),
        high=high,
        days=days,
        durable=_durable(own, names, provider, purchase, days),
        doubt=np.array([_doubt(one) for one in VERDICTS])[verdict],
        replaced=replaced,
        alone=alone,
    )


def _doubt(verdict: Verdict) -> float:
    if verdict is Verdict.CURRENCY_UNKNOWN:
        return UNKNOWN_CURRENCY
    return DOUBTED if verdict in DOUBTFUL else 0.0


def _listed_with_doubt(catalog: Catalog, price: Array, machine: Index, purchase: Index, verdict: NDArray[np.int8]) -> Mask:
    """Spot prices far below those of their machine in other regions, beside a price on demand of which the list is the only
    source: it is the only one of both. Spot alone may differ as much from region to region."""
    key = machine * len(catalog.regions) + np.frombuffer(catalog.offers.region, dtype=np.int32)
    single = np.array([one in ONE_SOURCE for one in VERDICTS])[verdict] & (purchase == PURCHASES.index(Purchase.ON_DEMAND))
    spot = purchase == PURCHASES.index(Purchase.SPOT)
    doubtful = np.zeros(len(price), dtype=bool)
    for at in np.flatnonzero(spot & np.isin(key, key[single])).tolist():
        peers = price[spot & (machine == machine[at])]
        doubtful[at] = len(peers) > FEWEST_PEERS and price[at] < FAR_BELOW * float(np.median(peers))
    return doubtful


def _days(as_of: Index, today: date) -> Array:
    unique, inverse = np.unique(as_of, return_inverse=True)
    ages = [(today - date_of(one)).days for one in unique.tolist()]
    return np.maximum(np.array(ages, dtype=np.float64)[inverse], 0.0)


def _durable(own: dict[str, Provider], names: tuple[str, ...], provider: Index, purchase: Index, days: Array) -> Mask:
    """A provider that no table names is the user's own word, and so are own machines."""
    durable = np.array([name not in own or own[name].durable for name in names])[provider]
    looked = np.array([name not in own or own[name].observed for name in names])[provider]
    owned, spot = (purchase == PURCHASES.index(one) for one in (Purchase.OWNED, Purchase.SPOT))
    fresh = days <= np.where(spot, SPOT_DAYS, np.where(looked, np.inf, UNSEEN_DAYS))
    return np.asarray(owned | (durable & fresh))


def service_range(catalog: Catalog, provider: str, days: int) -> tuple[float, float]:
    """Factors, low and high, on a price that is paid by use and was read so many days ago. Nobody followed such prices: those
    of the provider's accelerators on demand, or of its kind's, count."""
    low, high = _price_ranges(catalog).factors(provider, ACCELERATOR, Purchase.ON_DEMAND, np.array([float(days)]))
    return float(low[0]), float(high[0])


def _price_ranges(catalog: Catalog) -> PriceRanges:
    def ranges() -> PriceRanges:
        return PriceRanges(catalog.rows("price_drift"), {one.name: one.kind for one in providers(catalog.data)})

    return catalog.derived("price ranges", ranges)


def _ranges(
    catalog: Catalog,
    own: dict[str, Provider],
    names: tuple[str, ...],
    provider: Index,
    machine: Index,
    purchase: Index,
    days: Array,
) -> tuple[Array, Array]:
    ranges = _price_ranges(catalog)
    has_chip = np.array([one.chip is not None for one in catalog.machines])[machine]
    low, high = np.ones(len(days)), np.ones(len(days))
    key = (provider * len(PURCHASES) + purchase) * 2 + has_chip
    order = np.argsort(key, kind="stable")
    bounds = np.flatnonzero(np.diff(key[order], prepend=-1))
    for rows in np.split(order, bounds[1:]):
        first = int(rows[0]) if len(rows) else 0
        if len(rows) and names[provider[first]] in own:
            hardware = ACCELERATOR if has_chip[first] else PROCESSOR
            bought = PURCHASES[purchase[first]]
            low[rows], high[rows] = ranges.factors(names[provider[first]], hardware, bought, days[rows])
    return low, high


def _peers(catalog: Catalog, price: Array, machine: Index, purchase: Index, sound: Mask, doubtful: Mask) -> Array:
    """The median of each doubtful offer's peers; 0 where there are too few to tell."""
    medians = np.zeros(len(price))
    kinds: dict[tuple[str | None, float | None], int] = {}
    kind_of = [kinds.setdefault((one.chip, one.chips), len(kinds)) for one in catalog.machines]
    kind = np.array(kind_of, dtype=np.intp)[machine]
    for at in np.flatnonzero(doubtful).tolist():
        same = sound & (purchase == purchase[at])
        for group, fewest in ((machine, FEWEST_PEERS), (kind, FEWEST_PEERS), (machine, 1)):
            peers = price[same & (group == group[at])]
            if len(peers) >= fewest:
                medians[at] = float(np.median(peers))
                break
    return medians


def _usual_spot(catalog: Catalog, price: Array, machine: Index, provider: Index, purchase: Index, sound: Mask) -> Array:
    """Of spot: the middle of what the provider's machines with chips take of their price on demand, times this machine's in the
    same region; 0 where there is none."""
    region = np.frombuffer(catalog.offers.region, dtype=np.int32).astype(np.intp)
    key = machine * len(catalog.regions) + region
    listed, spot = (np.flatnonzero(purchase == PURCHASES.index(one)) for one in (Purchase.ON_DEMAND, Purchase.SPOT))
    listed = listed[np.argsort(key[listed])]
    usual = np.zeros(len(price))
    if not len(listed) or not len(spot):
        return usual
    place = np.minimum(np.searchsorted(key[listed], key[spot]), len(listed) - 1)
    on_demand = np.where(key[listed[place]] == key[spot], price[listed[place]], 0.0)
    has_chip = np.array([one.chip is not None for one in catalog.machines])[machine[spot]]
    paired = sound[spot] & has_chip & (on_demand > 0.0)
    for each in np.unique(provider[spot]).tolist():
        own = provider[spot] == each
        if (paired & own).any():
            share = float(np.median(price[spot[paired & own]] / on_demand[paired & own]))
            usual[spot[own]] = share * on_demand[own]
    return usual
