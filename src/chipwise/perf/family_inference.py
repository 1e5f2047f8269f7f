"""The family of generation: prefill, decode and what serving makes of them; which rows are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.perf.arrays import Array, Coded, Index
from chipwise.perf.collective import Network
from chipwise.perf.flowing import settled, steps_by_count
from chipwise.perf.inference import RATIOS, Serving
from chipwise.perf.operators import COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY
from chipwise.perf.part import Part
from chipwise.perf.pooling import Groups
from chipwise.perf.published_inference import APART, BARE, FORMATS, FUSED, PLAIN, SCHEDULED, InferenceCase, read_bytes
from chipwise.perf.question import Question
from chipwise.perf.serving import EQUAL_WAVES, WAVES, Load, answer, bases, full_step, in_flight, unit
from chipwise.perf.transformer import Transformers

TERM_OF = {
    "prefill_matrix": "prefill matrix",
    "prefill_attention": "prefill attention",
    "prefill_element": "prefill elementwise",
    "prefill_link": "prefill communication",
    "prefill_host": "prefill host",
    "decode_matrix": "weights",
    "decode_cache": "cache",
    "decode_link": "communication",
    "layer_host": "launches",
    "launch_host": "launches",
    "step_host": "engine",
    "sequence_host": "sequences",
    "request_host": "fixed",
    "queue": "waiting",
    "stretch": "waiting",
}
# Of the bare formula's time: 95% of the nominal peak and bandwidth are the fastest there is.
FLOORS = {
    "weights": MEMORY_EFFICIENCY / 0.95,
    "cache": MEMORY_EFFICIENCY / 0.95,
    "prefill matrix": COMPUTE_EFFICIENCY / 0.95,
}
_WIDE = "16 bit"  # formats that GPUs are as fast in
NARROW = ("fp8", "fp4", "nvfp4")  # those with units of their own
BARE_LOOP = "chipwise pytorch"  # a source: loops of compiled layers, without a server
SHORT_PROMPT = 128.0  # tokens; slopes over the length of prompts are not followed below
USUAL_WATTS = 0.8  # board power in W for each TFLOP/s of 16 bits


@dataclass(frozen=True, slots=True)
class ServingNames:
    part: Coded
    weights: Coded
    engine: Coded
    version: Coded
    source: Coded  # who measured, with what engine
    style: Coded  # how; never what was asked, for all that is asked of a run is made of the same work
    kind: Coded
    model: Coded
    split: Coded


def arithmetic(weights: str, part: Part) -> str:
    """The format in which weights are multiplied: their own where the chip has a unit for it."""
    name = FORMATS[weights][2]
    if name in ("mxfp4", "fp4"):
        return "fp4" if part.has("fp4") else "bf16"
    return "int8" if part.kind == "cpu" and weights == "int8" else name


def cache_bytes(cache: str) -> float:
    return 1.0 if cache in ("fp8", "int8") else 0.5 if cache in ("int4", "fp4") else 2.0


def _weights_level(pair: str) -> str:
    """Of a format and a kind of chip: GPUs are as fast in both formats of 16 bits."""
    weights, _, vendor = pair.partition("|")
    return _WIDE if vendor.endswith(" gpu") and weights in ("fp16", "bf16") else weights


def _beside_16_bits(pair: str) -> str:
    """Of an engine or architecture and a format. Products in 16 bits are what either is known by, and its other formats differ
    from them: so the formats of one chip stay together, and what one of them was measured at holds for the others."""
    return _WIDE if pair.endswith(f"|{_WIDE}") else pair


def levels(names: ServingNames, parts: Mapping[str, Part]) -> dict[str, Coded]:
    arch = names.part.map(lambda name: parts[name].architecture)
    vendor = names.part.map(lambda name: f"{parts[name].vendor} {parts[name].kind}")
    engine, source, model, part, kind = names.engine, names.source, names.model, names.part, names.kind
    source_chip = source.cross(part)
    weights = names.weights.cross(vendor).map(_weights_level)
    return {
        "all": source.map(lambda name: "bare" if name == BARE_LOOP else "all"),  # what servers have in common is not a loop's
        "vendor": vendor,
        "arch": arch,
        "chip": part,
        "weights": weights,
        "arch|weights": arch.cross(weights),
        "arch|narrow": arch.cross(weights).map(_beside_16_bits),
        "engine": engine,
        "version": names.version,
        "source": source,
        "engine|vendor": engine.cross(vendor),
        "engine|arch": engine.cross(arch),
        "engine|chip": engine.cross(part),
        "engine|weights": engine.cross(weights),
        "style": names.style,
        "source|style": source.cross(names.style),
        "kind": kind,
        "engine|kind": engine.cross(kind),
        "model": model,
        "engine|model": engine.cross(model),
        "version|model": names.version.cross(model),
        "source|vendor": source.cross(vendor),
        "source|chip": source_chip,
        "source|chip|model": source_chip.cross(model),
        "source|chip|model|style": source_chip.cross(model).cross(weights).cross(names.style),
        "source|tp": source.cross(names.split),
        "kind|arch": kind.cross(arch),
        "kind|weights": kind.cross(weights),
        "engine|kind|arch": engine.cross(kind).cross(arch),
        "source|kind": source.cross(kind),
        "version|kind": names.version.cross(kind),
        "version|arch": names.version.cross(arch),
        "source|weights": source.cross(weights),
    }


def grouped(names: ServingNames, parts: Mapping[str, Part], index: Index) -> Groups:
    """Half the bytes and twice the peak make nothing more than twice as fast: no factor of a format of 8 or 4 bits is below
    that of 16 bits on the same chip, whoever measured either."""
    columns = levels(names, parts)
    if not any(name in NARROW for name in names.weights.names):
        return Groups(columns, index)
    wide = levels(replace(names, weights=names.weights.map(lambda name: "bf16" if name in NARROW else name)), parts)
    floors = {name: columns[name] if name.startswith("source") else coded for name, coded in wide.items()}
    return Groups(columns, index, floors=floors)


def features(run: Serving, load: Load, sequences: Array, watts: Array) -> dict[str, Array]:
    return {
        "tp": np.log(np.maximum(run.tp * run.dp, 1.0)),
        "batch": np.log(sequences / 16),
        "in": np.log(np.maximum(load.input_len, SHORT_PROMPT) / 1024),
        "out": np.log(np.maximum(load.output_len, 1.0) / 512),
        "hidden": np.log(run.model.hidden / 4096),
        "deep": np.log(run.model.layers / 32),
        "strength": np.log(run.half_peak / 5e14),
        "speed": np.log(run.bandwidth / 2e12),
        "watts": watts,
    }


def settings_of(run: Serving, load: Load) -> dict[str, Array]:
    return {"context": np.log(load.input_len + load.output_len), "chips": np.log(np.maximum(run.tp * run.dp * run.pp, 1.0))}


def warmth(part: Coded, parts: Mapping[str, Part]) -> Array:
    """How much board power a chip has for its peak: with little of it, clocks fall under full load. Zero where unstated."""
    return part.look_up(lambda name: float(np.log((parts[name].watts_per_tflop or USUAL_WATTS) / USUAL_WATTS)))


def question(run: Serving, load: Load, names: ServingNames, parts: dict[str, Part], replicas: Array) -> Question:
    sequences = in_flight(run, load)
    work = bases(run, load, sequences)
    scale, power = unit(load)
    full, steps = full_step(run, load, work, sequences), steps_by_count(run, load, work, sequences)

    def compose(base: dict[str, Array]) -> dict[str, Array]:
        running, settled_base = settled(steps, load, sequences, base)
        return answer(load, running, settled_base, full)

    return Question(
        bases=work,
        compose=compose,
        scale=np.where(power < 0, scale * replicas, scale),
        power=power,
        levels=grouped(names, parts, np.arange(len(replicas))),
        features=features(run, load, sequences, warmth(names.part, parts)),
        term_of=TERM_OF,
        fixed_terms=("arrival",),
        ratios=RATIOS,
        floors=FLOORS,
        settings=settings_of(run, load),
    )


def question_of(cases: Sequence[InferenceCase]) -> Question:
    def column(name: str) -> Array:
        return np.array([getattr(case, name) for case in cases], dtype=np.float64)

    def of_part(name: str) -> Array:
        return np.array([getattr(case.part, name) for case in cases], dtype=np.float64)

    run = Serving(
        model=Transformers.of([case.layer for case in cases]),
        peak=np.array([case.part.rate(arithmetic(case.weights, case.part)) for case in cases]),
        half_peak=np.array([case.part.rate("bf16") for case in cases]),
        bandwidth=of_part("bandwidth"),
        network=Network(of_part("link"), np.maximum(of_part("domain"), 1.0), of_part("fabric")),
        tp=column("tp"),
        dp=column("dp"),
        pp=column("pp"),
        weight_bytes=np.array([read_bytes(case.engine, case.weights, FORMATS[case.weights][0]) for case in cases]),
        head_bytes=np.array([FORMATS[case.weights][1] for case in cases]),
        cache_bytes=np.array([cache_bytes(case.cache) for case in cases]),
        graphs=column("graphs"),
        fused=np.array([float(case.engine in FUSED) for case in cases]),
        plain=np.array([float(case.engine in PLAIN) for case in cases]),
        scheduled=np.array([float(case.engine in SCHEDULED) for case in cases]),
        bare=np.array([float(source_of(case) == BARE_LOOP) for case in cases]),
        apart=np.array([float(case.engine in APART) for case in cases]),
        whole=np.maximum(column("ep"), column("dp")),
    )
    replicas = column("replicas")
    load = Load(
        scenario=Coded.of([case.scenario for case in cases]),
        metric=Coded.of([case.metric for case in cases]),
        batch=column("batch"),
        slots=column("slots"),
        input_len=column("input_len"),
        output_len=column("output_len"),
        rate=column("rate") / replicas,
        requests=column("requests") / replicas,
        prefix=np.zeros(1),
        beams=column("beams"),
        accepted=column("accepted"),
        checked=column("checked"),
        late=column("late"),
        waves=np.where(column("equal") > 0, EQUAL_WAVES, WAVES),
        alike=column("equal"),
    )
    names = ServingNames(
        part=Coded.of([case.part.name for case in cases]),
        weights=Coded.of([case.weights for case in cases]),
        engine=Coded.of([case.engine for case in cases]),
        version=Coded.of([case.version for case in cases]),
        source=Coded.of([source_of(case) for case in cases]),
        style=Coded.of([case.style for case in cases]),
        kind=Coded.of(["experts" if case.layer.experts else "dense" for case in cases]),
        model=Coded.of([case.model for case in cases]),
        split=Coded.of([f"{case.tp:g} {case.dp:g} {case.pp:g}" for case in cases]),
    )
    return question(run, load, names, {case.part.name: case.part for case in cases}, replicas)


def source_of(case: InferenceCase) -> str:
    """Who measured, with what engine. PyTorch alone means one way of running a model, whoever runs it."""
    if case.engine in BARE and not case.source.startswith("mlcommons/"):
        return BARE_LOOP
    publisher = "mlperf" if case.source.startswith("mlcommons/") else case.source.rsplit("/", 1)[-1]
    return f"{publisher} {case.engine}"
