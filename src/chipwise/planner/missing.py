"""What stood in the way where nothing fits, and the smallest changes that would help: found by trying them.

Each change is searched anew with one thing eased (more chips, a lighter precision or method, one limit lifted) and told only if
something fits then. That costs another search or two, so it is done only when there is no plan. Deadlines, budgets and quotas
are told by `assembling`, which has the prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chipwise.perf.arrays import Array
from chipwise.perf.model import Model
from chipwise.planner.assemble import family_of
from chipwise.planner.fleet import MOST_CHIPS, Fleet, Index
from chipwise.planner.limits import Allowed, Rules, allowed, easing
from chipwise.planner.values.plan import Missing

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
    "without limits.where": {"owned": True, "rented": True},
    "without limits.power_watts": {"power_w": None},
    "without limits.requires": {"requires": ()},
}
_SOFT = ("fp32", "int8", "int4")  # every chip computes with them, by its own units or in another format
UNSTATED = "once the network between these machines is stated (`network` in a catalog file of your own)"


@dataclass(frozen=True)
class Searched:
    """Where a search looked: shapes of the fleet, the fewest and most chips."""

    fleet: Fleet
    model: Model
    shapes: Sequence[int]
    chips: tuple[int, int]

    def wider(self) -> Searched:
        return replace(self, chips=(self.chips[0], MOST_CHIPS))

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
    return Missing(
        "network",
        "every way needs several machines at once, and the network between those on offer is not stated or too slow",
        f"machines with a network, or these {UNSTATED}",
    )


def none_offered(ok: Allowed, rules: Rules, fleet: Fleet) -> list[Missing]:
    """No offer passed the limits. Each limit is lifted alone; where that does not help, the last to refuse is told."""
    if len(ok.offers):
        return []
    last = ok.refused[-1] if ok.refused else None
    told = f"no offer is left: the last {last.offers:,} were refused as {last.rule!r}" if last else "the catalog has no offer"
    helps = [own] if (own := easing(last)) else []
    for name, change in _EASED.items():
        if any(getattr(rules, field) != value for field, value in change.items()):
            left = len(allowed(fleet, replace(rules, **change)).offers)
            helps += [f"{name}, {left:,} offers are left"] if left else []
    return [Missing("offers", told, "; ".join(helps) or "two or more limits looser at once: no single one leaves an offer")]


def no_way(fleet: Fleet, shapes: Sequence[int], precisions: Sequence[str], chips: tuple[int, int]) -> list[Missing]:
    """There are offers and not one way to split the work: the arithmetic is not there, or the number of chips."""
    able = [at for at in shapes if any(one in _SOFT or fleet.part(at).has(one) for one in precisions)]
    asked = " or ".join(precisions)
    if not able:
        others = [one for one in ("bf16", "fp16", "fp8", "fp32") if one not in precisions]
        there = [one for one in others if any(fleet.part(at).has(one) for at in shapes)]
        names = ", ".join(sorted({fleet.shapes[at].part for at in shapes})[:3])
        told = f"none of the chips allowed ({names}) computes in {asked}"
        return [Missing("precision", told, " or ".join(f"precision: {one}" for one in there) or "other chips")]
    least = min((fleet.shapes[at].chips, fleet.shapes[at].part) for at in able)
    told = f"machines with {asked} come with {least[0]} {least[1]} at least, and {chips[0]} to {chips[1]} chips are allowed"
    if chips[0] <= least[0] <= chips[1]:
        return [
            Missing(
                "split",
                f"no split of {chips[0]} to {chips[1]} chips suits the model's heads, layers and batch",
                "another number of chips, or a larger batch",
            )
        ]
    return [Missing("chips", told, f"limits.chip_count of {least[0]}")]


def unable(
    fleet: Fleet, offered: Index, shape: Index, short: Array, beyond: Mapping[int, str] | None = None, trains: bool = False
) -> dict[str, str]:
    """Why families that are on offer have no way: no arithmetic of the asked kind, too little memory, too many replicas or
    chips (`beyond`, by shape), or no rate in time. Of a family's shapes the one that comes nearest is told."""
    found: dict[str, tuple[int, float, str]] = {}
    for at in offered.tolist():
        mine = short[shape == at]
        if not len(mine) and trains and not fleet.part(at).trains:
            why = (3, 0.0, "its software serves models and does not train them")
        elif not len(mine):
            why = (3, 0.0, "no arithmetic in the asked precision, or no split of that many chips")
        elif mine.min() > 0:
            why = (2, float(mine.min()), f"lacks {mine.min() / 1e9:.1f} GB of memory a chip at best")
        elif beyond and at in beyond:
            why = (0, 0.0, beyond[at])
        else:
            why = (1, 0.0, "keeps no latency goal at any rate")
        family = family_of(fleet.part(at))
        if family not in found or why[:2] < found[family][:2]:
            found[family] = why
    return {family: why for family, (_, _, why) in found.items()}
