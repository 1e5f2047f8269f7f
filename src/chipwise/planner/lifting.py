"""A workload's limits without some of them: what would be possible if a limit were not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chipwise.planner.reasons.limits import RuleKind
from chipwise.workload.common import Common
from chipwise.workload.goals import Commit, MarketScope

_PLACES = {"countries": (), "residency": (), "compliance": ()}
_STATED: Mapping[RuleKind, Mapping[str, Any]] = {  # by rule: the fields of limits that lift it
    RuleKind.CLOUD: {"clouds": ()},
    RuleKind.CHIP: {"chips": ()},
    RuleKind.REGION: {"regions": ()},
    RuleKind.COUNTRY: _PLACES | {"regions": ()},
    RuleKind.UNKNOWN_COUNTRY: _PLACES | {"regions": ()},
    RuleKind.PROGRAMME: {"compliance": ()},
    RuleKind.PURCHASE: {"purchase": ()},
    RuleKind.PRICE_AGE: {"max_price_age": None},
    RuleKind.POWER: {"power_watts": None},
    RuleKind.OWNED: {"where": ()},
    RuleKind.RENTED: {"where": ()},
}
_AVOIDED = {
    RuleKind.AVOIDED_CLOUD: "clouds",
    RuleKind.AVOIDED_CHIP: "chips",
    RuleKind.AVOIDED_REGION: "regions",
    RuleKind.AVOIDED_COUNTRY: "countries",
}
_DEFAULTS: Mapping[RuleKind, Mapping[str, Any]] = {  # that nobody need have asked for: lifted where nothing else is
    RuleKind.INTERRUPTIBLE: {"interruptible": True},
    RuleKind.MARKET: {"market": MarketScope.ANY},
    RuleKind.COMMITMENT: {"commit": Commit.ANY},
}


def without_limits(work: Common, kinds: Iterable[RuleKind]) -> Common | None:
    """The workload without the limits behind `kinds`; None where none of them is a limit that can be lifted."""
    refusing = set(kinds)
    avoided = [field for kind, field in _AVOIDED.items() if kind in refusing]
    changes: dict[str, Any] = {}
    for kind, fields in _STATED.items():
        changes |= fields if kind in refusing else {}
    if avoided:
        changes["avoid"] = work.limits.avoid.model_copy(update=dict.fromkeys(avoided, ()))
    if not changes:
        for kind, fields in _DEFAULTS.items():
            changes |= fields if kind in refusing else {}
    return work.model_copy(update={"limits": work.limits.model_copy(update=changes)}) if changes else None
