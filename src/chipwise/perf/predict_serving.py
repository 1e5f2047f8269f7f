"""Predicts generation: time to first token, time per token, latency and throughput, over arrays of candidates.

Where requests come at a rate, the fitted formulas give the times of a prompt and of a step (`service`), and `queueing` what
waiting makes of them: `under_load` has the percentiles and the highest rate that keeps goals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf.arrays import Array, Coded, Index, column, combinations, cut, has_nonzero, pick
from chipwise.perf.family_inference import FLOORS, TERM_OF, ServingNames, arithmetic, features, grouped, settings_of, warmth
from chipwise.perf.hardware import Hardware
from chipwise.perf.inference import RATIOS, Serving
from chipwise.perf.memory_serving import kv_budget_bytes, kv_bytes
from chipwise.perf.model import Estimate, Joining, Model
from chipwise.perf.part import Part
from chipwise.perf.pooling import Groups
from chipwise.perf.power import Power, power
from chipwise.perf.published_inference import (
    APART,
    BARE,
    FUSED,
    PLAIN,
    SCHEDULED,
    SERVED,
    answer_kind,
    read_bytes,
    usual_engine,
)
from chipwise.perf.published_inference import EAGER as EAGER
from chipwise.perf.question import Question
from chipwise.perf.queueing import GRID, Service, Traffic, waits
from chipwise.perf.queueing import in_flight as queued_in_flight
from chipwise.perf.serving import SCENARIOS, TIMES, Load, answer, bases, full_step, in_flight, unit
from chipwise.perf.setup import KV_BITS, WEIGHT_BITS, ServingSetup
from chipwise.perf.setup_rules import Rows
from chipwise.perf.transformer import Transformers

CHUNK = 32768
METRICS = ("ttft_ms", "tpot_ms", "latency_ms", "output_tokens_per_s", "total_tokens_per_s", "requests_per_s")
_LIMITS = {"tensorrt-llm": 2048.0, "vllm": 1024.0, "sglang": 1024.0, "neuron": 64.0, "llama.cpp": 64.0}  # sequences at once
_WAITS = ("waiting", "slots", "arrival")  # terms in which no chip works for the answer
# Shares of peak while prompts are read, and while weights and cache are; every step moves some bytes besides (`drawn`).
PROMPT_SHARE, READ_SHARE, OTHER_READS = 0.5, 0.8, 0.2
LEAST_PROMPT = 0.3  # of the time that a lone prompt takes: what the server spends on a prompt at least
_UNIT, _ENDLESS = column(1.0), column(np.inf)
_HEAD_BYTES = {"fp32": 4.0, "q4_k_m": 0.82, "q8_0": 1.06}
_FORMAT = {"awq": "int4", "gptq": "int4", "nf4": "int4", "mxfp8": "fp8", "q6_k": "q8_0", "q5_k_m": "q4_k_m"}


@dataclass(frozen=True, slots=True)
class Generation:
    """What is asked: one replica's setup, how it is loaded, how many replicas."""

    model: Transformers
    name: Coded
    hardware: Hardware
    setup: ServingSetup
    scenario: Coded  # one of SCENARIOS
    rate: Array  # requests per second over all replicas (open)
    replicas: Array
    traffic: Traffic = field(default_factory=Traffic)  # how requests vary (open)

    def __len__(self) -> int:
        columns = (self.model.layers, self.name, self.hardware, self.setup, self.scenario, self.rate, self.replicas)
        return max(len(one) for one in columns)

    def rows(self, selection: slice | Index) -> Generation:
        return Generation(
            model=self.model.rows(selection),
            name=self.name.rows(selection),
            hardware=self.hardware.rows(selection),
            setup=self.setup.rows(selection),
            scenario=self.scenario.rows(selection),
            rate=cut(self.rate, selection),
            replicas=cut(self.replicas, selection),
            traffic=self.traffic.rows(selection),
        )


def usual_engines(hardware: Hardware) -> Coded:
    return hardware.part.map(lambda key: usual_engine(hardware.parts[key]))


