"""`plan --mix`: the cheapest mix of machine types for a service of a language model, from predicted rates by request size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.offer import PURCHASES
from chipwise.errors import BadInput
from chipwise.perf.arrays import Array
from chipwise.planner.counts import chip_limits
from chipwise.planner.fleet import Index
from chipwise.planner.generation import sizing
from chipwise.planner.generation.plan import generation_job, generation_shapes, serving_hours
from chipwise.planner.ground import PlanGround, ground_for
from chipwise.planner.limits import Allowed
from chipwise.planner.load.plan import recorded_pairs, with_recording
from chipwise.planner.pricing import Priced, Work, price
from chipwise.planner.several import mixing
from chipwise.planner.several.mixing import Needs, Solution, Types, Ways
from chipwise.planner.values.mix import Bucket, Member, Mix, Share
from chipwise.planner.values.split import GenerationSplit
from chipwise.predictor.anchoring import carried_over
from chipwise.text import duration
from chipwise.workload.kinds import Serve
from chipwise.workload.lengths import spread
from chipwise.workload.pipeline import Workload

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

_LEAST_PART = 1e-6  # of a bucket: less is the solver's rounding


def mix(known: Known, path: str, workload: Workload) -> Mix:
    work = with_recording(known, workload, path)
    if not isinstance(work, Serve) or work.devices:
        kind = "edge" if isinstance(work, Serve) else getattr(work, "kind", "this kind")
        raise BadInput(f"--mix is for serving a language model, and this is {kind} work.", remedy="Leave --mix out.")
    if work.input_tokens is None or work.output_tokens is None:
        raise BadInput("--mix needs request sizes.", remedy="Give input_tokens and output_tokens, with p95 where it is known.")
    if work.arrival.rate is None:
        raise BadInput("--mix needs a rate of requests.", remedy="Give it as arrival: {rate: 10 req/s}.")
    context, job = generation_job(carried_over(known, path, work).known, path, work)
    ground = ground_for(context, wide=True)
    ok, shapes = generation_shapes(ground, work, context)
    pairs = recorded_pairs(known, work, path)
    buckets = sizing.recorded(*pairs.T) if len(pairs) else sizing.grid(work.input_tokens, work.output_tokens)
    fewest, largest = chip_limits(work.limits)
    ways = mixing.ways_for(job, ground.fleet, context.model, shapes.tolist(), buckets, largest)
    market = _Prices(ground, ok, ways, serving_hours(work) * 3600.0)
    types = Types(np.full(len(ways.shape), np.inf), ways.rates, ways.replicas, market.chips)
    load = max(job.rate, job.least_rate) * np.array([one.share for one in buckets])
    needs = Needs(load, job.least_replicas, job.most_replicas, (float(fewest), float(largest)))
    best, alone = mixing.cheapest(market.usd, types, needs), mixing.cheapest_single(market.usd, types, needs)
    only = None
    if alone is not None:
        only = market.members(alone[0], alone[1], types, needs)[0]
    notes = _notes(work, buckets, job.goals, len(pairs))
    able = int((np.isfinite(market.usd).any(axis=0) & (ways.rates > 0).any(axis=1)).sum())
    return Mix(
        members=() if best is None else market.members(*best, types, needs),
        usd=0.0 if best is None else best[1].usd,
        single=only,
        buckets=buckets,
        proven=best is None or best[1].proven,
        types=able,
        places=len(market.usd),
        missing="" if best is not None else _missing(ways, buckets, job.goals),
        notes=notes,
    )


class _Prices:
    """The cheapest offer of every shape in every region of a provider, for one machine and a month."""

    def __init__(self, ground: PlanGround, ok: Allowed, ways: Ways, seconds: float) -> None:
        self.ground, self.ways = ground, ways
        fleet = ground.fleet
        shapes = np.flatnonzero(np.bincount(ways.shape, minlength=len(fleet.shapes)))
        work = Work.of_one_machine(shapes, seconds)
        self.priced: Priced = price(work, ok.offers, ground.market, None)
        shape = shapes[self.priced.way]
        places, self.place = np.unique(self.priced.region, return_inverse=True)
        # The first of a key after sorting by price is the cheapest.
        order = np.lexsort((self.priced.usd, shape, self.place))
        key = self.place[order] * len(fleet.shapes) + shape[order]
        first = order[np.concatenate([[True], key[1:] != key[:-1]])] if len(order) else order
        self.row = np.full((len(places), len(fleet.shapes)), -1, dtype=np.intp)
        self.row[self.place[first], shape[first]] = first
        of_way: Index = self.row[:, ways.shape]
        self.usd: Array = (
            np.where(of_way >= 0, self.priced.usd[of_way], np.inf) if len(order) else np.zeros((0, len(ways.shape)))
        )
        self.chips = np.array([one.chips for one in fleet.shapes], dtype=np.float64)[ways.shape]

    def members(self, place: int, solution: Solution, types: Types, needs: Needs) -> tuple[Member, ...]:
        busy = solution.busy(types, needs)
        return tuple(
            self._member(place, index, solution, float(busy[index]), needs.load)
            for index in np.flatnonzero(solution.counts > 0).tolist()
        )

    def _member(self, place: int, index: int, solution: Solution, busy: float, load: Array) -> Member:
        ways, catalog = self.ways, self.ground.fleet.catalog
        shape = self.ground.fleet.shapes[ways.shape[index]]
        row = int(self.row[place, ways.shape[index]])
        machine, region = catalog.machines[self.priced.machine[row]], catalog.regions[self.priced.region[row]]
        count = int(solution.counts[index])
        takes = tuple(
            Share(bucket, float(solution.parts[index, bucket]), float(solution.parts[index, bucket] * load[bucket]))
            for bucket in np.flatnonzero(solution.parts[index] > _LEAST_PART).tolist()
        )
        split = GenerationSplit(int(ways.tp[index]), int(ways.pp[index]), int(ways.replicas[index]) * count)
        return Member(
            provider=machine.provider,
            machine=machine.name,
            region=region.name,
            chip=shape.part,
            chips=shape.chips,
            purchase=str(PURCHASES[self.priced.purchase[row]]),
            precision=ways.precision[index],
            split=split,
            machines=count,
            usd=float(self.priced.usd[row]) * count,
            busy=busy,
            takes=takes,
            provenance=ways.provenance[index],
        )


def _missing(ways: Ways, buckets: tuple[Bucket, ...], goals: sizing.Goals) -> str:
    lost = np.flatnonzero(~(ways.rates > 0).any(axis=0)) if len(ways.shape) else np.arange(len(buckets))
    if not len(lost):
        return "no region has machines for all sizes within limits.chip_count; a wider limit would help"
    bucket = buckets[int(lost[0])]
    limits = ", ".join(f"{name} p{share * 100:g} {duration(limit)}" for (name, share), limit in goals.items())
    size = f"prompts of {bucket.prompt.mean:,.0f} and answers of {bucket.answer.mean:,.0f} tokens"
    return f"no machine answers {size} within {limits or 'its memory'}; a looser goal or other precisions would help"


def _notes(work: Serve, buckets: tuple[Bucket, ...], goals: sizing.Goals, recorded: int) -> tuple[str, ...]:
    assert work.input_tokens is not None
    assert work.output_tokens is not None
    sources = [f"{name} by {spread(one)[1]}" for name, one in (("prompts", work.input_tokens), ("answers", work.output_tokens))]
    notes = [f"Assumed: {', '.join(sources)}; prompt and answer independent; {len(buckets)} sizes of requests."]
    if recorded:
        notes = [f"Sizes are the trace's own: {recorded:,} requests in {len(buckets)} sizes."]
    if goals and len(buckets) > 1:
        notes.append(
            "Goals hold over all requests: the largest, half of what each percentile lets miss, are not held to it, and the "
            "others the more strictly. Rates are predicted for each size, so one type alone may cost other than in the plan."
        )
    notes.append("Assumed: a machine is as full as the sum of what each size takes of it; all machines in one region.")
    return tuple(notes)
