"""What would help, in words."""

from __future__ import annotations

import math
from typing import assert_never

from chipwise.planner import remedies
from chipwise.planner.explain.reason_words import listed_few
from chipwise.planner.reasons import Reason, goals, limits, sizes
from chipwise.planner.values.plan import Missing
from chipwise.text import duration, number, usd


def remedy_words(missing: Missing) -> str:
    """The changes that would help."""
    text = " or ".join(_remedy(one, missing.reason) for one in missing.remedies)
    return f"{text}, with all of these changes at once" if missing.together else text


def _remedy(remedy: remedies.Remedy, reason: Reason) -> str:
    match remedy:
        case remedies.Ease():
            return eased(reason) or "a looser limit"
        case remedies.LiftLimit(change, offers):
            return f"{change} ({offers:,} offers are left then)"
        case remedies.AskProviders(providers):
            return f"confirmation from {listed_few(providers)}, with limits.compliance_unknown: warn until you have it"
        case remedies.OwnMachines():
            return "your own machines in the catalog (`chipwise catalog import servers.csv`)"
        case remedies.UsePrecision(precision):
            return f"precision: {precision}"
        case remedies.MoreChips(hardware, instead_of):
            return f"{hardware} instead of {instead_of}"
        case remedies.StateNetwork(hardware):
            return f"{hardware}, once the network between these machines is stated (`network` in a catalog file of your own)"
        case remedies.Lighter(change, hardware):
            return f"{change} ({hardware})"
        case remedies.Advice(change):
            return change
    assert_never(remedy)


def eased(reason: Reason) -> str:
    """The limit that a reason names, looser by what is missing; empty: no limit alone would help."""
    match reason:
        case goals.MissesDeadline(seconds, limit_s):
            return f"deadline {duration(seconds - limit_s)} later"
        case goals.TooFar(_, float() as seconds, _):
            return f"limits.round_trip: {math.ceil(seconds * 1e3)}ms"
        case goals.OwnsFewer(machines, owned):
            return f"{machines - owned} more machines of your own"
        case goals.MissesThroughput(rate, _, item):
            return f"a throughput of {number(rate, 4)} {item}s/s"
        case goals.OverBudget():
            return f"budget {usd(reason.usd - reason.limit_usd)}{reason.period} higher"
        case limits.StagesOverQuota(_, quota):
            return eased(quota)
        case limits.OverQuota(name, unit, needed, limit, own):
            if own:
                return f"your quota {number(needed - limit, 4)} higher: {number(needed, 4)} {name}"
            return f"an increase to {number(needed, 4)} {unit} of {name}, then limits.default_quotas: false"
        case sizes.NeedsChips(needed, allowed):
            return f"limits.chip_count.max of {needed} instead of {allowed}"
        case sizes.NeedsReplicas(needed, allowed):
            return f"replicas.max of {needed} instead of {allowed}"
        case sizes.NeedsReplicasAndChips():
            return f"replicas.max of {reason.replicas} and limits.chip_count.max of {reason.chips}"
        case goals.TooSlow(goal, seconds) | goals.NoNetworkPort(goal, seconds) if goal:
            return f"goals.{goal} above {duration(seconds)}"
        case _:
            return ""
