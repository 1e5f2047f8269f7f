"""The family of transformer training: which rows are alike, and the question made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array, Coded, pick
from chipwise.perf.collective import Network
from chipwise.perf.operators import COMPUTE_EFFICIENCY
from chipwise.perf.part import Part
from chipwise.perf.published_training import TrainingCase
from chipwise.perf.question import Question
from chipwise.perf.training import Steps, bases, compose, flop_per_token
from chipwise.perf.transformer import Transformers

ARITHMETIC = {"fp8 or fp4": "fp8", "nf4": "bf16", "int4": "fp16", "mxfp8": "fp8"}
WEIGHT_BYTES = {"fp8": 1.0, "mxfp8": 1.0, "fp8 or fp4": 1.0, "fp4": 0.56, "fp32": 4.0, "tf32": 4.0}
TERM_OF = {
    "matrix": "matrix",
    "attention": "attention",
    "elementwise": "elementwise",
    "optimizer": "optimizer",
    "tensor": "communication",
    "data": "communication",
    "expert": "communication",
    "dispatch": "elementwise",
    "unpack": "unpack",
    "adapters": "elementwise",
    "host": "host",
}
# Of the bare formula's time: products at 95% of the peak and reads at 95% of the bandwidth are the fastest there is.
FLOORS = {"matrix": COMPUTE_EFFICIENCY / 0.95, "elementwise": 0.3}


@dataclass(frozen=True, slots=True)
class TrainingNames:
    """What rows are called, as columns."""

    part: Coded
    precision: Coded
    stack: Coded
    variant: Coded
    method: Coded
    kind: Coded
    model: Coded


def kind_of(model: str, experts: float, causal: float) -> str:
    if model.lower().startswith("transformer-xl"):
        return "recurrent"
    return "experts" if experts else "dense" if causal else "encoder"


def levels(names: TrainingNames, parts: dict[str, Part]) -> dict[str, Coded]:
    arch = names.part.map(lambda name: parts[name].architecture)
    vendor = names.part.map(lambda name: f"{parts[name].vendor} {parts[name].kind}")
    family = names.precision.map(lambda name: {"fp8 or fp4": "fp4", "nf4": "4-bit", "int4": "4-bit"}.get(name, name))
    common = names.part.map(lambda name: "all")
    stack = names.stack
    return {
        "all": common,
        "vendor": vendor,
        "arch": arch,
        "chip": names.part,
        "precision": family,
        "arch|precision": arch.cross(names.precision),
        "stack": stack,
        "stack|variant": stack.cross(names.variant),
        "stack|arch": stack.cross(arch),
        "stack|chip": stack.cross(names.part),
        "stack|precision": stack.cross(names.precision),
        "stack|method": stack.cross(names.method),
        "method": names.method,
        "kind": names.kind,
        "kind|arch": names.kind.cross(arch),
        "stack|kind": stack.cross(names.kind),
        "model": names.model,
        "kind|chip": names.kind.cross(names.part),
        "kind|precision": names.kind.cross(names.precision),
        "stack|kind|arch": stack.cross(names.kind).cross(arch),
        "stack|model": stack.cross(names.model),
    }


def features(run: Steps, node: Array) -> dict[str, Array]:
    ways = np.maximum(run.tp, 1.0)
    share = run.micro_batch * run.seq / ways / run.cp
    grain = np.zeros(1)
    if run.model.routed:  # rows that one expert gets at a time
        expert_rows = share * run.model.active * np.maximum(run.ep, 1.0) / np.maximum(run.model.experts, 1.0)
        grain = pick(run.model.has_experts, np.log(np.maximum(expert_rows, 1.0) / 2048), grain)
    return {
        "hidden": np.log(run.model.hidden / 4096),
        "tokens": np.log(np.maximum(share, 1.0) / 8192),
        "seq": np.log(run.seq / 4096),
        "nodes": np.log(np.maximum(run.chips / node, 1.0)),
        "recompute": run.recompute - 0.5,
        "grain": grain,
        "strength": np.log(run.half_peak / 5e14),
        "ways": np.log(ways),
        "deep": np.log(run.model.layers / 32),
    }


def settings_of(run: Steps) -> dict[str, Array]:
    return {"context": np.log(run.seq), "chips": np.log(run.chips)}


def nominal(run: Steps, work: Mapping[str, Array]) -> Array:
    """Seconds of a step's products at the stated peak."""
    return run.micro_batches * work["matrix"] * COMPUTE_EFFICIENCY


