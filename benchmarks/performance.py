"""The performance model: one estimate through the API, and a million candidates in one call."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import numpy as np

from chipwise.api.session.wiring import open_session
from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.hardware import Hardware
from chipwise.perf.model import packaged
from chipwise.perf.predict_serving import Generation
from chipwise.perf.predict_serving import predict as serve
from chipwise.perf.predict_training import Training
from chipwise.perf.predict_training import predict as train
from chipwise.perf.rows import known_layer
from chipwise.perf.setup import ServingSetup, TrainingSetup
from chipwise.perf.transformer import Transformers
from chipwise.predictor.transformer import estimate
from figure import Figure, cpu_here

COUNT = 1_000_000


def figures() -> Iterator[Figure]:
    session = open_session()
    one = cpu_here(lambda: estimate(session.known, "llama-3.1-8b", on="h100", chips=8, seq=4096, micro_batch=2, fit=False), 101)
    yield Figure("estimate_training_cpu", one * 1e3, "ms", {"max": 1.0})
    served = cpu_here(
        lambda: estimate(
            session.known, "llama-3.1-70b", on="h200", task="serve", tp=4, concurrency=64, fit=False, metrics=("tpot_ms",)
        ),
        101,
    )
    yield Figure("estimate_serving_cpu", served * 1e3, "ms", {"max": 1.0})
    random = np.random.default_rng(0)
    names = tuple(session.parts.by_name)
    hardware = Hardware.of(Coded(names, random.integers(0, len(names), COUNT)), session.parts.by_name)

    def power(most: int) -> Array:
        return np.asarray(2.0 ** random.integers(0, most, COUNT))

    layer = known_layer("llama-3.1-8b")
    assert layer is not None
    setup = TrainingSetup.of(
        seq=4096,
        micro_batch=power(4),
        dp=power(6),
        tp=power(4),
        pp=power(3),
        global_batch=1024,
        shard=random.integers(0, 4, COUNT).astype(float),
        recompute=random.integers(0, 3, COUNT).astype(float),
    )
    runs = Training(Transformers.of([layer]), Coded.of("llama-3-8b"), hardware, setup)
    for memory, name in ((False, "million_training_cpu"), (True, "million_training_with_memory_cpu")):
        began = process_time()
        train(runs, packaged(), memory)
        yield Figure(name, process_time() - began, "s", {"max": 2.0})
    replica = ServingSetup.of(batch=power(9), input_len=1024, output_len=256, tp=power(4), engine="vllm")
    once = column(1.0)
    asked = Generation(
        Transformers.of([layer]), Coded.of("llama-3-8b"), hardware, replica, Coded.of("closed"), column(0.0), once
    )
    began = process_time()
    serve(asked, packaged(), ("tpot_ms",))
    yield Figure("million_serving_cpu", process_time() - began, "s", {"max": 2.0})
