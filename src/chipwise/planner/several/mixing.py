"""Several machine types for one service, where that is cheaper than one: an integer programme over request sizes.

After Melange (Griggs et al., 2024), with predicted rates in place of profiled ones. For each type t and bucket b of requests
there is the rate r(t, b) at which one machine answers such requests alone within the goals (`generation.search`). With load
l(b) in requests per second, price c(t), whole numbers n(t) of machines, and the part y(t, b) >= 0 of a bucket that a type
takes:

    minimise sum c(t) n(t)   so that   sum_t y(t, b) = 1 for all b,   sum_b y(t, b) l(b) / r(t, b) <= n(t) for all t

and, where they are asked for, sum n(t) replicas(t) >= least, and chips within their limits. Melange cuts every bucket into
slices that go to one machine each; here only n is whole and y is continuous: a balancer can send any part of the requests
anywhere, the optimum is no worse, and the programme has as few whole numbers as there are types.

Assumed, as by Melange: a machine that answers several sizes is as full as the sum of what each size takes of it. Long prompts
between short answers are worse than that, which is why a rate within the goals (not the highest) is taken.

All machines of a mix stand in one region of one provider: requests are not sent between clouds. Of all regions the cheapest
is found by solving those first whose bound (no whole numbers) is lowest, until no bound is below the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.errors import MissingExtra
from chipwise.perf.arrays import Array
from chipwise.perf.model import Model
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.generation import search as generation
from chipwise.planner.generation.job import ServingJob
from chipwise.planner.generation.sizing import goals_by_bucket
from chipwise.planner.limits import Mask
from chipwise.planner.values.mix import Bucket

SECONDS = 20.0  # that one programme may take; what it has then is told as not proven
_HAIR = 1e-9


@dataclass(frozen=True)
class Types:
    """Kinds of machine that may be taken, each with one way to run the model."""

    usd: Array  # of one machine in a month; infinity: not to be had
    rates: Array  # types x buckets: requests per second of one machine; 0: cannot within the goals
    replicas: Array  # of the model on one machine
    chips: Array

    def __len__(self) -> int:
        return len(self.usd)

    def rows(self, which: Index) -> Types:
        return Types(self.usd[which], self.rates[which], self.replicas[which], self.chips[which])


@dataclass(frozen=True, slots=True)
class Needs:
    load: Array  # requests per second by bucket
    replicas: float = 1.0  # fewest
    most_replicas: float = np.inf  # counted as if every machine held all that it can
    chips: tuple[float, float] = (1.0, np.inf)


@dataclass(frozen=True)
class Solution:
    counts: Array  # machines by type
    parts: Array  # types x buckets: of each bucket's load
    usd: float
    proven: bool = True

    def busy(self, types: Types, needs: Needs) -> Array:
        """How full the machines of every type are."""
        return _machines_used(types, needs, self.parts) / np.maximum(self.counts, 1.0)


@dataclass(frozen=True)
class Ways:
    """Ways to run the model on one machine of a shape, and what each answers of every bucket."""

    shape: Index
    precision: tuple[str, ...]
    tp: Array
    pp: Array
    rates: Array  # ways x buckets, of one machine
    replicas: Array
    provenance: tuple[str, ...]


def ways_for(
    job: ServingJob, fleet: Fleet, model: Model, shapes: Sequence[int], buckets: Sequence[Bucket], most_chips: int
) -> Ways:
    """The rate of every way on every bucket. Only replicas inside one machine: a mix counts machines one by one."""
    rates, serving = [], None
    for bucket, goals in zip(buckets, goals_by_bucket(buckets, job.goals), strict=True):
        bucket_job = replace(
            job,
            input_len=bucket.prompt.mean,
            output_len=bucket.answer.mean,
            goals=goals,
            longest=bucket.longest,
            prefix_len=min(job.prefix_len, bucket.prompt.mean),
            least_replicas=1.0,
            rate=_HAIR,
            concurrency=0.0,
            most_replicas=np.inf,
            least_rate=0.0,
            sigmas=(0.0, 0.0),  # of one size
        )
        serving = generation.search(bucket_job, fleet, model, shapes, (1, most_chips))
        rates.append(serving.per_machine)
    assert serving is not None
    chips = np.array([one.chips for one in fleet.shapes], dtype=np.float64)[serving.shape]
    inside = np.flatnonzero(serving.tp * serving.pp <= chips)
    return Ways(
        shape=serving.shape[inside],
        precision=tuple(serving.precision.name_at(at) for at in inside.tolist()),
        tp=serving.tp[inside],
        pp=serving.pp[inside],
        rates=np.stack(rates, axis=1)[inside],
        replicas=np.floor(chips / (serving.tp * serving.pp))[inside],
        provenance=tuple(serving.provenance.name_at(at) for at in inside.tolist()),
    )


def worthwhile(types: Types, needs: Needs) -> Index:
    """Types that no other is at least as good as in everything: price, every rate, replicas, chips."""
    able = np.flatnonzero(np.isfinite(types.usd) & (types.rates > 0).any(axis=1))
    order = able[np.lexsort((-types.rates[able].sum(axis=1), types.usd[able]))]
    rows: list[int] = []
    for row in order.tolist():
        before = np.array(rows, dtype=np.intp)
        chips, replicas = types.chips[before] - types.chips[row], types.replicas[before] - types.replicas[row]
        fewer = chips <= 0 if needs.chips[0] <= 1 else chips == 0
        enough = replicas >= 0 if np.isinf(needs.most_replicas) else replicas == 0
        better = (types.rates[before] >= types.rates[row]).all(axis=1) & fewer & enough
        if not better.any():
            rows.append(row)
    return np.array(rows, dtype=np.intp)


def bound(types: Types, needs: Needs) -> float:
    """No mix costs less: every bucket by what answers it cheapest, in parts of machines."""
    usd_per_rate = np.where(types.rates > 0, types.usd[:, None] / np.where(types.rates > 0, types.rates, 1.0), np.inf).min(
        axis=0, initial=np.inf
    )
    spare = (types.usd / np.maximum(types.replicas, 1.0)).min(initial=np.inf) * needs.replicas
    loaded = needs.load > 0
    return float(max(np.sum(usd_per_rate[loaded] * needs.load[loaded]), spare, types.usd.min(initial=np.inf)))


def single(types: Types, needs: Needs) -> Solution | None:
    """The best of one type alone."""
    answers = types.rates > 0
    full = np.where(answers, needs.load / np.where(answers, types.rates, 1.0), np.where(needs.load > 0, np.inf, 0.0)).sum(1)
    able = np.isfinite(full) & np.isfinite(types.usd)
    counts = np.ceil(np.where(able, full, 0.0) - _HAIR)
    counts = np.maximum(np.maximum(counts, np.ceil(needs.replicas / np.maximum(types.replicas, 1.0) - _HAIR)), 1.0)
    counts = np.maximum(counts, np.ceil(needs.chips[0] / np.maximum(types.chips, 1.0)))
    able &= (counts * types.chips <= needs.chips[1]) & (counts * types.replicas <= needs.most_replicas)
    if not able.any():
        return None
    usd = np.where(able, counts * np.where(able, types.usd, 0.0), np.inf)
    best = int(np.argmin(usd))
    chosen = np.arange(len(types)) == best
    return Solution(np.where(chosen, counts, 0.0), np.where(chosen[:, None], 1.0, np.zeros_like(types.rates)), float(usd[best]))


def solve(types: Types, needs: Needs) -> Solution | None:
    """The cheapest counts, and who takes what; None: no counts do. Raises MissingExtra without scipy."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array
    except ImportError as error:
        raise MissingExtra("Mixing machine types", "solve") from error
    chosen = worthwhile(types, needs)
    subset, loaded = types.rows(chosen), np.flatnonzero(needs.load > 0)
    able: Mask = subset.rates[:, loaded] > 0
    if not len(chosen) or not able.any(axis=0).all():
        return None
    count, rows, columns = len(chosen), *np.nonzero(able)
    part = count + np.arange(len(rows))  # columns of y; those of n are 0 .. count - 1
    full = needs.load[loaded][columns] / subset.rates[:, loaded][rows, columns]
    size = (count + len(loaded) + 2, count + len(rows))
    row_index = np.concatenate(
        [np.arange(count), rows, count + columns, np.full(count, size[0] - 2), np.full(count, size[0] - 1)]
    )
    column_index = np.concatenate([np.arange(count), part, part, np.arange(count), np.arange(count)])
    value = np.concatenate([np.full(count, -1.0), full, np.ones(len(rows)), subset.replicas, subset.chips])
    result = milp(
        np.concatenate([subset.usd, np.zeros(len(rows))]),
        integrality=np.concatenate([np.ones(count), np.zeros(len(rows))]),
        bounds=Bounds(0.0, np.concatenate([np.full(count, np.inf), np.ones(len(rows))])),
        constraints=LinearConstraint(
            csr_array((value, (row_index, column_index)), shape=size),
            np.concatenate([np.full(count, -np.inf), np.ones(len(loaded)), [needs.replicas, needs.chips[0]]]),
            np.concatenate([np.zeros(count), np.ones(len(loaded)), [needs.most_replicas, needs.chips[1]]]),
        ),
        options={"mip_rel_gap": 0.0, "time_limit": SECONDS},
    )
    if result.x is None:
        return None
    counts, parts = np.zeros(len(types)), np.zeros_like(types.rates)
    counts[chosen] = np.round(result.x[:count])
    split = np.zeros((count, len(loaded)))
    split[rows, columns] = np.clip(result.x[count:], 0.0, 1.0)
    parts[np.ix_(chosen, loaded)] = split / split.sum(axis=0)
    used = counts > 0
    return Solution(counts, parts, float(counts[used] @ types.usd[used]), bool(result.status == 0))


