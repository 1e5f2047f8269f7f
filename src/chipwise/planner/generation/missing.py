"""What stood in the way of serving where nothing fits or a family has no way, and the smallest changes that would help.

A limit on chips hides ways: rows of more chips are not searched. So what a family needs is looked up in a search without
that limit, over the shapes of families that have no way within it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.generation import search as generation
from chipwise.planner.generation.job import ServingJob, runs
from chipwise.planner.generation.loaded import lone
from chipwise.planner.generation.search import Serving
from chipwise.planner.limits import Refused, offer_title
from chipwise.planner.missing import Searched, no_way
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import NoPrecision
from chipwise.planner.reasons.goals import NoRate, OneAtATime, TooSlow
from chipwise.planner.reasons.limits import Rule, RuleKind
from chipwise.planner.reasons.sizes import LacksMemory, NeedsChips, NeedsNetwork, NeedsReplicas, NeedsReplicasAndChips, NoSplit
from chipwise.planner.remedies import Advice, Ease, Lighter, MoreChips, Remedy, StateNetwork
from chipwise.planner.values.plan import Missing, Obstacle
from chipwise.predictor.settings import SERVING_PRECISIONS

_LIGHTER_WEIGHTS = ("fp8", "int8", "int4")
QUANTISED = "int8"  # every chip computes with it, at a loss that whoever asks must accept
_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "fp4": 4, "int4": 4}
_OBSTACLES = {
    NeedsChips: Obstacle.CHIPS,
    NeedsReplicas: Obstacle.REPLICAS,
    NeedsReplicasAndChips: Obstacle.REPLICAS_AND_CHIPS,
}


# -- families without a way


def unable(job: ServingJob, rows: Serving, searched: Searched) -> dict[str, Reason]:
    """Why families that are on offer have no way within the limits, each by the way that comes nearest."""
    fleet = searched.fleet
    family = {at: fleet.families[at] for at in searched.shapes}
    able = {family[at] for at in rows.shape[rows.rate > 0].tolist()}
    closed = [at for at in searched.shapes if family[at] not in able]
    if not closed:
        return {}
    wide = _without_chip_limit(job, rows, replace(searched, shapes=closed))
    names = {name: code for code, name in enumerate(dict.fromkeys(family[at] for at in closed))}
    group = np.array([names.get(family[at], -1) for at in wide.shape.tolist()], dtype=np.intp)
    slow = _slowness(job, wide, searched, np.flatnonzero((wide.fits > 0) & (wide.alone <= 0) & (group >= 0)))
    return {
        name: _nearest(
            job,
            wide,
            replace(searched, shapes=[at for at in closed if family[at] == name]),
            np.flatnonzero(group == code),
            slow,
        )
        for name, code in names.items()
    }


def reason_of(job: ServingJob, searched: Searched) -> Reason:
    """Why the shapes of `searched` have no candidate, by the way that comes nearest."""
    wide = searched.wider()
    rows = generation.search(job, wide.fleet, wide.model, wide.shapes, wide.chips)
    allowed = (rows.alone > 0) & (_chips(rows, searched.fleet) <= searched.chips[1]) & (rows.replicas <= job.most_replicas)
    if allowed.any():  # it would do, were its machines joined
        return NeedsNetwork(int(rows.machines[allowed].min()))
    slow = _slowness(job, rows, searched, np.flatnonzero((rows.fits > 0) & (rows.alone <= 0)))
    return _nearest(job, rows, searched, np.arange(len(rows.shape)), slow)


def _without_chip_limit(job: ServingJob, rows: Serving, searched: Searched) -> Serving:
    if not searched.bound:
        return rows
    wide = searched.wider()
    return generation.search(job, wide.fleet, wide.model, wide.shapes, wide.chips)


def _nearest(job: ServingJob, rows: Serving, searched: Searched, members: Index, slow: Mapping[int, TooSlow]) -> Reason:
    if not len(members):
        has = any(runs(searched.fleet.part(at), one) for at in searched.shapes for one in job.precisions)
        instead = QUANTISED if job.precisions in SERVING_PRECISIONS.values() else ""
        return NoSplit(*searched.chips) if has else NoPrecision(job.precisions, instead=instead)
    if (rows.alone[members] > 0).any():
        return next(_needs(job, rows, searched, members[rows.alone[members] > 0]))[1]
    fitting = members[rows.fits[members] > 0]
    if len(fitting):
        return min((slow[at] for at in fitting.tolist() if at in slow), key=_excess, default=TooSlow())
    return LacksMemory(float(rows.short[members].min()))


def _needs(job: ServingJob, rows: Serving, searched: Searched, able: Index) -> Iterator[tuple[int, Reason]]:
    """Rows that keep the goals with more chips or replicas than are allowed: the fewest of each, the smaller change first."""
    chips = _chips(rows, searched.fleet)
    limit = searched.chips[1]
    over_replicas, large = rows.replicas > job.most_replicas, chips > limit
    needs: list[tuple[float, int, Reason]] = []
    if len(subset := able[large[able] & ~over_replicas[able]]):
        row = int(subset[np.argmin(chips[subset])])
        needs.append((chips[row] / limit, row, NeedsChips(int(chips[row]), limit)))
    if len(subset := able[over_replicas[able] & ~large[able]]):
        row = int(subset[np.argmin(rows.replicas[subset])])
        needed = NeedsReplicas(int(rows.replicas[row]), int(job.most_replicas))
        needs.append((needed.needed / needed.allowed, row, needed))
    if not needs:
        row = int(able[np.lexsort((rows.replicas[able], chips[able]))[0]])
        combined = NeedsReplicasAndChips(int(rows.replicas[row]), int(job.most_replicas), int(chips[row]), limit)
        needs.append((0.0, row, combined))
    yield from ((at, reason) for _, at, reason in sorted(needs, key=lambda one: one[0]))


def _chips(rows: Serving, fleet: Fleet) -> Array:
    return np.asarray(rows.machines * np.array([float(one.chips) for one in fleet.shapes])[rows.shape])


def _slowness(job: ServingJob, rows: Serving, searched: Searched, slow: Index) -> dict[int, TooSlow]:
    """Of rows that keep the goals at no rate: what a request alone takes, by the goal that is missed most."""
    if not job.goals or not len(slow):
        return {}
    _, first = np.unique(
        np.stack(
            [
                np.array([one.part for one in searched.fleet.shapes])[rows.shape[slow]],
                rows.precision.index[slow].astype(str),
                rows.tp[slow].astype(str),
                rows.pp[slow].astype(str),
            ]
        ),
        axis=1,
        return_index=True,
    )
    sample = slow[np.sort(first)]
    durations = lone(job, searched.fleet, searched.model, rows, sample)
    return {
        row: max(
            (TooSlow(_goal(*goal), float(seconds[place]), job.goals[goal]) for goal, seconds in durations.items()), key=_excess
        )
        for place, row in enumerate(sample.tolist())
    }


def _excess(slow: TooSlow) -> float:
    return slow.seconds / slow.limit_s if slow.limit_s else np.inf


def _goal(name: str, share: float) -> str:
    return f"{name} p{share * 100:g}"


def refused_replicas(fleet: Fleet, offers: Index, rows: Serving, job: ServingJob) -> tuple[Refused, ...]:
    """Offers of shapes that keep the goals with more replicas than are allowed only."""
    fewest: dict[int, float] = {}
    for row in np.flatnonzero(rows.alone > 0).tolist():
        fewest[int(rows.shape[row])] = min(float(rows.replicas[row]), fewest.get(int(rows.shape[row]), np.inf))
    above = {at: count for at, count in fewest.items() if count > job.most_replicas}
    if not above:
        return ()
    shape = fleet.shape_of[np.frombuffer(fleet.catalog.offers.machine, dtype=np.int32)[offers]]
    removed = np.flatnonzero(np.isin(shape, list(above)))
    if not len(removed):
        return ()
    first = int(removed[0])
    needed = NeedsReplicas(int(above[int(shape[first])]), int(job.most_replicas))
    rule = Rule(RuleKind.REPLICAS, limit=job.most_replicas)
    return (Refused(rule, len(removed), offer_title(fleet.catalog, int(offers[first])), needed),)


# -- nothing fits at all


def limits_of_serving(job: ServingJob, rows: Serving, searched: Searched) -> list[Missing]:
    """Empty where some row may be priced."""
    if (rows.rate > 0).any():
        return []
    wide = _without_chip_limit(job, rows, searched)
    if len(rows.shape) and not (rows.fits > 0).any():
        return [_memory_of_serving(job, rows, wide, searched)]
    if (wide.alone > 0).any():
        able = np.flatnonzero(wide.alone > 0)
        return [
            Missing(_OBSTACLES[type(reason)], reason, (Ease(),), _replica(wide, row, searched))
            for row, reason in _needs(job, wide, searched, able)
        ]
    return _latency_of(job, rows, searched) if len(rows.shape) else no_way(searched, job.precisions)


def _memory_of_serving(job: ServingJob, rows: Serving, wide: Serving, searched: Searched) -> Missing:
    row = int(np.argmin(rows.short))
    helps: list[Remedy] = []
    if searched.bound and (hardware := _enough_chips(job, wide, searched) or _first_fit(job, searched.wider())):
        helps.append(MoreChips(hardware, searched.chips[1]))
    elif hardware := _first_fit(job, searched.joined()):
        helps.append(StateNetwork(hardware))
    narrowest = min((_BITS.get(one, 16) for one in job.precisions), default=16)
    for precision in _LIGHTER_WEIGHTS:
        if _BITS[precision] < narrowest and (hardware := _first_fit(replace(job, precisions=(precision,)), searched)):
            helps.append(Lighter(f"{precision} weights", hardware))
            break
    if job.longest > job.input_len + job.output_len and (hardware := _first_fit(replace(job, longest=0.0), searched)):
        helps.append(Lighter(f"a context of {job.input_len + job.output_len:g} tokens", hardware))
    remedies = tuple(helps) or (Advice("a smaller model: more chips and 4-bit weights were tried"),)
    return Missing(Obstacle.MEMORY, LacksMemory(float(rows.short[row])), remedies, _replica(rows, row, searched))


def _enough_chips(job: ServingJob, wide: Serving, searched: Searched) -> str:
    """The fewest chips with which the goals are kept; empty: no number of chips does it."""
    able = np.flatnonzero((wide.alone > 0) & (wide.replicas <= job.most_replicas))
    if not len(able):
        return ""
    chips = _chips(wide, searched.fleet)
    row = int(able[np.argmin(chips[able])])
    return f"{chips[row]:g} x {searched.fleet.shapes[wide.shape[row]].part}"


def _first_fit(job: ServingJob, searched: Searched) -> str:
    """The narrowest replica that fits; empty: none does. Goals are left aside: they come after memory."""
    rows = generation.search(replace(job, goals={}), searched.fleet, searched.model, searched.shapes, searched.chips)
    fine = np.flatnonzero(rows.fits > 0)
    if not len(fine):
        return ""
    row = int(fine[np.argmin((rows.tp * rows.pp)[fine])])
    return f"{rows.tp[row] * rows.pp[row]:g} x {searched.fleet.shapes[rows.shape[row]].part}"


def _latency_of(job: ServingJob, rows: Serving, searched: Searched) -> list[Missing]:
    """Not even a request alone is answered in time: how near the fastest comes."""
    fitting = np.flatnonzero(rows.fits > 0)
    durations = lone(job, searched.fleet, searched.model, rows, fitting)
    if not durations:
        return [Missing(Obstacle.THROUGHPUT, NoRate(), (Advice("a smaller model"),))]
    excess = np.max([seconds / job.goals[goal] for goal, seconds in durations.items()], axis=0)
    fastest = int(np.argmin(excess))
    nearest = _replica(rows, int(fitting[fastest]), searched)
    missed = [
        TooSlow(_goal(*goal), float(seconds[fastest]), job.goals[goal])
        for goal, seconds in durations.items()
        if seconds[fastest] > job.goals[goal]
    ]
    if not missed:
        stated = tuple((_goal(*goal), limit) for goal, limit in job.goals.items())
        return [Missing(Obstacle.LATENCY, OneAtATime(stated), (Advice("a looser goal"),), nearest)]
    return [
        Missing(what=Obstacle.LATENCY, reason=reason, remedies=(Ease(),), nearest=nearest, together=len(missed) > 1)
        for reason in missed
    ]


def _replica(rows: Serving, at: int, looked: Searched) -> str:
    part = looked.fleet.shapes[rows.shape[at]].part
    return f"{rows.tp[at] * rows.pp[at]:g} x {part} in {rows.precision.name_at(at)}"