def replica(ask: Generation) -> Serving:
    setup, hardware = ask.setup, ask.hardware
    weights = setup.precision_weights
    table = np.array(
        [
            [hardware.parts[key].rate(_arithmetic(name, hardware.parts[key])) for name in weights.names]
            for key in hardware.part.names
        ]
    )
    return Serving(
        model=ask.model,
        peak=table[hardware.part.index, weights.index],
        half_peak=hardware.rate(Coded.of("bf16")),
        bandwidth=hardware.get("bandwidth"),
        network=hardware.network(),
        tp=setup.attention_ways,
        dp=setup.attention_dp,
        pp=setup.pp,
        weight_bytes=setup.engine.cross(weights).look_up(_read_bytes),
        head_bytes=weights.look_up(lambda name: _HEAD_BYTES.get(name, 2.0)),
        cache_bytes=setup.precision_kv.look_up(lambda name: KV_BITS.get(name, 16.0) / 8),
        graphs=setup.cuda_graphs * setup.engine.look_up(lambda name: float(name not in EAGER)),
        fused=setup.engine.look_up(lambda name: float(name in FUSED)),
        plain=setup.engine.look_up(lambda name: float(name in PLAIN)),
        scheduled=setup.engine.look_up(lambda name: float(name in SCHEDULED)),
        bare=setup.engine.look_up(lambda name: float(name in BARE)),
        apart=setup.engine.look_up(lambda name: float(name in APART)),
        whole=np.maximum(setup.ep, setup.attention_dp),
    )


def _read_bytes(pair: str) -> float:
    engine, _, weights = pair.partition("|")
    return read_bytes(engine, weights, WEIGHT_BITS.get(weights, 16.0) / 8)


def _arithmetic(weights: str, part: Part) -> str:
    return arithmetic(_FORMAT.get(weights, weights), part)


def slots(ask: Generation) -> Array:
    """Sequences that the cache and the engine let run together."""
    setup = ask.setup
    single = setup.change(batch=column(1.0))
    capacity = ask.hardware.get("memory_bytes")
    room = kv_budget_bytes(ask.model, single, capacity)
    sequence_bytes = np.maximum(kv_bytes(ask.model, single), 1.0)
    limit = setup.engine.look_up(lambda name: _LIMITS.get(name, 256.0))
    return np.minimum(np.maximum(np.floor(room / sequence_bytes), 1.0), limit) * setup.attention_dp


def load(ask: Generation, metric: str, room: Array) -> Load:
    setup = ask.setup
    shared = ask.scenario.look_up(lambda name: float(name in ("full", "open")))
    return Load(
        scenario=ask.scenario,
        metric=Coded.of(metric),
        batch=pick(shared > 0, room, setup.batch),
        slots=room,
        input_len=setup.input_len,
        output_len=setup.output_len,
        rate=ask.rate / ask.replicas,
        requests=_ENDLESS,
        prefix=setup.prefix_len,
        beams=_UNIT,
    )


def _levels(ask: Generation, metric: str) -> Groups:
    """What rows have in common with measured ones, found once per combination of names."""
    kinds = Coded(("experts", "dense"), np.where(ask.model.has_experts, 0, 1))
    name_columns = (ask.hardware.part, ask.setup.precision_weights, ask.setup.engine, ask.scenario, kinds, ask.name)
    columns, rows = combinations(name_columns)
    if len(rows) == 1:
        return _one_row(metric, ask.hardware.parts[columns[0].name_at(0)], *(one.name_at(0) for one in columns[1:]))
    return grouped(_names(metric, *columns), ask.hardware.parts, rows)


@lru_cache(maxsize=4096)
def _one_row(metric: str, part: Part, *labels: str) -> Groups:
    """Who asks row by row asks for the same few names again and again."""
    names = _names(metric, *map(Coded.of, (part.name, *labels)))
    return grouped(names, {part.name: part}, np.zeros(1, dtype=np.intp))


def _names(metric: str, part: Coded, weights: Coded, engine: Coded, scenario: Coded, kind: Coded, model: Coded) -> ServingNames:
    return ServingNames(
        part=part,
        weights=weights.map(lambda name: _FORMAT.get(name, name)),
        engine=engine,
        version=engine,
        source=engine.map(lambda name: f"chipwise {name}" if name == "pytorch" else f"user {name}"),
        style=scenario.map(
            lambda name: SERVED if name in ("closed", "open", "full") else name
        ),  # the same server, however loaded
        kind=kind,
        model=model,
        split=Coded.of(""),
    )


def kind_of(scenario: Coded, metric: str, engine: Coded, batch: Array) -> Coded:
    """Which intervals hold."""
    alone = Coded(("loaded", "alone"), (batch <= 1.0).astype(np.intp)) if metric == "ttft_ms" else Coded.of("loaded")

    def band_name(names: str) -> str:
        way, crowd, software = names.split("|", 2)
        return answer_kind(way, crowd, metric, software)

    return scenario.cross(alone).cross(engine).map(band_name)


