"""How much may run at one time: quotas that a user has been granted, and what providers grant before anybody asks.

A quota holds for candidates, not for offers: one machine may be within it and four above. Chips of shared machines count by
their share, processors by sockets. Every quota that speaks of a candidate must hold, the wider one (`h100`) as much as the
narrower (`aws:us-east-1:h100`); what no quota names is not limited.

Defaults are rows of `data/tables/quotas.csv`, in the provider's own unit (vCPUs of P instances, GPUs of a region). Most are 0
and raised on request, so they are told and refuse nothing, unless `limits.default_quotas` asks for it. A default that nobody
states is told as such and never refuses. Reserved machines start under the on-demand quota; owned ones under none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.catalog.tables import Quota
from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Fleet
from chipwise.planner.limits import Granted, Mask, Refused, Rules, offer_title
from chipwise.planner.pricing import Priced
from chipwise.planner.reasons.limits import OverQuota, Rule, RuleKind
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan, Turn
from chipwise.spelling import fold

_BOUGHT = {  # as the table has it
    "on-demand": frozenset({Purchase.ON_DEMAND}),
    "spot": frozenset({Purchase.SPOT}),
    "reserved": frozenset(Purchase) - {Purchase.OWNED, Purchase.SPOT, Purchase.ON_DEMAND},
}


@dataclass(frozen=True)
class QuotaCheck:
    """One quota against all candidates: what each needs of it; 0 where it does not speak of them."""

    title: str  # "h100 at aws us-east-1"; of a provider's default its name
    unit: str
    maximum: float
    needed: Array
    own: bool  # the user's; else what the provider grants unasked

    @property
    def fine(self) -> Mask:
        found: Mask = self.needed <= self.maximum
        return found

    def miss(self, needed: float) -> OverQuota:
        return OverQuota(name=self.title, unit=self.unit, needed=needed, limit=self.maximum, own=self.own)


def chips_of(fleet: Fleet) -> Array:
    """Whole chips of every machine; of a slice its share, of a processor the sockets."""
    per_shape = np.array([one.chips * one.share for one in fleet.shapes] + [0.0])
    return np.asarray(per_shape[fleet.shape_of])


def quota_checks(fleet: Fleet, priced: Priced, rules: Rules) -> list[QuotaCheck]:
    """Every quota that must be kept, against every candidate."""
    if not rules.quotas and not rules.default_quotas:
        return []
    chips = chips_of(fleet)[priced.machine] * priced.machines
    quotas = [
        QuotaCheck(
            title=quota.title,
            unit="chips",
            maximum=float(quota.maximum),
            needed=np.where(_spoken(fleet, priced, quota), chips, 0.0),
            own=True,
        )
        for quota in rules.quotas
    ]
    if rules.default_quotas:
        catalog = fleet.catalog
        vcpus = np.array([one.vcpus or 0.0 for one in catalog.machines])[priced.machine] * priced.machines
        for default in defaults(catalog):
            if default.maximum is not None:
                covered = np.array([default.speaks_of(catalog, one) for one in catalog.machines], dtype=bool)
                counted = covered[priced.machine] & default.purchases[priced.purchase]
                needed = np.where(counted, vcpus if default.by_vcpu else chips, 0.0)
                quotas.append(
                    QuotaCheck(
                        title=f"{default.row.provider} {default.row.name}",
                        unit=default.row.unit,
                        maximum=default.maximum,
                        needed=needed,
                        own=False,
                    )
                )
    return quotas


def _spoken(fleet: Fleet, priced: Priced, quota: Granted) -> Mask:
    machines = fleet.catalog.machines
    matching = np.array([m.chip in quota.chips and quota.provider in (None, m.provider) for m in machines])[priced.machine]
    if quota.regions is None:
        return np.asarray(matching)
    return np.asarray(matching & np.array([region.key in quota.regions for region in fleet.catalog.regions])[priced.region])


def refused(fleet: Fleet, priced: Priced, quotas: Sequence[QuotaCheck]) -> tuple[Refused, ...]:
    """Of each quota: offers of which no number of machines is within it, and offers of which the larger numbers are not."""
    refusals = []
    allowed = np.ones(len(priced), dtype=bool)
    size = len(fleet.catalog.offers)
    for quota in quotas:
        excess, allowed = allowed & ~quota.fine, allowed & quota.fine
        if not excess.any():
            continue
        touched, left = (np.bincount(priced.offer[mask], minlength=size) > 0 for mask in (excess, allowed))
        name = quota.title if quota.own else f"{quota.unit} of {quota.title}"
        for kind, offers in ((RuleKind.QUOTA, touched & ~left), (RuleKind.QUOTA_MORE, touched & left)):
            if offers.any():
                rows = np.flatnonzero(excess & offers[priced.offer])
                row = int(rows[np.argmin(quota.needed[rows])])
                count = f"{priced.machines[row]:g} x " if priced.machines[row] > 1 else ""
                example = f"{count}{offer_title(fleet.catalog, int(priced.offer[row]))}"
                rule = Rule(kind, name, quota.maximum, quota.own)
                refusals.append(Refused(rule, int(np.count_nonzero(offers)), example, quota.miss(float(quota.needed[row]))))
    return tuple(refusals)


def above(fleet: Fleet, choice: Choice, rules: Rules) -> OverQuota | None:
    """Which quota a choice breaks; None: none."""
    index = fleet.catalog.machine_index.get((choice.provider, choice.machine))
    if index is None:
        return None
    chips = float(chips_of(fleet)[index]) * choice.machines if rules.quotas else 0.0
    for quota in rules.quotas:
        same_chip = fleet.catalog.machines[index].chip in quota.chips and quota.provider in (None, choice.provider)
        same_region = quota.regions is None or (choice.provider, choice.region) in quota.regions
        if same_chip and same_region and chips > quota.maximum:
            return OverQuota(name=quota.title, unit="chips", needed=chips, limit=float(quota.maximum), own=True)
    for default in defaults(fleet.catalog) if rules.default_quotas else ():
        needed = default.needed(fleet.catalog, choice)
        if needed is not None and default.maximum is not None and needed > default.maximum:
            row = default.row
            return OverQuota(name=f"{row.provider} {row.name}", unit=row.unit, needed=needed, limit=default.maximum, own=False)
    return None


# -- what providers grant unasked


@dataclass(frozen=True)
class Default:
    """A row of the table, and what it speaks of."""

    row: Quota
    maximum: float | None  # None: nobody states it
    by_vcpu: bool  # else by chip
    purchases: Mask

    @property
    def unit(self) -> str:
        return "vCPUs" if self.by_vcpu else "chips"

    def speaks_of(self, catalog: Catalog, machine: Machine) -> bool:
        return machine.provider == self.row.provider and _names(self.row, machine, catalog)

    def needed(self, catalog: Catalog, choice: Choice) -> float | None:
        """Of a choice, in the quota's unit; None: it does not speak of it, or the machine's vCPUs are not stated."""
        index = catalog.machine_index.get((choice.provider, choice.machine))
        if index is None or not self.purchases[PURCHASES.index(Purchase(choice.purchase))]:
            return None
        machine = catalog.machines[index]
        if not self.speaks_of(catalog, machine):
            return None
        amount = machine.vcpus if self.by_vcpu else machine.chips
        return None if amount is None else amount * choice.machines


def defaults(catalog: Catalog) -> list[Default]:
    """Those of machines; what serverless services grant is not for machines."""
    quotas = []
    for row in catalog.rows("quotas"):
        if row.counts:
            limit = float(row.default) if re.fullmatch(r"\d+(?:\.\d+)?", row.default) else None
            bought = frozenset[Purchase]().union(*(_BOUGHT[name] for name in row.purchases.split("|")))
            quotas.append(Default(row, limit, row.counts == "vcpu", np.array([one in bought for one in PURCHASES])))
    return quotas


def _names(row: Quota, machine: Machine, catalog: Catalog) -> bool:
    """Whether a quota's families name a machine, in each provider's own way."""
    match row.provider:
        case "aws":
            return _of_ec2(row.families.split(), machine.name)
        case "gcp":
            family = row.families.split()[0]
            chip = catalog.chips.get(machine.chip or "")
            return (chip is not None and chip.kind.value == "tpu") if family == "tpu" else machine.name.startswith(f"{family}-")
        case "azure":
            if row.families == "all":
                return True
            family = fold(row.families.partition(" (")[0])
            return fold(re.sub(r"(?<=[A-Z])\d+", "", machine.name.removeprefix("Standard_"))).startswith(family)
    return False


def _of_ec2(families: Sequence[str], name: str) -> bool:
    """p5en is of p5 and gr6f of gr6: letters behind the generation are attributes. Standard classes go by letter (c, m, r)."""
    matched = re.match(r"([a-z]+)(\d+)([a-z]*)", name)
    if matched is None:
        return False
    letters, generation, attributes = matched.groups()
    own = {letters, letters + generation, *(letters + generation + attributes[:end] for end in range(1, len(attributes) + 1))}
    return bool(own & set(families))


def with_quota_notes(plan: Plan, rules: Rules) -> Plan:
    """With what quotas refused, and what must be asked for before the choices can be started."""
    if plan.rows is None:
        return plan
    fleet, priced = plan.rows.fleet, plan.rows.priced
    removed = refused(fleet, priced, quota_checks(fleet, priced, rules))
    asks = _to_ask(fleet.catalog, plan.choices[:1])
    turns = tuple(Turn("quota", _sentence(default, needed)) for _, default, needed in asks)
    return replace(plan, refused=(*plan.refused, *removed), turns=(*plan.turns, *turns))


def raises(plan: Plan) -> list[tuple[Default, float]]:
    """What must be asked for before the answer can be started, or looked up: the quota, and what is needed of it."""
    if plan.rows is None:
        return []
    return [(default, needed) for _, default, needed in _to_ask(plan.rows.fleet.catalog, plan.choices[:1])]


def notes(plan: Plan, top: int | None = None) -> list[str]:
    """What the choices that are shown would need of quotas, beside the first, whose quota is one of the plan's turns."""
    if plan.rows is None:
        return []
    return _other_choices(list(_to_ask(plan.rows.fleet.catalog, plan.choices[:top])))


