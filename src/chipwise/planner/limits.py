"""Hard limits first: which offers a workload may use, and of every rule how much it took away.

Rules are applied one after the other to columns of offers; each says how many it refused and shows one of them. Names are
resolved before (`Rules`), so that nothing here knows how people spell a cloud.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import NEVER_WIN, PURCHASES, VERDICTS, Purchase
from chipwise.catalog.region import readable
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.reasons import DoesNotRun, Reason, Rule, RuleKind

Mask = NDArray[np.bool_]


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


@dataclass(frozen=True, slots=True)
class Refused:
    """A rule, how many offers it refused that no rule before had, and one of them."""

    rule: Rule
    offers: int
    example: str  # one of the offers, by name
    reason: Reason | None = None  # why the example is refused, where the rule alone does not say it


@dataclass(frozen=True, slots=True)
class Allowed:
    offers: Index  # positions in the catalog's offers
    refused: tuple[Refused, ...]


def allowed(fleet: Fleet, rules: Rules, among: Mask | None = None) -> Allowed:
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
    return Allowed(np.flatnonzero(mask), tuple(refused))


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
    if rules.countries is not None:
        inside = rules.countries
        masks[Rule(RuleKind.COUNTRY)] = np.array([one.country in inside for one in regions])
    if rules.avoided_countries:
        masks[Rule(RuleKind.AVOIDED_COUNTRY)] = np.array([one.country not in rules.avoided_countries for one in regions])
    return masks


def offer_title(catalog: Catalog, offer: int) -> str:
    one = catalog.offers[offer]
    return f"{one.provider} {one.machine} in {readable(one.region)}, {one.purchase}"