def _machines_used(types: Types, needs: Needs, parts: Array) -> Array:
    used = np.where(parts > 0, parts * needs.load / np.maximum(types.rates, 1e-300), 0.0)
    return np.asarray(used.sum(axis=1))


def cheapest(usd: Array, types: Types, needs: Needs) -> tuple[int, Solution] | None:
    """Of places with prices `usd` (places x types, infinity: not there) the one with the cheapest mix, and the mix."""
    bounds = np.array([bound(replace(types, usd=row), needs) for row in usd])
    best: tuple[int, Solution] | None = None
    for place in np.argsort(bounds, kind="stable").tolist():
        if not np.isfinite(bounds[place]) or (best is not None and bounds[place] >= best[1].usd * (1.0 - _HAIR)):
            break
        solution = solve(replace(types, usd=usd[place]), needs)
        if solution is not None and (best is None or solution.usd < best[1].usd):
            best = place, solution
    return best


def cheapest_single(usd: Array, types: Types, needs: Needs) -> tuple[int, Solution] | None:
    """As `cheapest`, of one type alone."""
    solutions = [
        (place, solution) for place, row in enumerate(usd) if (solution := single(replace(types, usd=row), needs)) is not None
    ]
    return min(solutions, key=lambda one: one[1].usd, default=None)
