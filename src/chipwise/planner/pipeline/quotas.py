"""Quotas that several stages of a pipeline draw on at the same time, and what every candidate needs of them.

A quota is what an account is granted. The pipeline's own holds for all stages that can run at one time, together; one that only
stages name holds for those that name it, the largest where they differ. A provider's default counts for stages that ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.limits import Granted
from chipwise.planner.pipeline.beside import SharedQuota, crowds
from chipwise.planner.pipeline.hand_offs import Flow
from chipwise.planner.quotas import QuotaCheck, quota_checks
from chipwise.planner.rules import rules_of
from chipwise.planner.values.plan import Plan
from chipwise.workload.common import Common
from chipwise.workload.limits import Limits

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

_Key = tuple[object, ...]


@dataclass(slots=True)
class _Drawn:
    """One quota, and of the stages that it holds for what their candidates need of it."""

    first: QuotaCheck
    maximum: float
    needed: dict[int, Array] = field(default_factory=dict)


def shared_quotas(
    known: Known,
    limits: Limits,
    order: Sequence[Common],
    plans: Sequence[Plan],
    flows: Sequence[Flow],
    rows: Sequence[Index],
) -> tuple[tuple[SharedQuota, ...], list[Array]]:
    """(quotas that stages can exceed together, of every stage what its `rows` need of each)."""
    none = (), [np.zeros((len(one), 0)) for one in rows]
    if not any(stage.limits.quotas or stage.limits.default_quotas for stage in order):
        return none
    edges = [(flow.giver, flow.taker) for flow in flows]
    together = [one for one in crowds(len(order), edges, [plan.per == "month" for plan in plans]) if len(one) > 1]
    if not together:
        return none
    amounts = {_key(one): float(one.maximum) for one in rules_of(known, limits).quotas}
    draws = _drawn(known, order, plans, rows, amounts)
    shared, columns = [], []
    for draw in draws.values():
        subsets = {tuple(at for at in crowd if at in draw.needed) for crowd in together}
        able = tuple(
            sorted(crowd for crowd in subsets if sum(float(draw.needed[at].max(initial=0.0)) for at in crowd) > draw.maximum)
        )
        if able:
            shared.append(
                SharedQuota(
                    title=draw.first.title,
                    unit=draw.first.unit,
                    maximum=draw.maximum,
                    own=draw.first.own,
                    regional=not draw.first.own,
                    crowds=able,
                )
            )
            columns.append([draw.needed.get(at, np.zeros(len(mine))) for at, mine in enumerate(rows)])
    if not shared:
        return none
    return tuple(shared), [np.column_stack([column[at] for column in columns]) for at in range(len(order))]


def _drawn(
    known: Known, order: Sequence[Common], plans: Sequence[Plan], rows: Sequence[Index], amounts: dict[_Key, float]
) -> dict[_Key, _Drawn]:
    draws: dict[_Key, _Drawn] = {}
    for index, (stage, plan) in enumerate(zip(order, plans, strict=True)):
        if plan.rows is None:
            continue
        rules = rules_of(known, stage.limits)
        quotas = quota_checks(plan.rows.fleet, plan.rows.priced, rules)
        own = len(rules.quotas)
        keys: list[_Key] = [*map(_key, rules.quotas), *((one.title,) for one in quotas[own:])]
        for key, limit in zip(keys, quotas, strict=True):
            quota = draws.setdefault(key, _Drawn(limit, limit.maximum))
            quota.maximum = amounts.get(key, max(quota.maximum, limit.maximum))
            quota.needed[index] = limit.needed[rows[index]]
    return draws


def _key(one: Granted) -> _Key:
    """Two spellings of the same quota are one."""
    return one.chips, one.provider, one.regions
