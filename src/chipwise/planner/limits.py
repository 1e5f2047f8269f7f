"""Hard limits first: which offers a workload may use, and of every rule how much it took away.

Rules are applied one after the other to columns of offers; each says how many it refused and shows one of them. Names are
resolved before (`Rules`), so that nothing here knows how people spell a cloud.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import NEVER_WIN, PURCHASES, VERDICTS, Purchase
from chipwise.catalog.region import Region, readable
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.offer_prices import OfferPrices
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.limits import DoesNotRun, Rule, RuleKind

Mask = NDArray[np.bool_]
COMMITTED_YEARS = {Purchase.RESERVED_1Y: 1.0, Purchase.RESERVED_3Y: 3.0, Purchase.RESERVED_1Y_UPFRONT: 1.0}


@dataclass(frozen=True, slots=True)
class Required:
    """Something that must run or be there: which chips and machines it refuses, each with the reason."""

    rule: str  # as in "flash-attention>=2 does not run there"
    chips: Mapping[str, str]  # refused, by the catalog's name
    machines: Mapping[tuple[str, str], str] = field(default_factory=dict)  # refused, whatever their chip
    doubts: Mapping[str, str] = field(default_factory=dict)  # chips that pass although no source states that it runs

    def refusal(self, machine: Machine) -> str | None:
        """None: fine there."""
        return self.chips.get(machine.chip or "") or self.machines.get(machine.key)


@dataclass(frozen=True, slots=True)
class Granted:
    """A quota of the user's own: most chips of a kind at one time, everywhere, at a provider or in a region."""

    title: str  # as the user named it
    chips: frozenset[str]
    maximum: int
    provider: str | None = None
    regions: frozenset[tuple[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What a workload's limits come to in the catalog's own names; None limits nothing."""

    providers: frozenset[str] | None = None
    avoided_providers: frozenset[str] = frozenset()
    regions: frozenset[tuple[str, str]] | None = None
    avoided_regions: frozenset[tuple[str, str]] = frozenset()
    countries: frozenset[str] | None = None  # countries and residency together, ISO alpha-3
    avoided_countries: frozenset[str] = frozenset()
    compliant: Mapping[str, frozenset[str]] | None = None  # by programme: providers known to take part
    unproven: Mapping[str, frozenset[str]] = field(
        default_factory=dict
    )  # the same, of programmes that refuse nobody: a warning
    chips: frozenset[str] | None = None
    avoided_chips: frozenset[str] = frozenset()
    interruptible: bool | None = None
    purchases: frozenset[Purchase] | None = None
    owned: bool = True  # whether own machines may be used
    rented: bool = True
    edge: bool = True
    power_w: float | None = None  # most that one machine may draw
    requires: tuple[Required, ...] = ()
    quotas: tuple[Granted, ...] = ()  # of candidates, not of offers: see `quotas.py`
    default_quotas: bool = False  # whether what a provider grants unasked is a limit too
    durable: bool = False  # only offers that can be expected to be rented again next month
    committed_years: float = math.inf  # the longest term that may be promised
    price_days: float | None = None  # the oldest price

    @property
    def on_countries(self) -> bool:
        return self.countries is not None or bool(self.avoided_countries)

    def permits(self, region: Region) -> bool:
        """Whether the rules on countries allow to work there; nowhere that nobody knows."""
        if not self.on_countries:
            return True
        inside = self.countries is None or region.country in self.countries
        return region.country is not None and region.country not in self.avoided_countries and inside


@dataclass(frozen=True, slots=True)
class Refused:
    """A rule, how many offers it refused that no rule before had, and one of them."""

    rule: Rule
    offers: int
    example: str  # one of the offers, by name
    reason: Reason | None = None  # why the example is refused, where the rule alone does not say it


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the limits leave. Offers that only the market or the term of a promise keeps out are set aside: they are priced too,
    so that the plan can say what they would save."""

    offers: Index  # positions in the catalog's offers
    refused: tuple[Refused, ...]
    aside: Mapping[RuleKind, Index] = field(default_factory=dict)

    @property
    def priced(self) -> Index:
        """All that get a price."""
        return np.sort(np.concatenate([self.offers, *self.aside.values()])) if self.aside else self.offers


def allowed(fleet: Fleet, rules: Rules, prices: OfferPrices, among: Mask | None = None) -> Allowed:
    """Of all offers, or of those `among` them, the ones that every rule allows."""
    catalog, offers = fleet.catalog, fleet.catalog.offers
    machine = np.frombuffer(offers.machine, dtype=np.int32)
    region = np.frombuffer(offers.region, dtype=np.int32)
    purchase = np.frombuffer(offers.purchase, dtype=np.int8)
    verdict = np.frombuffer(offers.verdict, dtype=np.int8)
    mask = np.ones(len(offers), dtype=bool) if among is None else among.copy()
    refused: list[Refused] = []

    def rule(name: Rule, fine: Mask, reason: Callable[[int], Reason] | None = None) -> None:
        nonlocal mask
        removed = np.flatnonzero(mask & ~fine)
        if len(removed):
            first = int(removed[0])
            refused.append(
                Refused(name, len(removed), offer_title(catalog, first), reason(first) if reason is not None else None)
            )
            mask = mask & fine

    machines = catalog.machines
    rule(Rule(RuleKind.UNREAL), np.array([one not in NEVER_WIN for one in VERDICTS])[verdict])
    rule(Rule(RuleKind.RETIRED), ~np.array([one.retired for one in machines])[machine])
    rule(Rule(RuleKind.UNKNOWN_SPEED), (fleet.shape_of >= 0)[machine])
    for name, fine in _machine_rules(fleet, rules).items():
        rule(name, fine[machine])
    for requirement in rules.requires:
        lacks = [requirement.refusal(each) for each in machines]
        rule(
            Rule(RuleKind.REQUIRED, requirement.rule),
            np.array([each is None for each in lacks])[machine],
            lambda at, of=lacks: DoesNotRun(str(of[machine[at]])),  # type: ignore[misc]
        )
    for name, fine in _region_rules(catalog, rules).items():
        rule(name, fine[region])
    spot = np.array([one is Purchase.SPOT for one in PURCHASES])[purchase]
    if rules.interruptible is False:
        rule(Rule(RuleKind.INTERRUPTIBLE), ~spot)
    if rules.purchases is not None:
        wanted = rules.purchases
        rule(Rule(RuleKind.PURCHASE, " or ".join(sorted(wanted))), np.array([way in wanted for way in PURCHASES])[purchase])
    owned = np.array([one is Purchase.OWNED for one in PURCHASES])[purchase]
    if not rules.owned:
        rule(Rule(RuleKind.OWNED), ~owned)
    if not rules.rented:
        rule(Rule(RuleKind.RENTED), owned)
    if rules.price_days is not None:
        rule(Rule(RuleKind.PRICE_AGE, limit=rules.price_days), owned | (prices.days <= rules.price_days))
    terms = np.array([COMMITTED_YEARS.get(one, 0.0) for one in PURCHASES])[purchase] <= rules.committed_years
    lasting = np.ones(len(mask), dtype=bool)
    if rules.durable:
        sold = mask & terms & prices.durable
        lasting_at = {machines[at].provider for at in np.unique(machine[sold]).tolist()}
        named = frozenset(rules.providers or ()) - lasting_at  # who is named takes part, where nothing of his lasts with all
        lasting = prices.durable | np.array([one.provider in named for one in machines])[machine]
    aside = {RuleKind.MARKET: mask & ~lasting & terms, RuleKind.COMMITMENT: mask & lasting & ~terms}
    rule(Rule(RuleKind.MARKET), lasting)
    rule(Rule(RuleKind.COMMITMENT), terms)
    return Allowed(
        np.flatnonzero(mask), tuple(refused), {kind: np.flatnonzero(rows) for kind, rows in aside.items() if rows.any()}
    )


def lacks_own_machines(refused: Refused | None) -> bool:
    """Whether the last offers were refused because only own machines are asked for."""
    return refused is not None and refused.rule.kind is RuleKind.RENTED


def _machine_rules(fleet: Fleet, rules: Rules) -> dict[Rule, Mask]:
    machines = fleet.catalog.machines

    def by_machine(test: Callable[[str, str], bool]) -> Mask:
        return np.array([test(one.provider, one.chip or "") for one in machines])

    masks: dict[Rule, Mask] = {}
    if rules.providers is not None:
        wanted = rules.providers
        masks[Rule(RuleKind.CLOUD)] = by_machine(lambda provider, _: provider in wanted)
    if rules.avoided_providers:
        masks[Rule(RuleKind.AVOIDED_CLOUD)] = by_machine(lambda provider, _: provider not in rules.avoided_providers)
    if rules.chips is not None:
        chips = rules.chips
        masks[Rule(RuleKind.CHIP)] = by_machine(lambda _, chip: chip in chips)
    if rules.avoided_chips:
        masks[Rule(RuleKind.AVOIDED_CHIP)] = by_machine(lambda _, chip: chip not in rules.avoided_chips)
    for programme, providers in (rules.compliant or {}).items():
        masks[Rule(RuleKind.PROGRAMME, programme)] = by_machine(lambda provider, _, known=providers: provider in known)  # type: ignore[misc]
    if rules.power_w is not None:
        limit = rules.power_w
        drawn = [
            fleet.part(shape).power_w * fleet.shapes[shape].chips if shape >= 0 else 0.0 for shape in fleet.shape_of.tolist()
        ]
        masks[Rule(RuleKind.POWER, limit=limit)] = np.array(drawn) <= limit
    return masks


def _region_rules(catalog: Catalog, rules: Rules) -> dict[Rule, Mask]:
    regions = catalog.regions
    masks: dict[Rule, Mask] = {}
    if rules.regions is not None:
        wanted = rules.regions
        masks[Rule(RuleKind.REGION)] = np.array([one.key in wanted for one in regions])
    if rules.avoided_regions:
        masks[Rule(RuleKind.AVOIDED_REGION)] = np.array([one.key not in rules.avoided_regions for one in regions])
    if rules.on_countries:  # devices on site stand where their owner puts them
        masks[Rule(RuleKind.UNKNOWN_COUNTRY)] = np.array([one.on_site or one.country is not None for one in regions])
    if rules.countries is not None:
        inside = rules.countries
        masks[Rule(RuleKind.COUNTRY)] = np.array([one.on_site or one.country in inside for one in regions])
    if rules.avoided_countries:
        avoided = rules.avoided_countries
        masks[Rule(RuleKind.AVOIDED_COUNTRY)] = np.array([one.on_site or one.country not in avoided for one in regions])
    return masks


def offer_title(catalog: Catalog, offer: int) -> str:
    one = catalog.offers[offer]
    return f"{one.provider} {one.machine} in {readable(one.region)}, {one.purchase}"
