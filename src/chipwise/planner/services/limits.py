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
    reasons = []
    if not rules.rented:
        reasons.append("is rented, and only own machines are asked for")
    if rules.purchases is not None and Purchase.ON_DEMAND not in rules.purchases:
        reasons.append(f"is paid per use, and machines bought as {' or '.join(sorted(rules.purchases))} are asked for")
    if rules.providers is not None and provider not in rules.providers:
        reasons.append(f"{provider} is none of the clouds asked for: {', '.join(sorted(rules.providers))}")
    if provider in rules.avoided_providers:
        reasons.append(f"{provider} is to be avoided")
    reasons += [
        f"{provider} is not known to take part in {programme}"
        for programme, taking_part in (rules.compliant or {}).items()
        if provider not in taking_part
    ]
    if rules.chips is not None and (not chips or not rules.chips.issuperset(chips)):
        wanted = ", ".join(sorted(rules.chips)[:4])
        hardware = f"runs on {' or '.join(chips)}" if chips else "which chip it runs on is not stated"
        reasons.append(f"{hardware}; asked for {wanted}")
    if chips and rules.avoided_chips.intersection(chips):
        reasons.append(f"may run on {' or '.join(sorted(rules.avoided_chips.intersection(chips)))}, which is to be avoided")
    return reasons + _misplaced(known, rules, provider, regions)


def _misplaced(known: Known, rules: Rules, provider: str, regions: Sequence[str]) -> list[str]:
    if rules.countries is None and rules.regions is None and not rules.avoided_countries and not rules.avoided_regions:
        return []
    offered = [region for region in known.catalog.regions if region.provider == provider]
    stated = [region for region in offered if region.name in regions]
    places = stated or offered  # where no region is named, it may run in any of them
    countries = {region.country for region in places}
    listing = ", ".join(sorted(str(one) for one in countries if one)[:4])
    place = f"{provider} {stated[0].name}" if stated else f"{provider}, whose regions are in {listing}" if listing else provider
    reasons = []
    if rules.countries is not None and (not places or not countries <= rules.countries):
        wanted = ", ".join(sorted(rules.countries)[:4]) + (", ..." if len(rules.countries) > 4 else "")
        sure = bool(stated) and None not in countries
        reasons.append(
            f"runs in {place}; asked for {wanted}" if sure else f"its region is not stated ({place}); asked for {wanted}"
        )
    if rules.regions is not None and (not stated or not {one.key for one in stated} <= rules.regions):
        reasons.append(f"its region is not stated or not asked for ({place})")
    if rules.avoided_countries and (not places or None in countries or countries & rules.avoided_countries):
        reasons.append(f"may run in a country to be avoided ({place})")
    if rules.avoided_regions and (not places or {one.key for one in places} & rules.avoided_regions):
        reasons.append(f"may run in a region to be avoided ({place})")
    return reasons


def region_of(regions: Sequence[str]) -> str:
    """The one region that a price is of; empty: none is stated, or several."""
    return regions[0] if len(regions) == 1 else ""


def scope(rules: Rules, provider: str, service: str) -> list[str]:
    told = f"{service} counts as part of what {provider} states for all it sells"
    return [f"{one}: {told}" for one in rules.compliant or ()]
