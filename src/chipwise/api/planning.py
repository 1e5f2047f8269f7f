"""The verb `plan`: from a workload to a ranked, explained and priced choice of hardware."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.api import planning_kinds
from chipwise.api.estimating import own_model
from chipwise.api.plan_ground import budget_usd, market_of, stored, tiers_of
from chipwise.api.plan_rules import rules_of
from chipwise.api.predicting_kinds.ask import Ask, known_model
from chipwise.api.workloads import check
from chipwise.errors import BadInput
from chipwise.money.storage import Tiers
from chipwise.perf.arrays import Array
from chipwise.perf.rows import model_key
from chipwise.perf.setup import RECOMPUTE
from chipwise.perf.transformer import layer_of
from chipwise.plan import generation, learning
from chipwise.plan.assembling import Case, Described, Goals, assemble, family_of
from chipwise.plan.decision import Counts, Missing, Plan, Service
from chipwise.plan.fleet import Fleet, Index, fleet_of
from chipwise.plan.limits import Allowed, allowed
from chipwise.plan.pricing import Checkpoint, Market, Work, price, tally
from chipwise.units import MONTH
from chipwise.workload.kinds import Batch, Common, Finetune, Learning, Serve
from chipwise.workload.model.shape import DecoderShape, EncoderShape

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

SEQUENCE = 2048
ADAPTED = 64  # sequences per step of a fine-tuning that says nothing
TOP = 10
_WEEKS = MONTH / (7 * 86400.0)


@dataclass(frozen=True, slots=True)
class _Ground:
    """What every plan of a session stands on."""

    fleet: Fleet
    market: Market
    tiers: Tiers


def plan(
    session: Session, path: str, objective: str | None = None, top: int = TOP, environment: str | None = None,
    text: str | None = None,
) -> Plan:  # fmt: skip
    """`objective` over the file's own. A file with mistakes is told as `check` tells it; `text` stands for the file."""
    checked = check(session, path, environment, text=text)
    work = checked.workload
    if planning_kinds.handles(session, path, work):
        found = planning_kinds.plan_other(session, path, work, rules_of(session, work.limits), objective, top)
    elif isinstance(work, Learning):
        found = _plan_learning(session, path, work, objective, top)
    elif isinstance(work, Serve | Batch):
        found = _plan_generation(session, path, work, objective, top)
    else:
        kind = getattr(work, "kind", "this kind")
        raise BadInput(
            f"{kind} workloads are not planned yet.", remedy=f"chipwise predict {path} --on CHIP tells how one chip does."
        )
    if isinstance(work, Serve) and not work.devices and work.arrival.rate is not None:
        found = replace(found, services=_services(session, work, found, path))
    return replace(found, notes=(*found.notes, *checked.notes))


def _services(session: Session, work: Serve, found: Plan, path: str) -> tuple[Service, ...]:
    """What can be paid per use instead. A model that no service runs, or that none is known of, has none."""
    from chipwise.api.planning_services import services_for

    offers = services_for(session, work, found.winner or (), path)
    return tuple(
        Service(
            one.kind, one.provider, one.service, one.hardware, one.usd or 0.0, one.cold_share, one.told_break_even or "",
            tuple(one.assumed), tuple(one.refused),
        )
        for one in offers
        if one.cost is not None
    )  # fmt: skip


def _ground(session: Session) -> _Ground:
    known = session.resolved.get(("plan", "ground"))
    if known is None:
        known = session.resolved["plan", "ground"] = _lay_ground(session)
    found: _Ground = known
    return found


def _lay_ground(session: Session) -> _Ground:
    fleet = fleet_of(session.catalog, session.parts)
    return _Ground(fleet, market_of(fleet), tiers_of(session.catalog))


def _goals(work: Common, objective: str | None, per_month: bool) -> Goals:
    return Goals(objective or str(work.goals.objective), work.goals.deadline, budget_usd(work, per_month))