def question(run: Steps, names: TrainingNames, node: Array, parts: dict[str, Part], scale: Array, power: Array) -> Question:
    work = bases(run)
    return Question(
        bases=work,
        compose=lambda base: compose(run, base),
        scale=scale,
        power=power,
        levels=levels(names, parts),
        features=features(run, node),
        term_of=TERM_OF,
        floors=FLOORS,
        settings=settings_of(run),
        nominal=nominal(run, work),
    )


def steps_of(cases: Sequence[TrainingCase]) -> Steps:
    def column(name: str) -> Array:
        return np.array([getattr(case, name) for case in cases], dtype=np.float64)

    def of_part(name: str) -> Array:
        return np.array([getattr(case.part, name) for case in cases], dtype=np.float64)

    precision = [case.precision for case in cases]
    peak = [case.part.rate(ARITHMETIC.get(case.precision, case.precision)) for case in cases]
    half = [case.part.rate(case.precision if case.precision in ("fp32", "tf32") else "bf16") for case in cases]
    joined = [
        case.part.domain if case.part.kind == "tpu" or case.part.domain > 8 else min(case.node or 8.0, 8.0) for case in cases
    ]
    return Steps(
        model=Transformers.of([case.layer for case in cases]),
        peak=np.array(peak),
        half_peak=np.array(half),
        bandwidth=of_part("bandwidth"),
        network=Network(of_part("link"), np.array(joined, dtype=np.float64), of_part("fabric")),
        chips=column("chips"),
        seq=column("seq"),
        micro_batch=column("micro_batch"),
        global_batch=column("global_batch"),
        tp=column("tp"),
        pp=column("pp"),
        cp=column("cp"),
        ep=column("ep"),
        shard=column("shard"),
        interleave=column("interleave"),
        recompute=column("recompute"),
        norms_again=np.ceil(column("recompute")),
        frozen=np.array([float(case.method != "full") for case in cases]),
        adapted=column("adapted"),
        loose=column("loose"),
        dropout=column("dropout"),
        weight_bytes=np.array([WEIGHT_BYTES.get(name, 2.0) for name in precision]),
        packed=np.array([float(name in ("nf4", "int4")) for name in precision]),
        filled=column("filled"),
        unfused=column("unfused"),
        offload=column("offload"),
    )


def question_of(cases: Sequence[TrainingCase]) -> Question:
    """Of measurement rows: each asks for its own metric."""
    run = steps_of(cases)
    names = TrainingNames(
        part=Coded.of([case.part.name for case in cases]),
        precision=Coded.of([case.precision for case in cases]),
        stack=Coded.of([case.stack for case in cases]),
        variant=Coded.of([case.variant for case in cases]),
        method=Coded.of([case.method for case in cases]),
        kind=Coded.of([kind_of(case.model, case.layer.experts, case.layer.causal) for case in cases]),
        model=Coded.of([case.model for case in cases]),
    )
    counts = np.array([float(case.convention == "full") for case in cases])
    flop = flop_per_token(run.model, run.seq, run.frozen, counts)
    peak = np.array([case.part.rate("bf16") for case in cases])
    amount = {
        "tokens_per_s_per_chip": run.tokens / run.chips,
        "samples_per_s": run.global_batch,
        "model_tflops_per_chip": flop * run.tokens / run.chips / 1e12,
        "mfu": flop * run.tokens / run.chips / peak,
        "step_time_s": np.ones(len(cases)),
    }
    scale = np.array([amount[case.metric][at] for at, case in enumerate(cases)])
    power = np.array([1.0 if case.metric == "step_time_s" else -1.0 for case in cases])
    node = np.array([max(case.node, 1.0) for case in cases])
    return question(run, names, node, {case.part.name: case.part for case in cases}, scale, power)
