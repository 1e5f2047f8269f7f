"""What stood in the way of serving where nothing fits or a family has no way, and the smallest changes that would help.

A limit on chips hides ways: rows of more chips are not searched. So what a family needs is looked up in a search without
that limit, over the shapes of families that have no way within it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.assemble import family_of
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.generation import search as generation
from chipwise.planner.generation.search import Serving, ServingJob
from chipwise.planner.limits import Refused, shown
from chipwise.planner.missing import Searched, no_way
from chipwise.planner.reasons import (
    LacksMemory,
    NeedsChips,
    NeedsNetwork,
    NeedsReplicas,
    NeedsReplicasAndChips,
    NoPrecision,
    NoRate,
    NoSplit,
    OneAtATime,
    Reason,
    Rule,
    RuleKind,
    TooSlow,
)
from chipwise.planner.remedies import Advice, Ease, Lighter, MoreChips, Remedy, StateNetwork
from chipwise.planner.values.plan import Missing, Obstacle

_LIGHTER_WEIGHTS = ("fp8", "int8", "int4")
_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "fp4": 4, "int4": 4}
_OBSTACLES = {
    NeedsChips: Obstacle.CHIPS,
    NeedsReplicas: Obstacle.REPLICAS,
    NeedsReplicasAndChips: Obstacle.REPLICAS_AND_CHIPS,
}


# -- families without a way


def unable(job: ServingJob, rows: Serving, looked: Searched) -> dict[str, Reason]:
    """Why families that are on offer have no way within the limits, each by the way that comes nearest."""
    fleet = looked.fleet
    family = {at: family_of(fleet.part(at)) for at in looked.shapes}
    able = {family[at] for at in rows.shape[rows.rate > 0].tolist()}
    closed = [at for at in looked.shapes if family[at] not in able]
    if not closed:
        return {}
    wide = _without_chip_limit(job, rows, replace(looked, shapes=closed))
    names = {name: code for code, name in enumerate(dict.fromkeys(family[at] for at in closed))}
    group = np.array([names.get(family[at], -1) for at in wide.shape.tolist()], dtype=np.intp)
    slow = _slowness(job, wide, looked, np.flatnonzero((wide.fits > 0) & (wide.alone <= 0) & (group >= 0)))
    return {
        name: _nearest(
            job, wide, replace(looked, shapes=[at for at in closed if family[at] == name]), np.flatnonzero(group == code), slow
        )
        for name, code in names.items()
    }


def reason_of(job: ServingJob, looked: Searched) -> Reason:
    """Why the shapes of `looked` have no candidate, by the way that comes nearest."""
    wide = looked.wider()
    rows = generation.search(job, wide.fleet, wide.model, wide.shapes, wide.chips)
    within = (rows.alone > 0) & (_chips(rows, looked.fleet) <= looked.chips[1]) & (rows.replicas <= job.most_replicas)
    if within.any():  # it would do, were its machines joined
        return NeedsNetwork(int(rows.machines[within].min()))
    slow = _slowness(job, rows, looked, np.flatnonzero((rows.fits > 0) & (rows.alone <= 0)))
    return _nearest(job, rows, looked, np.arange(len(rows.shape)), slow)


def _without_chip_limit(job: ServingJob, rows: Serving, looked: Searched) -> Serving:
    if not looked.bound:
        return rows
    wide = looked.wider()
    return generation.search(job, wide.fleet, wide.model, wide.shapes, wide.chips)


def _nearest(job: ServingJob, rows: Serving, looked: Searched, mine: Index, slow: Mapping[int, TooSlow]) -> Reason:
    if not len(mine):
        has = any(generation.runs(looked.fleet.part(at), one) for at in looked.shapes for one in job.precisions)
        return NoSplit(*looked.chips) if has else NoPrecision(job.precisions)
    if (rows.alone[mine] > 0).any():
        return next(_needs(job, rows, looked, mine[rows.alone[mine] > 0]))[1]
    fitting = mine[rows.fits[mine] > 0]
    if len(fitting):
        return min((slow[at] for at in fitting.tolist() if at in slow), key=_excess, default=TooSlow())
    return LacksMemory(float(rows.short[mine].min()))


def _needs(job: ServingJob, rows: Serving, looked: Searched, able: Index) -> Iterator[tuple[int, Reason]]:
    """Rows that keep the goals with more chips or replicas than are allowed: the fewest of each, the smaller change first."""
    chips = _chips(rows, looked.fleet)
    most = looked.chips[1]
    many, large = rows.replicas > job.most_replicas, chips > most
    found: list[tuple[float, int, Reason]] = []
    if len(some := able[large[able] & ~many[able]]):
        at = int(some[np.argmin(chips[some])])
        found.append((chips[at] / most, at, NeedsChips(int(chips[at]), most)))
    if len(some := able[many[able] & ~large[able]]):
        at = int(some[np.argmin(rows.replicas[some])])
        needed = NeedsReplicas(int(rows.replicas[at]), int(job.most_replicas))
        found.append((needed.needed / needed.allowed, at, needed))
    if not found:
        at = int(able[np.lexsort((rows.replicas[able], chips[able]))[0]])
        both = NeedsReplicasAndChips(int(rows.replicas[at]), int(job.most_replicas), int(chips[at]), most)
        found.append((0.0, at, both))
    yield from ((at, reason) for _, at, reason in sorted(found, key=lambda one: one[0]))


def _chips(rows: Serving, fleet: Fleet) -> Array:
    return np.asarray(rows.machines * np.array([float(one.chips) for one in fleet.shapes])[rows.shape])


def _slowness(job: ServingJob, rows: Serving, looked: Searched, slow: Index) -> dict[int, TooSlow]:
    """Of rows that keep the goals at no rate: what a request alone takes, by the goal that is missed most."""
    if not job.goals or not len(slow):
        return {}
    _, first = np.unique(
        np.stack(
            [
                np.array([one.part for one in looked.fleet.shapes])[rows.shape[slow]],
                rows.precision.index[slow].astype(str),
                rows.tp[slow].astype(str),
                rows.pp[slow].astype(str),
            ]
        ),
        axis=1,
        return_index=True,
    )
    some = slow[np.sort(first)]
    took = generation.lone(job, looked.fleet, looked.model, rows, some)
    return {
        at: max((TooSlow(_goal(*goal), float(seconds[place]), job.goals[goal]) for goal, seconds in took.items()), key=_excess)
        for place, at in enumerate(some.tolist())
    }


def _excess(slow: TooSlow) -> float:
    return slow.seconds / slow.limit_s if slow.limit_s else np.inf


def _goal(name: str, share: float) -> str:
    return f"{name} p{share * 100:g}"


def refused_replicas(fleet: Fleet, offers: Index, rows: Serving, job: ServingJob) -> tuple[Refused, ...]:
    """Offers of shapes that keep the goals with more replicas than are allowed only."""
    fewest: dict[int, float] = {}
    for at in np.flatnonzero(rows.alone > 0).tolist():
        fewest[int(rows.shape[at])] = min(float(rows.replicas[at]), fewest.get(int(rows.shape[at]), np.inf))
    many = {at: count for at, count in fewest.items() if count > job.most_replicas}
    if not many:
        return ()
    shape = fleet.shape_of[np.frombuffer(fleet.catalog.offers.machine, dtype=np.int32)[offers]]
    gone = np.flatnonzero(np.isin(shape, list(many)))
    if not len(gone):
        return ()
    first = int(gone[0])
    needed = NeedsReplicas(int(many[int(shape[first])]), int(job.most_replicas))
    rule = Rule(RuleKind.REPLICAS, limit=job.most_replicas)
    return (Refused(rule, len(gone), shown(fleet.catalog, int(offers[first])), needed),)


# -- nothing fits at all


def limits_of_serving(job: ServingJob, rows: Serving, looked: Searched) -> list[Missing]:
    """Empty where some row may be priced."""
    if (rows.rate > 0).any():
        return []
    wide = _without_chip_limit(job, rows, looked)
    if len(rows.shape) and not (rows.fits > 0).any():
        return [_memory_of_serving(job, rows, wide, looked)]
    if (wide.alone > 0).any():
        able = np.flatnonzero(wide.alone > 0)
        return [
            Missing(_OBSTACLES[type(reason)], reason, (Ease(),), _replica(wide, at, looked))
            for at, reason in _needs(job, wide, looked, able)
        ]
    return _latency_of(job, rows, looked) if len(rows.shape) else no_way(looked, job.precisions)


def _memory_of_serving(job: ServingJob, rows: Serving, wide: Serving, looked: Searched) -> Missing:
    at = int(np.argmin(rows.short))
    helps: list[Remedy] = []
    if looked.bound and (more := _enough_chips(job, wide, looked) or _first_fit(job, looked.wider())):
        helps.append(MoreChips(more, looked.chips[1]))
    elif more := _first_fit(job, looked.joined()):
        helps.append(StateNetwork(more))
    least = min((_BITS.get(one, 16) for one in job.precisions), default=16)
    for precision in _LIGHTER_WEIGHTS:
        if _BITS[precision] < least and (more := _first_fit(replace(job, precisions=(precision,)), looked)):
            helps.append(Lighter(f"{precision} weights", more))
            break
    if job.longest > job.input_len + job.output_len and (more := _first_fit(replace(job, longest=0.0), looked)):
        helps.append(Lighter(f"a context of {job.input_len + job.output_len:g} tokens", more))
    remedies = tuple(helps) or (Advice("a smaller model: more chips and 4-bit weights were tried"),)
    return Missing(Obstacle.MEMORY, LacksMemory(float(rows.short[at])), remedies, _replica(rows, at, looked))


def _enough_chips(job: ServingJob, wide: Serving, looked: Searched) -> str:
    """The fewest chips with which the goals are kept; empty: no number of chips does it."""
    able = np.flatnonzero((wide.alone > 0) & (wide.replicas <= job.most_replicas))
    if not len(able):
        return ""
    chips = _chips(wide, looked.fleet)
    at = int(able[np.argmin(chips[able])])
    return f"{chips[at]:g} x {looked.fleet.shapes[wide.shape[at]].part}"


def _first_fit(job: ServingJob, looked: Searched) -> str:
    """The narrowest replica that fits; empty: none does. Goals are left aside: they come after memory."""
    rows = generation.search(replace(job, goals={}), looked.fleet, looked.model, looked.shapes, looked.chips)
    fine = np.flatnonzero(rows.fits > 0)
    if not len(fine):
        return ""
    at = int(fine[np.argmin((rows.tp * rows.pp)[fine])])
    return f"{rows.tp[at] * rows.pp[at]:g} x {looked.fleet.shapes[rows.shape[at]].part}"


def _latency_of(job: ServingJob, rows: Serving, looked: Searched) -> list[Missing]:
    """Not even a request alone is answered in time: how near the fastest comes."""
    fitting = np.flatnonzero(rows.fits > 0)
    took = generation.lone(job, looked.fleet, looked.model, rows, fitting)
    if not took:
        return [Missing(Obstacle.THROUGHPUT, NoRate(), (Advice("a smaller model"),))]
    excess = np.max([seconds / job.goals[goal] for goal, seconds in took.items()], axis=0)
    at = int(np.argmin(excess))
    nearest = _replica(rows, int(fitting[at]), looked)
    missed = [
        TooSlow(_goal(*goal), float(seconds[at]), job.goals[goal])
        for goal, seconds in took.items()
        if seconds[at] > job.goals[goal]
    ]
    if not missed:
        stated = tuple((_goal(*goal), limit) for goal, limit in job.goals.items())
        return [Missing(Obstacle.LATENCY, OneAtATime(stated), (Advice("a looser goal"),), nearest)]
    return [Missing(Obstacle.LATENCY, reason, (Ease(),), nearest, len(missed) > 1) for reason in missed]


def _replica(rows: Serving, at: int, looked: Searched) -> str:
    part = looked.fleet.shapes[rows.shape[at]].part
    return f"{rows.tp[at] * rows.pp[at]:g} x {part} in {rows.precision.name_at(at)}"
