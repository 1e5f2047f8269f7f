"""How fast one instance of a serverless service answers: seconds and percentiles by precision and concurrency.

GPUs: the performance model of the chip, all services in one question. Where the platform decides which of several chips
comes, the slowest counts. Processors: nobody states which one a function runs on, so an older common one is taken, and the
share of it that the vCPUs are (`perf.kernels.processor`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import floor, log2
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.errors import BadInput
from chipwise.money.serverless import Service
from chipwise.perf.arrays import Array, column
from chipwise.perf.kernels import processor
from chipwise.perf.kernels.chips import BYTES
from chipwise.perf.memory_serving import kv_budget_bytes, kv_bytes, kv_bytes_per_token, weight_bytes
from chipwise.perf.part import Part
from chipwise.perf.setup import WEIGHT_BITS, ServingSetup
from chipwise.perf.transformer import Layer, Transformers, layer_of
from chipwise.perf.under_load import percentiles
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import NoPrecision, NoSpeed, Unpredicted
from chipwise.planner.reasons.sizes import DoesNotFit, HoldsTooLittle
from chipwise.predictor.sampled import Sampled
from chipwise.predictor.samples import predict_samples, resolve
from chipwise.predictor.transformer import serve
from chipwise.units import GIB, MIB
from chipwise.workload.model.shape import DecoderShape, Shape

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

CONCURRENCY = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # requests that one instance may work on at a time
X86, ARM = "Xeon-Ice-Lake", "Graviton2"
VCPU_BYTES = 1769 * MIB  # a function gets one vCPU for so much memory (AWS Lambda, developer guide)
MOST_VCPUS = 8.0  # of a container without a GPU; platforms state more seldom than not
MOST_MEMORY_BYTES = 32 * GIB  # likewise
UNSTATED_FUNCTION_BYTES = 1.5 * GIB  # of a function that states no limit: Azure's consumption plan
RUNTIME_BYTES = 1 * GIB  # interpreter and libraries beside the weights
WIDEST = 8  # tensor parallel
KEPT = 4  # answers; each is a few thousand speeds


@dataclass(frozen=True, slots=True)
class Need:
    """What a request is like. `shares`: percentiles that somebody will ask for."""

    input_tokens: float
    output_tokens: float  # 0: nothing is generated
    prefix_tokens: float
    context: float  # that must fit
    precisions: tuple[str, ...]
    asked: bool  # the workload names them; else they are the usual ones
    kv_precision: str | None
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Speed:
    """Of one warm instance."""

    precision: str
    concurrency: int
    seconds: float  # mean, from the request's arrival to its last token
    warm: Mapping[str, Mapping[float, float]]  # ttft, tpot, latency -> share of the requests -> seconds
    weights_bytes: float
    memory_bytes: float  # of the GPUs, or of the function
    vcpus: float | None = None  # None: beside a GPU, as usual
    alone: Mapping[str, Mapping[float, float]] = field(default_factory=dict)  # as `warm`, of a request alone
    spread: Mapping[str, float] = field(default_factory=dict)  # nine times of ten it takes at most so many times as long


Found = tuple[Speed, ...] | Reason  # a reason: why there is none


def speeds(known: Known, model: str, shape: Shape, need: Need, services: Sequence[Service]) -> tuple[Found, ...]:
    """By service. The last answers are kept: plans for the same requests differ in how many come, and in limits and goals."""
    kept: dict[tuple[str, Shape, Need], tuple[Found, ...]] = known.memo.setdefault(("services", "speeds"), {})
    key = (model, shape, need)
    if key not in kept:
        if len(kept) >= KEPT:
            del kept[next(iter(kept))]
        kept[key] = _speeds(known, model, shape, need, services)
    return kept[key]


def _speeds(known: Known, model: str, shape: Shape, need: Need, services: Sequence[Service]) -> tuple[Found, ...]:
    generates = isinstance(shape, DecoderShape) and need.output_tokens >= 1
    kinds = list(dict.fromkeys((one.chips, one.gpus) for one in services if one.chips))
    on_gpus = (_generation if generates else _samples)(known, model, shape, need, kinds)

    @cache  # services differ in memory and price, seldom in the processor
    def work_on(part: Part, precision: str | None) -> _ProcessorWork:
        return _processor_work(known, model, shape, need, part, precision)

    return tuple(
        on_gpus[service.chips, service.gpus] if service.chips else _on_processor(known, model, shape, need, service, work_on)
        for service in services
    )


Kind = tuple[tuple[str, ...], float]  # chips of which one comes, and how many of it


def _generation(known: Known, model: str, shape: Shape, need: Need, kinds: Sequence[Kind]) -> dict[Kind, Found]:
    assert isinstance(shape, DecoderShape)
    layer = layer_of(shape)
    by_kind: dict[Kind, Found] = {}
    rows: list[tuple[Kind, str, str, int, int]] = []
    for kind in kinds:
        chips, gpus = kind
        parts = [known.parts.find(chip) for chip in chips]
        stated = [part for part in parts if part is not None and not part.unstated]
        if len(stated) < len(chips):
            by_kind[kind] = NoSpeed(chips)
            continue
        able = [one for one in need.precisions if one in WEIGHT_BITS and all(_runs(part, one) for part in stated)]
        if not able:
            by_kind[kind] = NoPrecision(need.precisions, chip=" or ".join(chips))
            continue
        splits = _splits(layer, gpus)
        rows += [(kind, chip, name, ways, many) for chip in chips for name in able for ways in splits for many in CONCURRENCY]
    if not rows:
        return by_kind
    served = serve(
        known,
        model,
        on=[row[1] for row in rows],
        concurrency=[float(row[4]) for row in rows],
        tp=[float(row[3]) for row in rows],
        chips_per_node=[float(max(row[3], row[0][1])) for row in rows],
        precision_weights=[row[2] for row in rows],
        precision_kv=need.kv_precision or "bf16",
        input_len=round(need.input_tokens),
        output_len=round(need.output_tokens),
        prefix_len=round(need.prefix_tokens),
        metrics=("ttft_ms", "tpot_ms", "latency_ms"),
        fit=False,
    )
    ask = served.ask
    count = len(rows)
    longest = ask.setup.change(batch=column(1.0), input_len=column(max(need.context - round(need.output_tokens), 1.0)))
    capacity = ask.hardware.get("memory_bytes")
    lack = np.broadcast_to(
        np.maximum(*(kv_bytes(ask.model, one) - kv_budget_bytes(ask.model, one, capacity) for one in (ask.setup, longest))),
        count,
    )
    weights = np.broadcast_to(weight_bytes(ask.model, ask.setup) * ask.setup.tp, count).tolist()
    latencies = percentiles(ask, known.model, served.metrics, need.shares)
    warm = {name: (tuple(by), _by_row(by.values(), count)) for name, by in latencies.items()}
    seconds = np.broadcast_to(served.metrics["latency_ms"].value / 1e3, count).tolist()
    by_way: dict[Kind, dict[tuple[str, int, int], list[int]]] = {}
    for index, (kind, _, name, ways, concurrency) in enumerate(rows):
        by_way.setdefault(kind, {}).setdefault((name, ways, concurrency), []).append(index)
    spreads = _spreads(served.metrics, count)
    fits = (lack <= 0).tolist()
    for kind, groups in by_way.items():
        fitting = {key: places for key, places in groups.items() if all(map(fits.__getitem__, places))}
        if not fitting:
            index = min((at for places in groups.values() for at in places), key=lambda at: lack[at])
            _, chip, precision, ways, _ = rows[index]
            by_kind[kind] = DoesNotFit(model, f"{ways} x {chip}", precision, float(lack[index]))
            continue
        lone = {(name, ways): places for (name, ways, many), places in groups.items() if many == 1}
        alone = {
            key: {metric: dict(zip(shares, _slowest(by_row, places), strict=True)) for metric, (shares, by_row) in warm.items()}
            for key, places in lone.items()
        }
        spread = {
            key: {name: max(by_row[at] for at in places) for name, by_row in spreads.items()} for key, places in lone.items()
        }
        by_kind[kind] = tuple(
            Speed(
                precision=name,
                concurrency=concurrency * max(int(kind[1] // ways), 1),  # copies side by side
                seconds=max([seconds[at] for at in places]),
                warm={
                    metric: dict(zip(shares, _slowest(by_row, places), strict=True))
                    for metric, (shares, by_row) in warm.items()
                },
                weights_bytes=weights[places[0]],
                memory_bytes=weights[places[0]],
                alone=alone[name, ways],
                spread=spread[name, ways],
            )
            for (name, ways, concurrency), places in fitting.items()
        )
    return by_kind


def _spreads(metrics: Mapping[str, Any], count: int) -> dict[str, list[float]]:
    """By metric and row: how many times the expected seconds are not exceeded nine times of ten."""
    names = {"ttft": "ttft_ms", "tpot": "tpot_ms", "latency": "latency_ms"}
    return {
        name: np.broadcast_to(metrics[key].high / metrics[key].value, count).tolist()
        for name, key in names.items()
        if key in metrics
    }


def _by_row(columns: Iterable[Array], count: int) -> list[list[float]]:
    rows: list[list[float]] = np.array([np.broadcast_to(one, count) for one in columns]).T.tolist()
    return rows


def _slowest(by_row: Sequence[Sequence[float]], places: Sequence[int]) -> Iterable[float]:
    """Of rows that differ in the chip only; most stand alone."""
    if len(places) == 1:
        return by_row[places[0]]
    return map(max, *[by_row[at] for at in places])


def _runs(part: Part, precision: str) -> bool:
    return precision in ("int8", "int4", "fp32") or part.has(precision)


def _splits(layer: Layer, gpus: float) -> tuple[int, ...]:
    """By powers of two that heads and width allow: a copy over all chips, or several copies side by side."""
    widest = 2 ** floor(log2(max(min(gpus, WIDEST), 1)))
    return tuple(n for n in (1, 2, 4, 8) if n <= widest and layer.heads % n == 0 and layer.hidden % n == 0)


def _samples(known: Known, model: str, shape: Shape, need: Need, kinds: Sequence[Kind]) -> dict[Kind, Found]:
    """Models that answer in one piece: one request at a time on each chip."""
    by_kind: dict[Kind, Found] = {}

    @cache  # a chip comes alone and beside others, one at a time and by eight
    def resolved_on(chip: str) -> tuple[Sampled, float]:
        """What runs there, and seconds of one request alone."""
        sampled = resolve(known, model, chip, _sample_settings(need))
        return sampled, float(sampled.passes([1.0 / sampled.together]).seconds[0])

    for chips, gpus in kinds:
        try:
            resolved = [resolved_on(chip) for chip in chips]
        except BadInput as error:
            by_kind[chips, gpus] = Unpredicted(error.message)
            continue
        too_large = [one.part.name for one, _ in resolved if not one.fits(1.0 / one.together)]
        if too_large:
            by_kind[chips, gpus] = DoesNotFit(model, too_large[0])
            continue
        slow, seconds = max(resolved, key=lambda one: one[1])
        weights = slow.memory(1.0 / slow.together).get("weights", 0.0)
        flat = {name: dict.fromkeys(need.shares, seconds) for name in ("ttft", "latency")}
        by_kind[chips, gpus] = (
            Speed(
                precision=slow.precision,
                concurrency=max(int(gpus), 1),
                seconds=seconds,
                warm=flat,
                weights_bytes=weights,
                memory_bytes=weights,
            ),
        )
    return by_kind


def _sample_settings(need: Need) -> dict[str, Any]:
    return {"batch": 1} | ({"input_tokens": round(need.input_tokens)} if need.input_tokens else {})


def _on_processor(
    known: Known,
    model: str,
    shape: Shape,
    need: Need,
    service: Service,
    work_on: Callable[[Part, str | None], _ProcessorWork],
) -> Found:
    part = known.parts.find(ARM if "arm" in service.hardware.casefold() else X86)
    if part is None:
        return NoSpeed()
    room = service.memory_max_bytes
    if room is None:
        room = MOST_MEMORY_BYTES if service.usd_per_vcpu_second else UNSTATED_FUNCTION_BYTES
    fitting = []
    short = []
    generates = isinstance(shape, DecoderShape) and need.output_tokens >= 1
    # A format without a unit is read as it is and multiplied in FP32; fp8 and fp4 weights are for GPUs.
    formats = [one for one in need.precisions if one in BYTES and one not in ("fp8", "fp4")]
    for precision in formats if generates or need.asked else [None]:
        try:
            work = work_on(part, precision)
        except BadInput as error:
            return Unpredicted(error.message)
        memory = work.memory_bytes
        if memory > room:
            short.append(HoldsTooLittle(service.title, room, memory, f"{model} in {work.precision}"))
            continue
        if service.usd_per_vcpu_second:
            vcpus = MOST_VCPUS
        else:  # by memory: all of it costs as much for the work and takes less time
            memory = room if service.memory_max_bytes is not None else max(memory, UNSTATED_FUNCTION_BYTES)
            vcpus = max(memory / VCPU_BYTES, 1.0)
        fitting.append(work.on(vcpus, memory, need))
    if fitting:
        return tuple(fitting)
    return min(short, key=lambda one: one.needed_bytes) if short else NoPrecision(need.precisions, chip=part.name)


@dataclass(frozen=True, slots=True)
class _ProcessorWork:
    on_socket: processor.Processors
    precision: str
    flop: float  # until the first answer
    active: float  # weights that a token meets
    cache_bytes: float
    layers: float
    weights_bytes: float
    memory_bytes: float

    def on(self, vcpus: float, memory: float, need: Need) -> Speed:
        first = float(processor.forward(self.on_socket, self.flop, self.weights_bytes, vcpus).total[0])
        token = 0.0
        if need.output_tokens >= 1:
            step = processor.token(self.on_socket, self.active, 1.0, self.cache_bytes, vcpus, self.layers)
            token = float(step.total[0])
        seconds = first + max(need.output_tokens - 1.0, 0.0) * token
        warm = {
            name: dict.fromkeys(need.shares, value) for name, value in (("ttft", first), ("tpot", token), ("latency", seconds))
        }
        return Speed(
            precision=self.precision,
            concurrency=1,
            seconds=seconds,
            warm=warm,
            weights_bytes=self.weights_bytes,
            memory_bytes=memory,
            vcpus=vcpus,
        )


def _processor_work(known: Known, model: str, shape: Shape, need: Need, part: Part, precision: str | None) -> _ProcessorWork:
    rows = known.catalog.rows("cpus")
    if isinstance(shape, DecoderShape) and precision is not None and need.output_tokens >= 1:
        socket = processor.Processors.of([part], precision, rows)
        layer = layer_of(shape)
        setup = ServingSetup.of(batch=1.0, input_len=1.0, precision_weights=precision, engine="llama.cpp")
        cache = need.context * float(kv_bytes_per_token(Transformers.of([layer]), setup)[0])
        active = layer.layers * (layer.attention_weights + layer.mlp_weights) + layer.head
        flop = 2.0 * active * max(need.input_tokens - need.prefix_tokens, 1.0)
        weights = layer.parameters * BYTES[precision]
        return _ProcessorWork(
            on_socket=socket,
            precision=precision,
            flop=flop,
            active=active,
            cache_bytes=cache,
            layers=layer.layers,
            weights_bytes=weights,
            memory_bytes=weights + cache + RUNTIME_BYTES,
        )
    chosen = {} if precision is None else {"precision": precision}
    predicted = predict_samples(known, model, part.name, _sample_settings(need) | chosen)
    socket = processor.Processors.of([part], predicted.precision, rows)
    weights = predicted.memory.lines_bytes.get("weights", 0.0)
    memory = predicted.memory.total_bytes + RUNTIME_BYTES
    return _ProcessorWork(
        on_socket=socket,
        precision=predicted.precision,
        flop=predicted.flop_per_sample,
        active=1.0,
        cache_bytes=0.0,
        layers=1.0,
        weights_bytes=weights,
        memory_bytes=memory,
    )
