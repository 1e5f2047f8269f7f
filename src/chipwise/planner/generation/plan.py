"""Plans of serving language models, online and offline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf.arrays import column
from chipwise.perf.rows import model_key
from chipwise.perf.setup import KV_BITS, WEIGHT_BITS
from chipwise.perf.transformer import layer_of
from chipwise.planner import missing
from chipwise.planner.assemble import assemble
from chipwise.planner.case import Described, PlanningCase
from chipwise.planner.counts import chip_limits, machine_counts
from chipwise.planner.defaults import HOURS_PER_WEEK, NARROWER, serving_formats, spared_headroom, with_spot_default
from chipwise.planner.explain.quality import with_quality
from chipwise.planner.fleet import Index, family_of
from chipwise.planner.generation import search as generation
from chipwise.planner.generation.job import ServingJob
from chipwise.planner.generation.loaded import at_less, at_load, at_rest_w, when_full
from chipwise.planner.generation.missing import limits_of_serving, reason_of, refused_replicas, unable
from chipwise.planner.ground import PlanGround, asked_goals, ground_for, shapes_offered, stored
from chipwise.planner.limits import Allowed, Rules, allowed
from chipwise.planner.load.budget import layered_of
from chipwise.planner.load.following import following_of
from chipwise.planner.load.plan import arrivals, quieter_loads
from chipwise.planner.load.regions import network_s, reach_of
from chipwise.planner.pricing import Work, price, tally
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import NoEngine
from chipwise.planner.rules import rules_of
from chipwise.planner.values.load import AtLess
from chipwise.planner.values.plan import Counts, Grounds, Plan
from chipwise.planner.values.split import GenerationSplit
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.predictor.kinds.latencies import share_of
from chipwise.predictor.named import check_context
from chipwise.predictor.settings import SERVING_PRECISIONS
from chipwise.units import MONTH
from chipwise.workload.goals import Precision
from chipwise.workload.kinds import Batch, Serve
from chipwise.workload.lengths import spread
from chipwise.workload.model.shape import DecoderShape

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

_NO_ENGINE = ("fpga", "edge")  # kinds of parts that no serving engine for language models runs on
_WEEKS = MONTH / (7 * 86400.0)


def generation_job(known: Known, path: str, work: Serve | Batch) -> tuple[Known, ServingJob]:
    """What is asked of every machine; and what is known, with the model."""
    extended, name, shape = known_model(Ask(known, path, "", {}), work)
    if not isinstance(shape, DecoderShape):
        raise BadInput(f"Serving {name} is not planned yet.", remedy=f"chipwise predict {path} --on CHIP")
    if work.input_tokens is None or work.output_tokens is None:
        lacking = [one for one in ("input_tokens", "output_tokens") if getattr(work, one) is None]
        raise BadInput(
            f"{path}: {' and '.join(lacking)} must be given to plan with {name}, which writes its answers token by token.",
            remedy="Give their mean, such as output_tokens: 300; 1 where only the prompt is read, as to classify it.",
        )
    length_field = "context" if getattr(work, "context", None) else "input_tokens"
    check_context(extended, name, length_field, column(max(_longest(work), work.input_tokens.mean + work.output_tokens.mean)))
    rate, concurrency = _arrivals(known, path, work)
    travels = network_s(work)  # machines must be faster by what the round trip takes
    goals = {
        (kind, share_of(percentile)): limit - (travels if kind != "tpot" else 0.0)
        for kind in ("ttft", "tpot", "latency")
        if (stated := getattr(work.goals, kind)) is not None
        for percentile, limit in stated.limits
    }
    job = ServingJob(
        model=model_key(name),
        layer=layer_of(shape),
        input_len=work.input_tokens.mean,
        output_len=work.output_tokens.mean,
        prefix_len=work.shared_prefix_tokens or 0.0,
        precisions=_formats(work, extended.find_model(name).published_precision),
        headroom=work.headroom if isinstance(work, Serve) else 0.0,
        spared=spared_headroom(work) if isinstance(work, Serve) else 0.0,
        published=extended.find_model(name).published_precision,
        kv_precision=_cache_format(work),
        goals=goals,
        rate=rate,
        concurrency=concurrency,
        longest=_longest(work),
        least_replicas=float(max(work.replicas.min or 1, 1)) if isinstance(work, Serve) else 1.0,
        most_replicas=float(work.replicas.max or math.inf) if isinstance(work, Serve) else math.inf,
        least_rate=work.goals.throughput or 0.0 if isinstance(work, Serve) else 0.0,
        confidence=work.goals.confidence if isinstance(work, Serve) else None,
        burstiness=work.arrival.burstiness if isinstance(work, Serve) else 1.0,
        sigmas=(spread(work.input_tokens)[0], spread(work.output_tokens)[0]),
    )
    return extended, job


def _formats(work: Serve | Batch, published: str) -> tuple[str, ...]:
    """Of the weights. Among those that limits allow, the ones that no engine has are passed over."""
    if work.precision is not None:
        return _served("precision", (str(work.precision),), WEIGHT_BITS)
    if work.limits.precision:
        return _served("limits.precision", serving_formats([*map(str, work.limits.precision)]), WEIGHT_BITS)
    return SERVING_PRECISIONS.get(published, SERVING_PRECISIONS[""])


def _unasked(work: Serve | Batch, published: str) -> tuple[str, ...]:
    """Narrower formats that are looked at for what they would save."""
    return () if work.precision is not None or work.limits.precision else NARROWER.get(published, ())


def _cache_format(work: Serve | Batch) -> str | None:
    asked = work.kv_precision if isinstance(work, Serve) else None
    return _served("kv_precision", (str(asked),), KV_BITS)[0] if asked is not None else None


def _served(field: str, wanted: tuple[str, ...], bits: Mapping[str, float]) -> tuple[str, ...]:
    known = tuple(one for one in wanted if one in bits)
    if not known:
        formats = ", ".join(one for one in Precision if one in bits)
        raise BadInput(f"{field}: no engine serves language models in {' or '.join(wanted)}.", remedy=f"Allowed: {formats}.")
    return known


def _offer_rules(work: Serve | Batch, known: Known) -> Rules:
    return with_spot_default(rules_of(known, work.limits), work)


def generation_shapes(ground: PlanGround, work: Serve | Batch, known: Known) -> tuple[Allowed, Index]:
    """Offers that may be used, and their shapes that an engine for language models runs on."""
    ok = allowed(ground.fleet, _offer_rules(work, known), ground.market.prices)
    shapes = shapes_offered(ground.fleet, ok.priced)
    able = np.array([ground.fleet.part(at).kind not in _NO_ENGINE for at in shapes.tolist()], dtype=bool)
    return ok, shapes[able]


def plan_generation(known: Known, path: str, work: Serve | Batch, objective: str | None, top: int) -> Plan:
    extended, job = generation_job(known, path, work)
    ground = ground_for(extended, wide=True)
    online = isinstance(work, Serve)
    ok, shapes = generation_shapes(ground, work, extended)
    rules = rules_of(extended, work.limits)
    limits = chip_limits(work.limits)
    unasked = _unasked(work, job.published)
    wider = replace(job, precisions=(*job.precisions, *unasked))
    rows = generation.search(wider, ground.fleet, extended.model, shapes.tolist(), limits)
    best = generation.best(rows, online, work.goals.sure_enough)
    chips = np.array([one.chips for one in ground.fleet.shapes])[rows.shape]
    fewer: list[AtLess] = []
    if isinstance(work, Serve):
        replicas, loaded = rows.replicas, at_load(job, ground.fleet, extended.model, rows, best)
        seconds = np.full(len(best), serving_hours(work) * 3600.0)
        shape_at, machines = rows.shape[best], rows.machines[best]
        low = high = seconds
        back, busy_chips = best, (rows.replicas * rows.tp * rows.pp)[best]
        working_w = loaded.chip_w
        fewer = at_less(job, ground.fleet, extended.model, rows, best, quieter_loads(extended, work, path))
    else:
        assert isinstance(work, Batch)
        loaded = when_full(job, ground.fleet, extended.model, rows, best)
        replicas = np.maximum(np.floor(chips / (rows.tp * rows.pp)), 1.0)
        span = np.ceil(rows.tp * rows.pp / np.maximum(chips, 1)).astype(np.intp)  # machines of one replica
        counts_by_row = [machine_counts(int(chips[row]), limits, span=int(span[row])) for row in best.tolist()]
        lengths = [len(counts) for counts in counts_by_row]
        back = np.repeat(best, lengths)
        machines = np.array([count for counts in counts_by_row for count in counts], dtype=np.float64)
        working_w = np.repeat(loaded.chip_w, lengths)
        busy_chips = machines * np.minimum(replicas * rows.tp * rows.pp, chips)[back]
        shape_at = rows.shape[back]
        seconds = work.items / (rows.per_machine[back] * machines)
        low, high = seconds / rows.spread[back], seconds * rows.spread[back]
    idle_chips = np.maximum(chips[back] * machines - busy_chips, 0.0)
    way = Work(
        shape=shape_at,
        machines=machines,
        seconds=seconds,
        low=low,
        high=high,
        power_w=working_w * busy_chips + at_rest_w(ground.fleet, shape_at) * idle_chips,
        apart=(rows.tp * rows.pp <= chips)[back],
        monthly=online,
    )
    priced = price(way, ok.priced, ground.market, None, work.data)

    latencies = {f"{kind} p{100 * share:g}": values for (kind, share), values in loaded.seconds.items()}

    def describe(index: int) -> Described:
        row = int(back[index])
        inside = max(int(chips[row] // (rows.tp[row] * rows.pp[row])), 1)
        copies = int(replicas[row]) if online else inside * int(machines[index])
        split = GenerationSplit(int(rows.tp[row]), int(rows.pp[row]), copies)
        latency = {name: float(values[index]) for name, values in latencies.items()}  # online, `index` counts rows of `best`
        return Described(
            precision=rows.precision.name_at(row),
            split=split,
            memory_share=float(rows.filled[row]),
            provenance=rows.provenance.name_at(row),
            rate=float(loaded.rate[index]) if online else float(rows.rate[row]),
            planned=float(rows.rate[row]),
            headroom=float(rows.headroom[row]) if online and rows.headroom[row] < job.headroom else None,
            at_less=fewer[index] if online else (),
            replicas=copies,
            latency=latency,
            answer_s={name: float(part[index]) for name, part in loaded.answer_s.items()},
            rate_spread=float(rows.spread[row]),
            request_chance=float(rows.chance[row]) if job.goals else None,
            load_chance=float(loaded.chance[index]) if loaded.chance is not None else None,
        )

    tokens = job.input_len + job.output_len
    mean = work.arrival.rate if isinstance(work, Serve) else None  # machines are for the peak, tokens come at the mean
    arriving = mean or (float(np.median(rows.rate[best] * rows.replicas[best])) if len(best) else 0.0)
    units = (work.items if isinstance(work, Batch) else arriving * float(seconds[0]) if len(seconds) else 0.0) * tokens
    case = PlanningCase(
        workload=work.name,
        kind=work.kind,
        per="month" if online else "job",
        units=units / 1e6,
        unit="million tokens",
        goals=asked_goals(extended, work, rules, objective, online),
        stored=None if online else stored(ground.tiers, work, units / 1e6),
        layered=layered_of(extended, work, path),
        following=following_of(extended, work, path),
        room=(rows.rate * rows.replicas)[best] if online else None,
        peak=job.rate if online else 0.0,
        chance=rows.chance[back] if job.goals else None,
        unasked=rows.precision.look_up(lambda name: float(name in unasked))[back] > 0 if unasked else None,
        reach=reach_of(extended, work, ground.fleet.catalog) if online else None,
        data=work.data,
    )
    splits = rows.counts if online else np.array([len(machine_counts(each, limits)) for each in chips.tolist()], dtype=np.intp)
    tested = (rows.predicted > 0).astype(np.intp)
    minimum = Work(
        shape=rows.shape,
        machines=np.ceil(rows.tp * rows.pp / chips),
        seconds=rows.rate,
        low=rows.rate,
        high=rows.rate,
        power_w=rows.rate,
    )
    considered, estimated = (
        tally(ground.fleet, ok.offers, minimum, one) for one in (splits, tested if online else tested * splits)
    )
    counted = Counts(considered, considered - estimated, estimated)
    searched = missing.Searched(ground.fleet, extended.model, shapes.tolist(), limits)
    asked = rows.only(rows.precision.look_up(lambda name: float(name not in unasked)) > 0) if unasked else rows
    lacks = missing.none_offered(ok, _offer_rules(work, extended), ground.fleet, ground.market.prices) or limits_of_serving(
        job, asked, searched
    )
    reasons: dict[str, Reason] = {family_of(part): NoEngine() for part in ground.fleet.parts if part.kind in _NO_ENGINE}
    reasons |= unable(job, asked, searched)
    ok = replace(ok, refused=(*ok.refused, *refused_replicas(ground.fleet, ok.offers, asked, job)))

    def reason(some: Sequence[int]) -> Reason:
        able = [at for at in some if ground.fleet.part(at).kind not in _NO_ENGINE]
        return reason_of(job, replace(searched, shapes=able)) if able else NoEngine()

    grounds = Grounds(_offer_rules(work, extended), reason)
    plan = assemble(case, ground.fleet, priced, describe, ok, lacks, counted, top, reasons, grounds)
    return with_quality(plan, extended.catalog, job.model)


def _arrivals(known: Known, path: str, work: Serve | Batch) -> tuple[float, float]:
    """Requests per second at the peak, or callers at once; offline neither."""
    if isinstance(work, Batch):
        return 0.0, 0.0
    if work.arrival.concurrency is not None:
        return 0.0, float(work.arrival.concurrency)
    return arrivals(known, work, path).curve.peak, 0.0


def _longest(work: Serve | Batch) -> float:
    """Tokens of the longest sequence that must be accepted."""
    assert work.input_tokens is not None
    assert work.output_tokens is not None
    stated = getattr(work, "context", None)
    return float(
        stated or (work.input_tokens.max or work.input_tokens.mean) + (work.output_tokens.max or work.output_tokens.mean)
    )


def serving_hours(work: Serve) -> float:
    """Of a month, in which it is on."""
    return float(work.schedule.hours_per_week or HOURS_PER_WEEK) * _WEEKS