def _plan_learning(session: Session, path: str, work: Learning, objective: str | None, top: int) -> Plan:
    found, name, shape = known_model(Ask(session, path, "", {}), work)
    if not isinstance(shape, DecoderShape | EncoderShape):
        raise BadInput(f"Training of {name} is not planned yet.", remedy=f"chipwise predict {path} --on CHIP")
    ground = _ground(found)
    seq = int(work.sequence_length or SEQUENCE)
    tokens = (work.tokens or (work.samples or 0.0) * seq) * work.epochs
    asked = work.batch_samples or (work.batch_tokens or 0.0) / seq
    batch = max(round(asked) if asked else _usual_batch(work, shape.parameters, seq), 1)
    layer = layer_of(shape)
    job = learning.LearningJob(
        model=model_key(name), layer=layer, tokens=tokens, seq=seq, batch=batch,
        method=work.method.value if isinstance(work, Finetune) else "full",
        rank=int(work.rank or 16) if isinstance(work, Finetune) else 16, optimizer=work.optimizer.value,
        precisions=(work.precision.value,),
        recompute=(RECOMPUTE[work.recompute.value],) if work.recompute is not None else (0, 1, 2),
    )  # fmt: skip
    ok = allowed(ground.fleet, rules_of(found, work.limits))
    shapes = shapes_offered(ground.fleet, ok.offers)
    limits = (work.limits.chip_count.min or 1, work.limits.chip_count.max or learning.MOST_CHIPS)
    ways = learning.search(job, ground.fleet, own_model(found), shapes.tolist(), limits)
    trained = shape.parameters if job.method == "full" else 0.01 * shape.parameters
    checkpoint = Checkpoint(trained * 14.0, every_s=work.checkpoint_every)
    data = work.data
    work_of = Work(ways.shape, ways.machines, ways.seconds, ways.low, ways.high, ways.power_w)
    moved = data.size if data and data.place else 0.0
    priced = price(work_of, ok.offers, ground.market, checkpoint, data.place if data else None, moved)

    def describe(at: int) -> Described:
        split = ways.split[at]
        share = float(ways.memory[at]) / ground.fleet.shapes[ways.shape[at]].memory_bytes
        return Described(ways.precision.at(at), split._asdict() if split else {}, share, ways.provenance[at])

    considered, estimated = (tally(ground.fleet, ok.offers, work_of, one) for one in (ways.splits, ways.predicted))
    case = Case(work.name, work.kind if isinstance(work, Finetune) else "train", "job", tokens / 1e6, "million tokens",
                _goals(work, objective, False), stored(ground.tiers, work, tokens / 1e6))  # fmt: skip
    counts = Counts(considered, considered - estimated, estimated)
    notes = () if asked else (f"Batch of {batch:,} sequences assumed: {batch * seq:,} tokens a step.",)
    missing = _none_offered(ok, job.precisions, len(ways.shape)) or _memory_missing(ground.fleet, ways)
    unable = _unable(ground.fleet, shapes, ways.shape, ways.short)
    made = assemble(case, ground.fleet, priced, describe, ok.refused, missing, counts, top, unable)
    return replace(made, notes=(*made.notes, *notes))


def shapes_offered(fleet: Fleet, offers: Index) -> Index:
    """Each once. (`np.unique` alone would import what 25 ms of a cold start go into.)"""
    shape = fleet.shape_of[np.frombuffer(fleet.catalog.offers.machine, dtype=np.int32)[offers]]
    return np.flatnonzero(np.bincount(shape, minlength=len(fleet.shapes)))


def _usual_batch(work: Learning, parameters: float, seq: int) -> int:
    """Half a million tokens below a billion parameters, two up to thirteen, four above, as published runs have it."""
    if isinstance(work, Finetune):
        return ADAPTED
    tokens = 0.5e6 if parameters < 1.5e9 else 2e6 if parameters < 14e9 else 4e6
    return int(2 ** round(math.log2(tokens / seq)))


def _unable(fleet: Fleet, offered: Index, shape: Index, short: Array) -> dict[str, str]:
    """Why families that are on offer have no way: no arithmetic of the asked kind, too little memory, or no rate in time."""
    found: dict[str, str] = {}
    for at in offered.tolist():
        family = family_of(fleet.part(at))
        mine = short[shape == at]
        if not len(mine):
            found.setdefault(family, "no arithmetic in the asked precision, or no split of that many chips")
        elif mine.min() > 0:
            best = f"lacks {mine.min() / 1e9:.1f} GB of memory a chip at best"
            if family not in found or best < found[family]:
                found[family] = best
        else:
            found[family] = "keeps no latency goal at any rate"
    return found