def _to_ask(catalog: Catalog, choices: Sequence[Choice]) -> Iterator[tuple[int, Default, float]]:
    """(rank, quota, what the choice needs of it), where that is more than the default or the default is not known."""
    rows = defaults(catalog) if choices else []
    for rank, choice in enumerate(choices, start=1):
        for default in rows:
            needed = default.needed(catalog, choice)
            if needed is not None and (default.maximum is None or needed > default.maximum):
                yield rank, default, needed


def _sentence(default: Default, needed: float) -> str:
    row = default.row
    need = f"{row.provider}: {row.name}: {needed:,g} {default.unit} needed"
    code = f" ({row.code})" if row.code and row.code != row.name else ""
    if default.maximum is None:
        return f"{need}; its default is not known here: look it up{code} first"
    return f"{need}, default {default.maximum:g}; request an increase{code} first"


def _other_choices(asks: Sequence[tuple[int, Default, float]]) -> list[str]:
    """One line per quota for the choices behind the first; what the first needs is told with it."""
    groups: dict[str, dict[float, list[int]]] = {}
    quotas: dict[str, Default] = {}
    for rank, default, needed in asks:
        if rank > 1 and default.maximum is not None:
            quotas[default.row.name] = default
            groups.setdefault(default.row.name, {}).setdefault(needed, []).append(rank)
    lines = []
    for name, amounts in groups.items():
        unit, maximum = quotas[name].unit, quotas[name].maximum
        needs = ", ".join(f"{needed:,g} {unit} for choice {_ranks(ranks)}" for needed, ranks in amounts.items())
        lines.append(f"The default quota of {quotas[name].row.provider} {name} is {maximum:g} {unit}; needed are {needs}.")
    return lines


def _ranks(ranks: Sequence[int]) -> str:
    told = " and ".join(map(str, ranks)) if len(ranks) <= 2 else ", ".join(map(str, ranks[:5]))
    return told if len(ranks) <= 5 else f"{told} and {len(ranks) - 5} more"
