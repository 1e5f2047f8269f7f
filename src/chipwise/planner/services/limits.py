"""Which limits of a workload a service breaks, or cannot be shown to keep.

A service's region is that of its price (`regions`). Where none is stated it may run in any region of its provider: it
keeps a limit on the place only if all of them do, and a provider whose regions nobody lists keeps none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.catalog.offer import Purchase
from chipwise.planner.limits import Rules
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.limits import Barred, Misplaced, RuleKind
from chipwise.text import duration
from chipwise.units import DAY

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


def barred(
    known: Known, rules: Rules, provider: str, chips: tuple[str, ...] | None, regions: Sequence[str], price_days: int
) -> list[Reason]:
    """Limits that a service breaks or cannot be shown to keep; `chips` None: nobody states them."""
    reasons: list[Reason] = []
    if not rules.rented:
        reasons.append(Barred(RuleKind.RENTED, provider))
    if rules.purchases is not None and Purchase.ON_DEMAND not in rules.purchases:
        reasons.append(Barred(RuleKind.PURCHASE, provider, tuple(sorted(rules.purchases))))
    if rules.providers is not None and provider not in rules.providers:
        reasons.append(Barred(RuleKind.CLOUD, provider, tuple(sorted(rules.providers))))
    if provider in rules.avoided_providers:
        reasons.append(Barred(RuleKind.AVOIDED_CLOUD, provider))
    reasons += [
        Barred(RuleKind.PROGRAMME, provider, (programme,))
        for programme, taking_part in (rules.compliant or {}).items()
        if provider not in taking_part
    ]
    if rules.chips is not None and (not chips or not rules.chips.issuperset(chips)):
        reasons.append(Barred(RuleKind.CHIP, provider, tuple(sorted(rules.chips)), chips or ()))
    if chips and (avoided := rules.avoided_chips.intersection(chips)):
        reasons.append(Barred(RuleKind.AVOIDED_CHIP, provider, chips=tuple(sorted(avoided))))
    if rules.price_days is not None and price_days > rules.price_days:
        reasons.append(Barred(RuleKind.PRICE_AGE, provider, (duration(rules.price_days * DAY),)))
    return [*reasons, *_misplaced(known, rules, provider, regions)]


def _misplaced(known: Known, rules: Rules, provider: str, regions: Sequence[str]) -> list[Misplaced]:
    if rules.countries is None and rules.regions is None and not rules.avoided_countries and not rules.avoided_regions:
        return []
    offered = [region for region in known.catalog.regions if region.provider == provider]
    stated = [region for region in offered if region.name in regions]
    places = stated or offered  # where no region is named, it may run in any of them
    countries = {region.country for region in places}
    misplaced = Misplaced(
        rule=RuleKind.COUNTRY,
        provider=provider,
        region=stated[0].name if stated else "",
        countries=tuple(sorted(one for one in countries if one)),
        certain=bool(stated) and None not in countries,
    )
    reasons = []
    if rules.countries is not None and (not places or not countries <= rules.countries):
        reasons.append(replace(misplaced, asked=tuple(sorted(rules.countries))))
    if rules.regions is not None and (not stated or not {one.key for one in stated} <= rules.regions):
        reasons.append(replace(misplaced, rule=RuleKind.REGION))
    if rules.avoided_countries and (not places or None in countries or countries & rules.avoided_countries):
        reasons.append(replace(misplaced, rule=RuleKind.AVOIDED_COUNTRY))
    if rules.avoided_regions and (not places or {one.key for one in places} & rules.avoided_regions):
        reasons.append(replace(misplaced, rule=RuleKind.AVOIDED_REGION))
    return reasons


def region_of(regions: Sequence[str]) -> str:
    """The one region that a price is of; empty: none is stated, or several."""
    return regions[0] if len(regions) == 1 else ""


def scope(rules: Rules, provider: str, service: str) -> list[str]:
    told = f"{service} counts as part of what {provider} states for all it sells"
    unproven = [f"{one}: not checked, no data says whether {provider} takes part" for one in rules.unproven]
    return [*(f"{one}: {told}" for one in rules.compliant or ()), *unproven]
