"""Peak memory of measurement rows: what the allocator holds at most on one chip, in GB of 1e9 bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chipwise.perf.memory_serving import serving_memory
from chipwise.perf.memory_training import training_memory
from chipwise.perf.published_inference import InferenceCase
from chipwise.perf.published_training import TrainingCase
from chipwise.perf.setup import ServingSetup, TrainingSetup
from chipwise.perf.transformer import Transformers

_PRECISION = {"fp8 or fp4": "fp8", "nf4": "bf16", "int4": "bf16", "int8": "bf16"}
_WEIGHTS = {"fp16/bf16": "bf16", "fp32 weights, bf16 matmul": "fp32", "f16": "fp16"}
_ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers", "pytorch", "neuron", "jetstream")


def peaks(cases: Sequence[object]) -> list[float | None]:
    if not cases:
        return []
    if isinstance(cases[0], TrainingCase):
        return _training([case for case in cases if isinstance(case, TrainingCase)])
    if isinstance(cases[0], InferenceCase):
        return _serving([case for case in cases if isinstance(case, InferenceCase)])
    return [None] * len(cases)


def _training(cases: Sequence[TrainingCase]) -> list[float | None]:
    def column(name: str) -> list[float]:
        return [float(getattr(case, name)) for case in cases]

    ways = [max(case.tp, 1.0) * case.pp * case.cp for case in cases]
    dp = [max(case.chips / way, 1.0) for case, way in zip(cases, ways, strict=True)]
    setup = TrainingSetup.of(
        seq=column("seq"),
        micro_batch=[max(case.micro_batch, 1.0) for case in cases],
        global_batch=[max(case.global_batch, case.micro_batch * each) for case, each in zip(cases, dp, strict=True)],
        tp=[max(case.tp, 1.0) for case in cases],
        pp=column("pp"),
        cp=column("cp"),
        ep=column("ep"),
        dp=dp,
        shard=column("shard"),
        interleave=column("interleave"),
        recompute=[2.0 if case.recompute > 0.5 else 1.0 if case.recompute > 0 else 0.0 for case in cases],
        method=[case.method for case in cases],
        precision=[_PRECISION.get(case.precision, case.precision) for case in cases],
    )
    gigabytes = training_memory(Transformers.of([case.layer for case in cases]), setup).allocated / 1e9
    return [float(value) for value in np.broadcast_to(gigabytes, (len(cases),))]


def _serving(cases: Sequence[InferenceCase]) -> list[float | None]:
    def column(name: str) -> list[float]:
        return [float(getattr(case, name)) for case in cases]

    setup = ServingSetup.of(
        batch=[max(min(case.batch, case.slots), 1.0) for case in cases],
        input_len=[max(case.input_len, 1.0) for case in cases],
        output_len=[0.0 if case.scenario in ("prefill", "decode") else case.output_len for case in cases],
        tp=[max(case.tp * case.dp, 1.0) for case in cases],
        pp=column("pp"),
        precision_weights=[_WEIGHTS.get(case.weights, case.weights) for case in cases],
        precision_kv=["bf16" if case.cache == "fp16/bf16" else case.cache for case in cases],
        engine=[case.engine if case.engine in _ENGINES else "other" for case in cases],
        batched_tokens=[
            case.batch * case.input_len if case.scenario == "prefill" else case.batch if case.scenario == "decode" else np.nan
            for case in cases
        ],
    )
    gigabytes = serving_memory(Transformers.of([case.layer for case in cases]), setup).allocated / 1e9
    return [float(value) for value in np.broadcast_to(gigabytes, (len(cases),))]
