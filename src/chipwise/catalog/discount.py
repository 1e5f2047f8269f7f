"""Negotiated discounts: a share off the offers they name, said in each offer's notes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.offer import PURCHASES, Offers, Purchase


@dataclass(frozen=True, slots=True)
class Discount:
    fraction: float  # 0.3 is thirty per cent off
    provider: str
    machines: frozenset[tuple[str, str]] | None = None  # None: all of the provider's
    regions: frozenset[str] | None = None
    purchases: frozenset[Purchase] | None = None
    note: str = ""


def apply(catalog: Catalog, discounts: Sequence[Discount]) -> Catalog:
    """The catalog at the user's own prices. Several discounts on one offer multiply."""
    if not discounts:
        return catalog
    old = catalog.offers
    new = Offers(old.machine_keys, old.region_keys)
    for column in ("machine", "region", "purchase", "as_of", "verdict"):
        setattr(new, column, getattr(old, column))
    new.price, new.price_max, new.text, new.texts = (
        array("d", old.price),
        array("d", old.price_max),
        array("i", old.text),
        list(old.texts),
    )
    for discount in discounts:
        share = 1 - discount.fraction
        machines = {
            i
            for i, key in enumerate(old.machine_keys)
            if key[0] == discount.provider and (discount.machines is None or key in discount.machines)
        }
        codes = {PURCHASES.index(purchase) for purchase in discount.purchases or PURCHASES}
        terms = f"negotiated: {discount.fraction:.3g} off the list price" + (f" ({discount.note})" if discount.note else "")
        texts: dict[int, int] = {}
        for i, machine in enumerate(old.machine):
            if machine not in machines or old.purchase[i] not in codes:
                continue
            if discount.regions is not None and old.region_keys[old.region[i]][1] not in discount.regions:
                continue
            new.price[i] *= share
            new.price_max[i] *= share
            text = new.text[i]
            if text not in texts:
                reason, source, notes, usual = new.texts[text]
                texts[text] = len(new.texts)
                new.texts.append((reason, source, "; ".join(filter(None, (notes, terms))), usual))
            new.text[i] = texts[text]
    return replace(catalog, offers=new)
