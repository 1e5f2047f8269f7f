"""What a name means as plain data: what `chipwise explain --json` prints."""

from __future__ import annotations

from datetime import date

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.compatibility import Compatibility
from chipwise.catalog.meaning import CatalogMeaning
from chipwise.catalog.meaning import ChipMeaning as ChipMeaning
from chipwise.catalog.meaning import MachineMeaning as MachineMeaning
from chipwise.catalog.meaning import ProviderMeaning as ProviderMeaning
from chipwise.catalog.meaning import RegionMeaning as RegionMeaning
from chipwise.catalog.names import Retired as Retired
from chipwise.catalog.offer import Offer
from chipwise.catalog.query import chip_memory
from chipwise.views.catalog import View, chip_view, machine_view, model_view, offer_view, region_view
from chipwise.workload.model.registry import Model as Model

Meaning = CatalogMeaning | Model


def meaning_view(catalog: Catalog, today: date, meaning: Meaning) -> View:
    """One meaning of a name, told apart by the key `meaning`."""
    match meaning:
        case ChipMeaning():
            return {
                "meaning": "chip",
                "said": meaning.remark,
                **chip_view(meaning.chip, catalog),
                "sharing": [mode._asdict() for mode in meaning.modes],
                "slices": [s._asdict() for s in meaning.slices],
                "machines": meaning.machines,
                "cheapest": [price_view(catalog, today, offer) for offer in meaning.cheapest],
                "compatibility": [_finding(f) for f in meaning.findings],
            }
        case MachineMeaning():
            parts = meaning.parts
            return {
                "meaning": "machine",
                "ec2": None
                if parts is None
                else {
                    "family": parts.family,
                    "class": parts.meaning.letters,
                    "group": parts.meaning.group,
                    "title": parts.meaning.title,
                    "meant_for": parts.meaning.meant_for,
                    "generation": parts.generation,
                    "attributes": {a.attribute: a.meaning for a in parts.attributes},
                    "size": parts.size,
                    "size_meaning": parts.size_meaning,
                },
                "machines": [machine_view(machine, catalog) for machine in meaning.machines],
                "cheapest": [price_view(catalog, today, offer) for offer in meaning.cheapest],
                "quotas": list(meaning.quotas),
                "compatibility": [_finding(f) for f in meaning.findings],
            }
        case RegionMeaning():
            return {
                "meaning": "region",
                **region_view(meaning.region),
                "machines": meaning.machines,
                "chips": list(meaning.chips),
            }
        case ProviderMeaning():
            counts = {"machines": meaning.machines, "regions": meaning.regions, "offers": meaning.offers}
            return {
                "meaning": "provider",
                **meaning.provider._asdict(),
                **counts,
                "newest": meaning.newest,
                "oldest": meaning.oldest,
            }
        case Model():
            return {"meaning": "model", **model_view(meaning)}
        case Retired():
            return {"meaning": "retired", **meaning._asdict()}
        case _:
            return {"meaning": "sharing mode", **meaning._asdict()}


def price_view(catalog: Catalog, today: date, offer: Offer) -> View:
    """An offer with its machine and region, as `chipwise offers --json` prints it."""
    machine = catalog.machines[catalog.machine_index[offer.provider, offer.machine]]
    region = catalog.regions[catalog.region_index[offer.provider, offer.region]]
    return offer_view(offer, machine, region, chip_memory(catalog, machine), today)


def _finding(finding: Compatibility) -> View:
    return {"component": finding.component, "version": finding.version, "answer": str(finding.answer), "reason": finding.reason}
