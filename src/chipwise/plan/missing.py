"""What stood in the way where nothing fits, and the smallest changes that would help: found by trying them.

Each change is searched anew with one thing eased (more chips, a lighter precision or method, one limit lifted) and told only if
something fits then. That costs another search or two, so it is done only when there is no plan. Deadlines, budgets and quotas
are told by `assembling`, which has the prices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.perf.model import Model
from chipwise.plan.assembling import family_of
from chipwise.plan.decision import Missing
from chipwise.plan.fleet import Fleet, Index
from chipwise.plan.learning import MOST_CHIPS, Ways, search
from chipwise.plan.limits import Allowed, Refused, Rules, allowed, easing, shown
from chipwise.plan.splits import LearningJob

if TYPE_CHECKING:  # a plan of training does not load what serving needs
    from chipwise.plan.generation import Serving, ServingJob

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
    "without limits.where": {"owned": True, "rented": True},
    "without limits.power_watts": {"power_w": None},
    "without limits.requires": {"requires": ()},
}
_SOFT = ("fp32", "int8", "int4")  # every chip computes with them, by its own units or in another format
_LIGHTER_WEIGHTS = ("fp8", "int8", "int4")
UNSTATED = "once the network between these machines is stated (`network` in a catalog file of your own)"
_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "fp4": 4, "int4": 4}


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


# -- training


def memory_of_learning(job: LearningJob, ways: Ways, looked: Searched) -> list[Missing]:
    """Empty where something fits."""
    lacking = np.flatnonzero(ways.short > 0)
    if not len(lacking) or np.isfinite(ways.seconds).any():
        return []
    at = int(lacking[np.argmin(ways.short[lacking])])
    name = looked.name(int(ways.shape[at]), float(ways.machines[at]))
    told = f"{name} lack {ways.short[at] / 1e9:.1f} GB a chip, the least of all"
    helps = []
    if looked.bound and (more := _fewest(job, looked.wider())):
        helps.append(f"{more} instead of {looked.chips[1]}")
    elif more := _fewest(job, looked.joined()):
        helps.append(f"{more}, {UNSTATED}")
    for name, lighter in _lighter(job):
        if fewest := _fewest(lighter, looked):
            helps.append(f"{name} ({fewest})")
    return [Missing("memory", told, " or ".join(helps) or "a smaller model: more chips and lighter methods were tried")]


def _fewest(job: LearningJob, looked: Searched) -> str:
    """The fewest chips on which it fits; empty: on none."""
    ways = search(job, looked.fleet, looked.model, looked.shapes, looked.chips)
    fine = np.flatnonzero(np.isfinite(ways.seconds))
    if not len(fine):
        return ""
    chips = np.array([one.chips for one in looked.fleet.shapes])[ways.shape[fine]] * ways.machines[fine]
    at = int(fine[np.lexsort((ways.seconds[fine], chips))[0]])
    return looked.name(int(ways.shape[at]), float(ways.machines[at]))


def _lighter(job: LearningJob) -> Iterator[tuple[str, LearningJob]]:
    """The same with less to keep in memory, the least change first."""
    if job.recompute != (0, 1, 2):
        yield "recompute: full", replace(job, recompute=(2,))
    if job.optimizer == "adamw":
        yield "optimizer: adamw-8bit", replace(job, optimizer="adamw-8bit")
    for method in {"full": ("lora", "qlora"), "lora": ("qlora",)}.get(job.method, ()):
        yield f"finetune with method: {method}", replace(job, method=method)
    if job.seq >= 1024 and not job.layer.source:  # of a pair it is both lengths
        yield f"sequence_length: {job.seq // 2}", replace(job, seq=job.seq // 2, batch=job.batch * 2)


# -- generation


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
    from chipwise.plan import generation

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
    from chipwise.plan import generation

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
    told = ", ".join(f"{_goal(*goal, seconds)} (allowed {_ms(job.goals[goal])})" for goal, seconds in missed)
    return Missing(
        "latency",
        f"the nearest, {where}, takes {told} with a single request",
        " and ".join(f"goals.{goal[0]} p{goal[1] * 100:g} above {_ms(seconds)}" for goal, seconds in missed),
    )


def _goal(name: str, share: float, seconds: float) -> str:
    return f"{name} p{share * 100:g} {_ms(seconds)}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms" if seconds < 10 else f"{seconds:,.1f} s"


def _replica(rows: Serving, at: int, looked: Searched) -> str:
    part = looked.fleet.shapes[rows.shape[at]].part
    return f"{rows.tp[at] * rows.pp[at]:g} x {part} in {rows.precision.at(at)}"


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