def _as_callers(ask: Generation, sequences: Array) -> Coded:
    """Requests that come at a rate are as sure as those of one caller, where at most one is in flight on average."""
    if "open" not in ask.scenario.names or not has_nonzero(ask.rate):
        return ask.scenario
    light = Coded(("more", "one"), np.asarray((sequences <= 1.0) & (ask.rate > 0), dtype=np.intp))
    return ask.scenario.cross(light).map(lambda name: "closed" if name == "open|one" else name.partition("|")[0])


def predict(
    ask: Generation,
    model: Model,
    metrics: Sequence[str] = ("ttft_ms", "tpot_ms", "output_tokens_per_s"),
    room: Array | None = None,
    serving: Service | None = None,
) -> dict[str, Estimate]:
    """`room` and `serving` are what `slots` and `service` give, where somebody asked before."""
    if not metrics:
        raise BadInput("No metric is asked for.", remedy=f"Allowed: {', '.join(METRICS)}.")
    for metric in metrics:
        if metric not in METRICS:
            raise BadInput(f"No metric is called {metric!r}.", remedy=f"Allowed: {', '.join(METRICS)}.")
    for name in ask.scenario.names:
        if name not in SCENARIOS:
            raise BadInput(f"No scenario is called {name!r}.", remedy=f"Allowed: {', '.join(SCENARIOS)}.")
    count = len(ask)
    alike = {metric: _levels(ask, metric) for metric in metrics}
    if count <= CHUNK:
        return _predict(ask, alike, model, slots(ask) if room is None else room, serving)
    joined = {metric: Joining(count) for metric in metrics}
    for start in range(0, count, CHUNK):
        selection = slice(start, start + CHUNK)
        piece = ask.rows(selection)
        free = slots(piece) if room is None else room if len(room) == 1 else room[selection]
        parts = _predict(piece, {metric: one.rows(selection) for metric, one in alike.items()}, model, free)
        for metric, part in parts.items():
            joined[metric].add(selection, part)
    return {metric: one.estimate() for metric, one in joined.items()}


def _predict(
    ask: Generation, alike: Mapping[str, Groups], model: Model, room: Array, serving: Service | None = None
) -> dict[str, Estimate]:
    run, any_metric = replica(ask), load(ask, METRICS[0], room)
    sequences = in_flight(run, any_metric)
    flowing = (any_metric.weights.open > 0) & (ask.rate > 0)
    if not has_nonzero(flowing):
        return _estimates(ask, alike, model, room, run, sequences)
    serving = serving or service(ask, model, room)
    rate = np.broadcast_to(ask.rate / ask.replicas, (len(ask),))
    loaded = waits(serving, rate, ("ttft", "latency"))
    sequences = pick(flowing, queued_in_flight(serving, rate, loaded), sequences)
    estimates = _estimates(ask, alike, model, room, run, sequences)
    later = (loaded.mean("latency") - loaded.mean("ttft")) / np.maximum(serving.answer_tokens - 1.0, 1.0)
    answer_s = np.where(serving.answer_tokens > 1.0, loaded.mean("latency"), loaded.mean("ttft"))
    means = {"ttft_ms": loaded.mean("ttft"), "tpot_ms": later, "latency_ms": answer_s}
    answered = np.maximum(1.0 / np.maximum(rate, 1e-12), 1.0 / serving.capacity)
    moved = {
        metric: _moved(one, pick(flowing, means.get(metric, answered), one.seconds), metric)
        for metric, one in estimates.items()
    }
    for metric in (name for name in moved if name not in TIMES):
        moved[metric] = _as_offered(estimates[metric], moved[metric], flowing, rate, serving.capacity)
    return moved