def _none_offered(ok: Allowed, precisions: Sequence[str], ways: int) -> list[Missing]:
    if not len(ok.offers):
        last = ok.refused[-1]
        return [
            Missing("offers", f"no offer is left: the last {last.offers:,} were refused as {last.rule!r}", "a looser limit")
        ]
    if not ways:
        told = f"none of the chips allowed computes in {' or '.join(precisions)}, or comes in the numbers allowed"
        return [Missing("precision", told, "another precision (fp16 on older GPUs), other chips, or a wider limits.chip_count")]
    return []


def _memory_missing(fleet: Fleet, ways: learning.Ways) -> list[Missing]:
    lacking = np.flatnonzero(ways.short > 0)
    if not len(lacking) or np.isfinite(ways.seconds).any():
        return []
    at = int(lacking[np.argmin(ways.short[lacking])])
    shape = fleet.shapes[ways.shape[at]]
    told = f"{ways.machines[at]:g} x {shape.chips} {shape.part} lack {ways.short[at] / 1e9:.1f} GB a chip, the least of all"
    return [Missing("memory", told, "more chips, adapters (method: lora or qlora), or a shorter sequence")]


def _plan_generation(session: Session, path: str, work: Serve | Batch, objective: str | None, top: int) -> Plan:
    found, name, shape = known_model(Ask(session, path, "", {}), work)
    if not isinstance(shape, DecoderShape) or work.input_tokens is None or work.output_tokens is None:
        raise BadInput(f"Serving {name} is not planned yet.", remedy=f"chipwise predict {path} --on CHIP")
    ground = _ground(found)
    online = isinstance(work, Serve)
    rate, concurrency = _arrivals(work)
    goals = {
        (kind, min(percentile / 100, 0.9999)): limit
        for kind in ("ttft", "tpot", "latency")
        if (stated := getattr(work.goals, kind)) is not None
        for percentile, limit in stated.limits
    }
    formats = tuple(str(one) for one in work.limits.precision) or ("bf16", "fp8")
    job = generation.ServingJob(
        model=model_key(name), layer=layer_of(shape), input_len=work.input_tokens.mean, output_len=work.output_tokens.mean,
        prefix_len=work.shared_prefix_tokens or 0.0,
        precisions=(str(work.precision),) if work.precision is not None else formats,
        kv_precision=str(work.kv_precision) if isinstance(work, Serve) and work.kv_precision else None, goals=goals,
        rate=rate, concurrency=concurrency, longest=_longest(work),
        least_replicas=float(max(work.replicas.min or 1, 1)) if isinstance(work, Serve) else 1.0,
    )  # fmt: skip
    rules = rules_of(found, work.limits)
    if online and rules.interruptible is None:  # people wait for answers: machines that vanish must be asked for
        rules = replace(rules, interruptible=False)
    ok = allowed(ground.fleet, rules)
    shapes = shapes_offered(ground.fleet, ok.offers)
    most = work.limits.chip_count.max or learning.MOST_CHIPS
    rows = generation.search(job, ground.fleet, own_model(found), shapes.tolist(), (work.limits.chip_count.min or 1, most))
    best = generation.best(rows, online)
    chips = np.array([one.chips for one in ground.fleet.shapes])[rows.shape]
    power = np.array([ground.fleet.part(at).power_w for at in range(len(ground.fleet.shapes))])[rows.shape]
    if online:
        replicas = rows.replicas
        hours = (work.schedule.hours_per_week or 168.0) * _WEEKS
        seconds = np.full(len(best), hours * 3600.0)
        shape_at, many = rows.shape[best], rows.machines[best]
        low = high = seconds
        back = best
    else:
        assert isinstance(work, Batch)
        counts = np.array(learning.COUNTS, dtype=np.float64)
        replicas = np.maximum(np.floor(chips / (rows.tp * rows.pp)), 1.0)
        back = np.repeat(best, len(counts))
        many = np.tile(counts, len(best))
        across = np.ceil(rows.tp * rows.pp / np.maximum(chips, 1))[back]  # machines of one replica
        fine = (many * chips[back] <= most) & (many % across == 0)
        back, many = back[fine], many[fine]
        shape_at = rows.shape[back]
        seconds = work.items / (rows.per_machine[back] * many)
        low, high = seconds / rows.spread[back], seconds * rows.spread[back]
    data = work.data
    way = Work(
        shape_at, many, seconds, low, high, power[back] * chips[back] * many * 1.2,
        apart=(rows.tp * rows.pp <= chips)[back], monthly=online,
    )  # fmt: skip
    priced = price(way, ok.offers, ground.market, None, data.place if data else None, data.size if data and data.place else 0.0)

    def describe(at: int) -> Described:
        row = int(back[at])
        inside = max(int(chips[row] // (rows.tp[row] * rows.pp[row])), 1)
        held = int(replicas[row]) if online else inside * int(many[at])
        split = {"tp": int(rows.tp[row]), "pp": int(rows.pp[row]), "replicas": held}
        return Described(rows.precision.at(row), split, None, rows.provenance.at(row), float(rows.rate[row]), held)

    tokens = job.input_len + job.output_len
    arriving = rate or (float(np.median(rows.rate[best] * rows.replicas[best])) if len(best) else 0.0)
    units = (work.items if isinstance(work, Batch) else arriving * float(seconds[0]) if len(seconds) else 0.0) * tokens
    case = Case(work.name, work.kind, "month" if online else "job", units / 1e6, "million tokens",
                _goals(work, objective, online), None if online else stored(ground.tiers, work, units / 1e6))  # fmt: skip
    each = (
        rows.counts
        if online
        else np.array([sum(n * k <= most for n in learning.COUNTS) for k in chips.tolist()], dtype=np.intp)
    )
    held = (rows.fits > 0).astype(np.intp)
    over = Work(rows.shape, np.ceil(rows.tp * rows.pp / chips), rows.rate, rows.rate, rows.rate, rows.rate)
    considered, estimated = (tally(ground.fleet, ok.offers, over, one) for one in (each, held if online else held * each))
    counted = Counts(considered, considered - estimated, estimated)
    missing = _none_offered(ok, job.precisions, len(rows.shape)) or _serving_missing(ground.fleet, rows, goals)
    unable = _unable(ground.fleet, shapes, rows.shape, np.where(rows.fits > 0, 0.0, rows.short))
    return assemble(case, ground.fleet, priced, describe, ok.refused, missing, counted, top, unable)


def _arrivals(work: Serve | Batch) -> tuple[float, float]:
    """Requests per second, or callers at once; offline neither."""
    if isinstance(work, Batch):
        return 0.0, 0.0
    if work.arrival.trace is not None:
        raise BadInput("Recorded arrivals are not planned yet.", remedy="Give their mean: arrival: {rate: 10 req/s}.")
    return work.arrival.rate or 0.0, float(work.arrival.concurrency or 0)


def _longest(work: Serve | Batch) -> float:
    """Tokens of the longest sequence that must be accepted."""
    assert work.input_tokens is not None
    assert work.output_tokens is not None
    stated = getattr(work, "context", None)
    return float(
        stated or (work.input_tokens.max or work.input_tokens.mean) + (work.output_tokens.max or work.output_tokens.mean)
    )


def _serving_missing(fleet: Fleet, rows: generation.Serving, goals: dict[tuple[str, float], float]) -> list[Missing]:
    found = []
    if not (rows.fits > 0).any() and len(rows.shape):
        at = int(np.argmin(rows.short))
        told = f"{fleet.shapes[rows.shape[at]].part} with tp {rows.tp[at]:g} lacks {rows.short[at] / 1e9:.1f} GB a chip"
        found.append(Missing("memory", told, "fp8 or int4 weights, or a wider split"))
    elif not (rows.rate > 0).any():
        told = ", ".join(f"{name} p{share * 100:g} {limit * 1e3:g} ms" for (name, share), limit in goals.items())
        found.append(
            Missing("latency", f"no machine keeps {told} at any rate", "a looser goal, fp8 weights or a smaller model")
        )
    return found
