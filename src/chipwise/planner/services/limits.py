"""Which limits of a workload a service breaks, or cannot be shown to keep.

A service's region is that of its price (`regions`). Where none is stated it may run in any region of its provider: it
keeps a limit on the place only if all of them do, and a provider whose regions nobody lists keeps none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chipwise.catalog.offer import Purchase
from chipwise.planner.limits import Rules

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


def barred(known: Known, rules: Rules, provider: str, chips: tuple[str, ...] | None, regions: Sequence[str]) -> list[str]:
    """Limits that a service breaks or cannot be shown to keep; `chips` None: nobody states them."""
    told = []
    if not rules.rented:
        told.append("is rented, and only own machines are asked for")
    if rules.purchases is not None and Purchase.ON_DEMAND not in rules.purchases:
        told.append(f"is paid per use, and machines bought as {' or '.join(sorted(rules.purchases))} are asked for")
    if rules.providers is not None and provider not in rules.providers:
        told.append(f"{provider} is none of the clouds asked for: {', '.join(sorted(rules.providers))}")
    if provider in rules.avoided_providers:
        told.append(f"{provider} is to be avoided")
    told += [
        f"{provider} is not known to take part in {programme}"
        for programme, taking_part in (rules.compliant or {}).items()
        if provider not in taking_part
    ]
    if rules.chips is not None and (not chips or not rules.chips.issuperset(chips)):
        asked = ", ".join(sorted(rules.chips)[:4])
        mine = f"runs on {' or '.join(chips)}" if chips else "which chip it runs on is not stated"
        told.append(f"{mine}; asked for {asked}")
    if chips and rules.avoided_chips.intersection(chips):
        told.append(f"may run on {' or '.join(sorted(rules.avoided_chips.intersection(chips)))}, which is to be avoided")
    return told + _misplaced(known, rules, provider, regions)


def _misplaced(known: Known, rules: Rules, provider: str, regions: Sequence[str]) -> list[str]:
    if rules.countries is None and rules.regions is None and not rules.avoided_countries and not rules.avoided_regions:
        return []
    mine = [region for region in known.catalog.regions if region.provider == provider]
    named = [region for region in mine if region.name in regions]
    places = named or mine  # where no region is named, it may run in any of them
    countries = {region.country for region in places}
    shown = ", ".join(sorted(str(one) for one in countries if one)[:4])
    where = f"{provider} {named[0].name}" if named else f"{provider}, whose regions are in {shown}" if shown else provider
    told = []
    if rules.countries is not None and (not places or not countries <= rules.countries):
        asked = ", ".join(sorted(rules.countries)[:4]) + (", ..." if len(rules.countries) > 4 else "")
        sure = bool(named) and None not in countries
        told.append(f"runs in {where}; asked for {asked}" if sure else f"its region is not stated ({where}); asked for {asked}")
    if rules.regions is not None and (not named or not {one.key for one in named} <= rules.regions):
        told.append(f"its region is not stated or not asked for ({where})")
    if rules.avoided_countries and (not places or None in countries or countries & rules.avoided_countries):
        told.append(f"may run in a country to be avoided ({where})")
    if rules.avoided_regions and (not places or {one.key for one in places} & rules.avoided_regions):
        told.append(f"may run in a region to be avoided ({where})")
    return told


def region_of(regions: Sequence[str]) -> str:
    """The one region that a price is of; empty: none is stated, or several."""
    return regions[0] if len(regions) == 1 else ""


def scope(rules: Rules, provider: str, service: str) -> list[str]:
    told = f"{service} counts as part of what {provider} states for all it sells"
    return [f"{one}: {told}" for one in rules.compliant or ()]
