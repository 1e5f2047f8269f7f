"""Jobs that `limits.chip_count` makes late: how many chips would be in time, of every family and where nothing fits at all.

Rows of more chips than are allowed are not searched, so that the plan is made once more without the most; only where
something is late. Where the file states no most, more than `MOST_CHIPS` are searched if nothing smaller keeps a goal, and the
answer says where the search ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from chipwise.planner.counts import LARGEST_CHIPS
from chipwise.planner.fleet import MOST_CHIPS, family_of
from chipwise.planner.reasons.goals import MissesDeadline, MissesThroughput
from chipwise.planner.reasons.sizes import NeedsChips
from chipwise.planner.remedies import Ease
from chipwise.planner.values.plan import Loss, Missing, Obstacle, Plan, Rows
from chipwise.planner.values.trade import cost_time_curve
from chipwise.workload.common import Common

_NEAR = 0.75  # of the most chips that are tried: what reaches it might go beyond
_LATE = (MissesDeadline, MissesThroughput)


def with_chips_told(plan: Plan, work: Common, planned: Callable[[Common], Plan]) -> Plan:
    """The plan with chips named where more of them would keep the goals; `planned` plans a workload as this one was."""
    most = work.limits.chip_count.max
    if plan.per != "job" or plan.rows is None:
        return plan
    if most is None:
        return _larger(plan, work, planned)
    if plan.winner is None:
        late = any(isinstance(missing.reason, _LATE) for missing in plan.missing)
        needs = _fewest(planned(_without_most(work, ()))) if late else {}
        if not needs:
            return plan
        family = min(needs, key=lambda name: needs[name][0])
        chips, label = needs[family]
        return replace(plan, missing=(Missing(Obstacle.CHIPS, NeedsChips(chips, most), (Ease(),), label), *plan.missing))
    slow = {loss.family for loss in plan.losses if isinstance(loss.why, _LATE)}
    if not slow:
        return plan
    needs = _fewest(planned(_without_most(work, _chips_of(plan.rows, slow))))
    return replace(plan, losses=tuple(_told(loss, needs, most) if loss.family in slow else loss for loss in plan.losses))


def _larger(plan: Plan, work: Common, planned: Callable[[Common], Plan]) -> Plan:
    """Beyond the usual most, where nothing up to it is in time; otherwise that there is a bound, where it was reached."""
    if plan.winner is None:
        if not any(isinstance(missing.reason, _LATE) for missing in plan.missing):
            return plan
        wider = planned(_with_most(work, LARGEST_CHIPS))
        if wider.winner is None:
            return replace(plan, notes=(*plan.notes, f"Up to {LARGEST_CHIPS:,} chips were tried."))
        note = f"More than {MOST_CHIPS:,} chips were tried, since nothing up to them is in time."
        return replace(wider, notes=(*wider.notes, note))
    curve = cost_time_curve(plan.front)
    reached = any(one.chips * one.machines >= _NEAR * MOST_CHIPS for one in (plan.winner, *curve))
    note = f"Up to {MOST_CHIPS:,} chips were tried: limits.chip_count: {{max: {LARGEST_CHIPS}}} tries more."
    return replace(plan, notes=(*plan.notes, note)) if reached else plan


def _told(loss: Loss, needs: dict[str, tuple[int, str]], most: int) -> Loss:
    return replace(loss, why=NeedsChips(needs[loss.family][0], most)) if loss.family in needs else loss


def _without_most(work: Common, chips: Sequence[str]) -> Common:
    free = {"chips": tuple(chips) or work.limits.chips}
    return _with_most(work.model_copy(update={"limits": work.limits.model_copy(update=free)}), None)


def _with_most(work: Common, most: int | None) -> Common:
    limits = work.limits
    chip_count = limits.chip_count.model_copy(update={"max": most})
    return work.model_copy(update={"limits": limits.model_copy(update={"chip_count": chip_count})})


def _chips_of(rows: Rows, families: set[str]) -> list[str]:
    """The catalog's chips of these families that the limits allow."""
    fleet = rows.fleet
    shapes = np.unique(fleet.shape_of[rows.priced.machine]).tolist()
    return sorted({fleet.shapes[at].chip for at in shapes if family_of(fleet.part(at)) in families})


def _fewest(plan: Plan) -> dict[str, tuple[int, str]]:
    """By family the fewest chips that keep all goals, and their name."""
    rows = plan.rows
    if rows is None:
        return {}
    fleet, priced, good = rows.fleet, rows.priced, rows.ranked[: rows.kept]
    shape = fleet.shape_of[priced.machine[good]]
    chips = np.array([one.chips for one in fleet.shapes], dtype=np.float64)[shape] * priced.machines[good]
    fewest: dict[str, tuple[int, str]] = {}
    for place in np.argsort(chips, kind="stable").tolist():
        part = fleet.part(int(shape[place]))
        if family_of(part) not in fewest and rows.verdict(rows.choice(int(good[place]))) is None:
            fewest[family_of(part)] = (int(chips[place]), f"{chips[place]:g} x {part.name}")
    return fewest
