"""What stood in the way where nothing fits, and the smallest changes that would help: found by trying them.

Each change is searched anew with one thing eased (more chips, a lighter precision or method, one limit lifted) and told only if
something fits then. That costs another search or two, so it is done only when there is no plan. Deadlines, budgets and quotas
are told by `assemble`, which has the prices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chipwise.perf.model import Model
from chipwise.planner.fleet import MOST_CHIPS, Fleet
from chipwise.planner.limits import Allowed, Refused, Rules, allowed, lacks_own_machines
from chipwise.planner.offer_prices import OfferPrices
from chipwise.planner.reasons.abilities import NoPrecision
from chipwise.planner.reasons.limits import NoComplianceData, NoOfferLeft
from chipwise.planner.reasons.sizes import NeedsChips, NeedsNetwork, NoSplit
from chipwise.planner.remedies import Advice, AskProviders, Ease, LiftLimit, OwnMachines, Remedy, StateNetwork, UsePrecision
from chipwise.planner.values.plan import Missing, Obstacle

_EASED: Mapping[str, Mapping[str, Any]] = {  # by what is said: the fields that lift a limit
    "without limits.clouds": {"providers": None},
    "without limits.avoid.clouds": {"avoided_providers": frozenset()},
    "without limits.regions": {"regions": None},
    "without limits.avoid.regions": {"avoided_regions": frozenset()},
    "without limits.countries, residency or gdpr": {"countries": None},
    "without limits.avoid.countries": {"avoided_countries": frozenset()},
    "without limits.compliance": {"compliant": None},
    "without limits.chips": {"chips": None},
    "without limits.avoid.chips": {"avoided_chips": frozenset()},
    "with limits.interruptible: true": {"interruptible": None},
    "without limits.purchase": {"purchases": None},
    "with limits.market: any": {"durable": False},
    "with limits.commit: any": {"committed_years": math.inf},
    "without limits.max_price_age": {"price_days": None},
    "without limits.where": {"owned": True, "rented": True},
    "without limits.power_watts": {"power_w": None},
    "without limits.requires": {"requires": ()},
}
_SOFT = ("fp32", "int8", "int4")  # every chip computes with them, by its own units or in another format


@dataclass(frozen=True)
class Searched:
    """Where a search looked: shapes of the fleet, the fewest and most chips."""

    fleet: Fleet
    model: Model
    shapes: Sequence[int]
    chips: tuple[int, int]

    def wider(self) -> Searched:
        return replace(self, chips=(self.chips[0], max(self.chips[1], MOST_CHIPS)))

    def joined(self) -> Searched:
        """With machines joined whose network nobody states."""
        return replace(self, fleet=self.fleet.as_if_joined())

    @property
    def bound(self) -> bool:
        """Whether a limit on chips is what could be eased."""
        return self.chips[1] < MOST_CHIPS

    def name(self, shape: int, machines: float) -> str:
        return f"{machines * self.fleet.shapes[shape].chips:g} x {self.fleet.shapes[shape].part}"


def not_joined() -> Missing:
    """Every way needs several machines at once, and none of the offers that are left can be joined."""
    return Missing(Obstacle.NETWORK, NeedsNetwork(), (Advice("machines with a network"), StateNetwork("these")))


def none_offered(ok: Allowed, rules: Rules, fleet: Fleet, prices: OfferPrices) -> list[Missing]:
    """No offer passed the limits. Each limit is lifted alone; where that does not help, the last to refuse is named."""
    if len(ok.offers):
        return []
    if (silent := missing_data(rules, fleet, prices)) is not None:
        return [silent]
    last = ok.refused[-1] if ok.refused else None
    helps: list[Remedy] = [OwnMachines()] if lacks_own_machines(last) else []
    for name, change in _EASED.items():
        if any(getattr(rules, field) != value for field, value in change.items()):
            left = len(allowed(fleet, replace(rules, **change), prices).offers)
            helps += [LiftLimit(name, left)] if left else []
    remedies = tuple(helps) or (Advice("two or more limits looser at once: no single one leaves an offer"),)
    return [Missing(Obstacle.OFFERS, no_offer_left(last), remedies)]


def missing_data(rules: Rules, fleet: Fleet, prices: OfferPrices) -> Missing | None:
    """Where only limits.compliance stands in the way: data is missing, which is not the same as nothing that fits."""
    if not rules.compliant:
        return None
    offers = allowed(fleet, replace(rules, compliant=None), prices).offers
    if not len(offers):
        return None
    catalog = fleet.catalog
    machines = np.unique(np.frombuffer(catalog.offers.machine, dtype=np.int32)[offers])
    providers = tuple(dict.fromkeys(catalog.machines[at].provider for at in machines.tolist()))
    programmes = tuple(name for name, known in rules.compliant.items() if not known.issuperset(providers))
    both = frozenset.intersection(*(rules.compliant[name] for name in programmes)) if programmes else frozenset[str]()
    reason = NoComplianceData(programmes, providers, tuple(sorted(both)))
    return Missing(Obstacle.COMPLIANCE, reason, (AskProviders(providers),))


def no_offer_left(last: Refused | None) -> NoOfferLeft:
    return NoOfferLeft(None) if last is None else NoOfferLeft(last.rule, last.offers)


def no_way(searched: Searched, precisions: Sequence[str]) -> list[Missing]:
    """There are offers and not one way to split the work: the arithmetic is not there, or the number of chips."""
    fleet, shapes, chips = searched.fleet, searched.shapes, searched.chips
    able = [at for at in shapes if any(one in _SOFT or fleet.part(at).has(one) for one in precisions)]
    if not able:
        rest = [one for one in ("bf16", "fp16", "fp8", "fp32") if one not in precisions]
        usable = [one for one in rest if any(fleet.part(at).has(one) for at in shapes)]
        names = ", ".join(sorted({fleet.shapes[at].part for at in shapes})[:3])
        helps = tuple(UsePrecision(one) for one in usable) or (Advice("other chips"),)
        return [Missing(Obstacle.PRECISION, NoPrecision(tuple(precisions), chip=names), helps)]
    smallest = min((fleet.shapes[at].chips, fleet.shapes[at].part) for at in able)
    if chips[0] <= smallest[0] <= chips[1]:
        return [Missing(Obstacle.SPLIT, NoSplit(*chips), (Advice("another number of chips, or a larger batch"),))]
    return [
        Missing(Obstacle.CHIPS, NeedsChips(smallest[0], chips[1]), (Ease(),), f"a machine with {smallest[0]} {smallest[1]}")
    ]