def _moved(estimate: Estimate, seconds: Array, metric: str) -> Estimate:
    """The estimate with the mean time that queueing gives: a first token waits for the rest, tokens for prompts of others."""
    share = seconds / estimate.seconds
    times = metric in TIMES
    gap, terms = seconds - estimate.seconds, dict(estimate.terms)
    prompts = [name for name in terms if name.startswith("prefill")]
    absorbing = prompts if metric == "tpot_ms" else ["arrival"] if not times else ["waiting"]
    room: Array = sum((terms[name] for name in absorbing), np.zeros(1))
    fits = room + gap >= 0
    even = np.maximum(room, 1e-300)
    for name, values in terms.items():
        if name in absorbing:
            part = values / even if len(absorbing) > 1 else 1.0
            lacking = np.where(room > 0, part, 1.0 / len(absorbing))
            terms[name] = np.where(fits, values + gap * lacking, values * share)
        else:
            terms[name] = np.where(fits, values, values * share)
    scale = share if times else 1.0 / share
    return replace(
        estimate,
        value=estimate.value * scale,
        low=np.maximum(estimate.low * scale, estimate.minimum * 1e3) if times else estimate.low * scale,
        high=estimate.high * scale,
        seconds=seconds,
        terms=terms,
    )


def _as_offered(full: Estimate, moved: Estimate, flowing: Rows, rate: Array, capacity: Array) -> Estimate:
    """As much is answered as comes, where that is less than the capacity: only the capacity is uncertain."""
    amount = full.value * full.seconds  # what one request a second of each replica amounts to
    low, high = (np.minimum(capacity * end / full.value, rate) * amount for end in (full.low, full.high))
    return replace(
        moved,
        low=np.where(flowing, np.minimum(low, moved.value), moved.low),
        high=np.where(flowing, np.maximum(high, moved.value), moved.high),
    )


