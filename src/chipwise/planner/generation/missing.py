"""What stood in the way of serving where nothing fits, and the smallest changes that would help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.generation import search as generation
from chipwise.planner.generation.search import Serving, ServingJob
from chipwise.planner.limits import Refused, shown
from chipwise.planner.missing import UNSTATED, Searched
from chipwise.planner.values.plan import Missing
from chipwise.text import duration

_LIGHTER_WEIGHTS = ("fp8", "int8", "int4")


_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "fp4": 4, "int4": 4}


def limits_of_serving(job: ServingJob, rows: Serving, looked: Searched) -> list[Missing]:
    """Empty where some row may be priced."""
    if not len(rows.shape) or (rows.rate > 0).any():
        return []
    if not (rows.fits > 0).any():
        return [_memory_of_serving(job, rows, looked)]
    return _counts_of(job, rows, looked) if (rows.alone > 0).any() else [_latency_of(job, rows, looked)]


def _memory_of_serving(job: ServingJob, rows: Serving, looked: Searched) -> Missing:
    at = int(np.argmin(rows.short))
    told = f"{_replica(rows, at, looked)} lacks {rows.short[at] / 1e9:.1f} GB a chip, the least of all"
    helps = []
    if looked.bound and (more := _first_fit(job, looked.wider())):
        helps.append(f"{more} instead of {looked.chips[1]}")
    elif more := _first_fit(job, looked.joined()):
        helps.append(f"{more}, {UNSTATED}")
    least = min((_BITS.get(one, 16) for one in job.precisions), default=16)
    for precision in _LIGHTER_WEIGHTS:
        if _BITS[precision] < least and (more := _first_fit(replace(job, precisions=(precision,)), looked)):
            helps.append(f"{precision} weights ({more})")
            break
    if job.longest > job.input_len + job.output_len and (more := _first_fit(replace(job, longest=0.0), looked)):
        helps.append(f"a context of {job.input_len + job.output_len:g} tokens ({more})")
    return Missing("memory", told, " or ".join(helps) or "a smaller model: more chips and 4-bit weights were tried")


def _first_fit(job: ServingJob, looked: Searched) -> str:
    """The narrowest replica that fits; empty: none does. Goals are left aside: they come after memory."""
    rows = generation.search(replace(job, goals={}), looked.fleet, looked.model, looked.shapes, looked.chips)
    fine = np.flatnonzero(rows.fits > 0)
    if not len(fine):
        return ""
    at = int(fine[np.argmin((rows.tp * rows.pp)[fine])])
    return f"{rows.tp[at] * rows.pp[at]:g} x {looked.fleet.shapes[rows.shape[at]].part}"


def _counts_of(job: ServingJob, rows: Serving, looked: Searched) -> list[Missing]:
    """Latency can be kept, with more replicas or chips than are allowed: one of them eased, or both where one is not enough."""
    chips = rows.machines * np.array([one.chips for one in looked.fleet.shapes])[rows.shape]
    able = rows.alone > 0
    many, large = rows.replicas > job.most_replicas, chips > looked.chips[1]
    asked = (
        ("replicas", rows.replicas, job.most_replicas, "replicas.max", able & many & ~large),
        ("chips", chips, float(looked.chips[1]), "limits.chip_count.max", able & large & ~many),
    )
    found = []
    for what, needed, most, name, alone in asked:
        if alone.any():
            at = int(np.flatnonzero(alone)[np.argmin(needed[alone])])
            told = f"{_replica(rows, at, looked)} needs {needed[at]:,.0f} {what}, the fewest of all; {most:,.0f} are allowed"
            found.append(Missing(what, told, f"{name} of {needed[at]:.0f} instead of {most:.0f}"))
    if found:
        return found
    at = int(np.flatnonzero(able)[np.argmin(chips[able])])
    told = f"{_replica(rows, at, looked)} needs {rows.replicas[at]:,.0f} replicas on {chips[at]:,.0f} chips, the fewest of all"
    return [
        Missing(
            "replicas and chips", told, f"replicas.max of {rows.replicas[at]:.0f} and limits.chip_count.max of {chips[at]:.0f}"
        )
    ]


def _latency_of(job: ServingJob, rows: Serving, looked: Searched) -> Missing:
    """Not even a request alone is answered in time: how near the fastest comes."""
    held = np.flatnonzero(rows.fits > 0)
    took = generation.lone(job, looked.fleet, looked.model, rows, held)
    if not took:
        return Missing("throughput", "no machine answers at all", "a smaller model")
    excess = np.max([seconds / job.goals[goal] for goal, seconds in took.items()], axis=0)
    at = int(np.argmin(excess))
    missed = [(goal, float(seconds[at])) for goal, seconds in took.items() if seconds[at] > job.goals[goal]]
    where = _replica(rows, int(held[at]), looked)
    if not missed:
        stated = ", ".join(_goal(name, share, limit) for (name, share), limit in job.goals.items())
        return Missing("latency", f"the nearest, {where}, keeps {stated} for one request at a time only", "a looser goal")
    told = ", ".join(f"{_goal(*goal, seconds)} (allowed {duration(job.goals[goal])})" for goal, seconds in missed)
    return Missing(
        "latency",
        f"the nearest, {where}, takes {told} with a single request",
        " and ".join(f"goals.{goal[0]} p{goal[1] * 100:g} above {duration(seconds)}" for goal, seconds in missed),
    )


def _goal(name: str, share: float, seconds: float) -> str:
    return f"{name} p{share * 100:g} {duration(seconds)}"


def _replica(rows: Serving, at: int, looked: Searched) -> str:
    part = looked.fleet.shapes[rows.shape[at]].part
    return f"{rows.tp[at] * rows.pp[at]:g} x {part} in {rows.precision.name_at(at)}"


def beyond(job: ServingJob, rows: Serving, fleet: Fleet, most_chips: int) -> dict[int, str]:
    """Shapes that keep the goals with more replicas or chips than are allowed only, and how many they need."""
    each = np.array([one.chips for one in fleet.shapes])[rows.shape]
    found: dict[int, tuple[float, str]] = {}
    open_to = set(rows.shape[rows.rate > 0].tolist())
    for at in np.flatnonzero((rows.alone > 0) & (rows.rate <= 0)).tolist():
        shape, replicas, chips = int(rows.shape[at]), float(rows.replicas[at]), float(rows.machines[at] * each[at])
        over = replicas > job.most_replicas
        told = (
            f"needs {replicas:,.0f} replicas, {job.most_replicas:,.0f} are allowed"
            if over
            else f"needs {chips:,.0f} chips, {most_chips:,} are allowed"
        )
        if shape not in open_to and (shape not in found or (replicas if over else chips) < found[shape][0]):
            found[shape] = (replicas if over else chips, told)
    return {shape: told for shape, (_, told) in found.items()}


def refused_beyond(fleet: Fleet, offers: Index, shapes: Mapping[int, str], job: ServingJob) -> tuple[Refused, ...]:
    """Offers of shapes that need more replicas than are allowed."""
    many = [shape for shape, why in shapes.items() if "replicas" in why]
    if not many:
        return ()
    shape = fleet.shape_of[np.frombuffer(fleet.catalog.offers.machine, dtype=np.int32)[offers]]
    gone = np.flatnonzero(np.isin(shape, many))
    if not len(gone):
        return ()
    first = int(gone[0])
    example = f"{shown(fleet.catalog, int(offers[first]))}: {shapes[int(shape[first])]}"
    return (Refused(f"needs more than {job.most_replicas:g} replicas", len(gone), example),)