def service(ask: Generation, model: Model, room: Array | None = None) -> Service:
    """What one replica does in which time, as fitted. A replica that is full answers what the fit of full ones says, so that
    there is one capacity: what steps leave of it is the server's time for a prompt."""
    count = len(ask)
    room = slots(ask) if room is None else room
    full, opened = (replace(ask, scenario=Coded.of(name), rate=column(0.0)) for name in ("full", "open"))
    run, alone = replica(ask), column(1.0)
    full_rate = _predict(full, {"requests_per_s": _levels(full, "requests_per_s")}, model, room)["requests_per_s"]
    request_s = np.broadcast_to(ask.replicas / full_rate.value, (count,))
    token_levels, first_levels = _levels(opened, "tpot_ms"), _levels(opened, "ttft_ms")
    first = _estimates(opened, {"ttft_ms": first_levels}, model, room, run, alone)["ttft_ms"]
    wide = np.broadcast_to(np.maximum(room, 1.0), (count,))
    batches = wide[:, None] ** (np.arange(GRID) / (GRID - 1))
    steps = np.empty((count, GRID))
    together = min(max(CHUNK // count, 1), GRID)
    for start in range(0, GRID, together):
        grid = batches[:, start : start + together]
        every = np.repeat(np.arange(count), grid.shape[1])
        some = opened.rows(every)
        token = _estimates(some, {"tpot_ms": token_levels.rows(every)}, model, cut(room, every), replica(some), grid.ravel())[
            "tpot_ms"
        ]
        steps[:, start : start + together] = (token.seconds - _prompts(token)).reshape(grid.shape)
    steps = np.maximum.accumulate(steps, axis=1)
    answer_tokens = np.broadcast_to(np.maximum(ask.setup.output_len, 1.0), (count,))
    own = np.broadcast_to(_prompts(first), (count,))
    # Where full steps alone would take longer than a request, both give way alike.
    served = np.maximum(request_s - answer_tokens * steps[:, -1] / wide, LEAST_PROMPT * own)
    squeezed = request_s / (served + answer_tokens * steps[:, -1] / wide)
    return Service(
        prompt_s=served * squeezed,
        batches=batches,
        steps_s=steps * squeezed[:, None],
        prompt_tokens=np.broadcast_to(np.maximum(ask.setup.input_len - ask.setup.prefix_len, 1.0), (count,)),
        answer_tokens=answer_tokens,
        fixed_s=np.broadcast_to(first.terms["fixed"], (count,)),
        extra_prompt_s=own - served * squeezed,
        traffic=ask.traffic.of_one(ask.replicas),
    )


def _prompts(estimate: Estimate) -> Array:
    return sum((values for name, values in estimate.terms.items() if name.startswith("prefill")), np.zeros(1))


def _estimates(
    ask: Generation, alike: Mapping[str, Groups], model: Model, room: Array, run: Serving, sequences: Array
) -> dict[str, Estimate]:
    """Every metric is made of the same work, of `sequences` together."""
    watts = warmth(ask.hardware.part, ask.hardware.parts)
    any_load = load(ask, METRICS[0], room)
    work, settings = bases(run, any_load, sequences), settings_of(run, any_load)
    full = full_step(run, any_load, work, sequences)
    estimates: dict[str, Estimate] = {}
    loaded = all(name in ("closed", "open") for name in ask.scenario.names)
    for metric, common in alike.items():
        if metric == "latency_ms" and loaded and "ttft_ms" in estimates and "tpot_ms" in estimates:
            estimates[metric] = _whole_answer(estimates["ttft_ms"], estimates["tpot_ms"], ask.setup.output_len)
            continue
        metric_load = load(ask, metric, room)
        scale, power = unit(metric_load)
        question = Question(
            bases=work,
            compose=partial(answer, metric_load, sequences, full=full),
            scale=pick(power < 0, scale * ask.replicas, scale),
            power=power,
            levels=common,
            features=features(run, metric_load, sequences, watts),
            term_of=TERM_OF,
            fixed_terms=("arrival",),
            ratios=RATIOS,
            floors=FLOORS,
            settings=settings,
        )
        kind = kind_of(_as_callers(ask, sequences), metric, ask.setup.engine, ask.setup.batch)
        estimates[metric] = model.estimate("inference", question, kind)
    if all(name == "closed" for name in ask.scenario.names):
        return _of_callers(ask, estimates)
    if "latency_ms" in estimates:
        return _within_answers(ask, estimates, estimates["latency_ms"].high)
    return estimates


def _of_callers(ask: Generation, estimates: dict[str, Estimate]) -> dict[str, Estimate]:
    """Callers who wait for their answers are answered as often as answers take (Little's law): one quantity, one interval."""
    rate = next((estimate for name, estimate in estimates.items() if name not in TIMES), None)
    latency = estimates.get("latency_ms")
    if rate is None or latency is None:
        return estimates
    per_s = ask.setup.batch * ask.replicas / latency.seconds
    agreed = dict(estimates)
    for name, estimate in estimates.items():
        if name not in TIMES:
            share = per_s * unit(load(ask, name, ask.setup.batch))[0] / estimate.value
            agreed[name] = replace(estimate, value=estimate.value * share, low=estimate.low * share, high=estimate.high * share)
    latest = latency.value * rate.value / rate.low
    agreed["latency_ms"] = replace(latency, low=latency.value * rate.value / rate.high, high=latest)
    return _within_answers(ask, agreed, latest)


def _within_answers(ask: Generation, estimates: Mapping[str, Estimate], latest: Array) -> dict[str, Estimate]:
    """No part of an answer takes longer than the whole of it, which takes at most `latest`."""
    agreed = dict(estimates)
    for name, parts in {"ttft_ms": _UNIT, "tpot_ms": np.maximum(ask.setup.output_len - 1.0, 1.0)}.items():
        if name in agreed:
            part = agreed[name]
            agreed[name] = replace(part, high=np.maximum(np.minimum(part.high, latest / parts), part.value))
    return agreed


def _whole_answer(first: Estimate, token: Estimate, output: Array) -> Estimate:
    """The first token and all that follow: the parts were asked already, and the whole must be their sum."""
    steps = np.maximum(output - 1.0, 0.0)
    terms = {name: values + steps * token.terms[name] for name, values in first.terms.items() if name in token.terms}
    terms |= {name: values for name, values in first.terms.items() if name not in token.terms}
    return Estimate(
        value=first.value + steps * token.value,
        low=first.low + steps * token.low,
        high=first.high + steps * token.high,
        seconds=first.seconds + steps * token.seconds,
        terms=terms,
        provenance=token.provenance,
        spread=np.maximum(first.spread, token.spread),
        minimum=first.minimum + steps * token.minimum,
    )


def drawn(ask: Generation, estimates: Mapping[str, Estimate]) -> Power:
    """Watts per chip while answers are made: those of a whole answer where `found` has it, without what it waits for."""
    answer = estimates.get("latency_ms") or next(iter(estimates.values()))
    worked = np.maximum(sum((values for name, values in answer.terms.items() if name not in _WAITS), np.zeros(1)), 1e-12)
    reading = (answer.terms["weights"] + answer.terms["cache"]) / worked
    computing = sum((values for name, values in answer.terms.items() if name.startswith("prefill")), np.zeros(1)) / worked
    compute, memory = np.minimum(PROMPT_SHARE * computing, 1.0), np.minimum(READ_SHARE * reading + OTHER_READS, 1.0)
    return power(ask.hardware.kind, ask.hardware.get("power_w"), compute, memory)
