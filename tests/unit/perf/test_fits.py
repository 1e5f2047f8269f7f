from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.perf.fits import (
    NO_CHANGE,
    NO_HELP,
    fits,
    largest_batch,
    largest_context,
    largest_micro_batch,
    largest_whole,
)
from chipwise.perf.part import Part
from chipwise.perf.setup import FULL, ServingSetup, TrainingSetup
from chipwise.perf.transformer import Transformers, layer_of
from chipwise.units import GIB
from chipwise.workload.model.registry import find
from chipwise.workload.model.shape import DecoderShape
from effort import cases


def model(*names: str) -> Transformers:
    shapes = [find(name).shape for name in names]
    return Transformers.of([layer_of(shape) for shape in shapes if isinstance(shape, DecoderShape)])


def chip(gib: float, name: str = "chip", fp8: bool = True) -> Part:
    rates = {"bf16": 1e15, "int8": 2e15} | ({"fp8": 2e15} if fp8 else {})
    return Part(name, "NVIDIA", "gpu", "Hopper", gib * GIB, 3e12, rates, 700.0, 4e11, 8, 5e10, 48e9)


H100 = chip(80)


def test_what_fits_says_how_much_is_spare_and_needs_no_change() -> None:
    answer = fits(model("llama-3.1-8b"), H100, ServingSetup.of(batch=1))
    assert answer.fits.tolist() == [True]
    assert 0 < answer.headroom[0] < 1
    assert answer.change.texts() == [NO_CHANGE]
    assert answer.attempts == ()


def test_what_does_not_fit_says_how_much_is_missing() -> None:
    answer = fits(model("llama-3.1-8b"), H100, TrainingSetup.of(seq=4096, recompute=FULL))
    assert not answer.fits[0]
    assert answer.spare[0] == pytest.approx(80 * GIB - answer.memory.total[0])
    assert answer.spare[0] < -40e9  # 16 bytes for each of 8.03e9 parameters


def test_a_batch_too_large_is_made_smaller_before_anything_else() -> None:
    answer = fits(model("qwen2.5-0.5b"), H100, TrainingSetup.of(seq=2048, micro_batch=64))
    assert answer.change.texts() == ["smaller micro-batch"]
    assert answer.changed_bytes[0] <= 80 * GIB


def test_a_model_that_is_too_large_alone_is_sharded_when_there_are_replicas() -> None:
    answer = fits(model("llama-3.1-8b"), H100, TrainingSetup.of(seq=2048, dp=8, recompute=FULL))
    assert answer.change.texts() == ["ZeRO stage 1"]


def test_a_lone_chip_keeps_to_a_narrow_optimiser_if_that_is_enough() -> None:
    answer = fits(model("llama-3.2-3b"), chip(48), TrainingSetup.of(seq=1024, recompute=FULL))
    assert answer.change.texts() == ["8-bit optimiser"]


def test_every_row_has_its_own_change() -> None:
    answer = fits(model("llama-3.1-8b"), H100, ServingSetup.of(batch=[1, 512], input_len=4096))
    assert answer.change.texts() == [NO_CHANGE, "fewer sequences"]
    assert np.isnan(answer.attempts[0].bytes_per_chip[0])
    assert answer.changed_bytes[0] == answer.memory.total[0]


def test_weights_too_large_are_narrowed_only_where_the_chip_can() -> None:
    setup = ServingSetup.of(batch=1, input_len=2048)
    assert fits(model("llama-3.1-70b"), H100, setup).change.texts() == ["fp8 weights"]
    assert fits(model("llama-3.1-70b"), chip(80, fp8=False), setup).change.texts() == ["int8 weights"]


def test_a_larger_chip_is_the_last_thing_tried() -> None:
    answer = fits(model("llama-3.1-405b"), chip(24), ServingSetup.of(batch=1), larger=[chip(900, "huge")])
    assert answer.change.texts() == ["huge"]
    assert answer.attempts[-1].name == "huge"


def test_nothing_helps_is_an_answer() -> None:
    answer = fits(model("llama-3.1-405b"), chip(4), ServingSetup.of(batch=1))
    assert answer.change.texts() == [NO_HELP]
    assert not any(one.fits[0] for one in answer.attempts)


def test_a_question_without_changes_tries_none() -> None:
    assert fits(model("llama-3.1-405b"), chip(4), ServingSetup.of(batch=1), changes=False).attempts == ()


@settings(max_examples=cases(25), deadline=None)
@given(
    st.sampled_from(["llama-3.1-8b", "mixtral-8x7b"]),
    st.sampled_from([1, 8]),
    st.integers(0, 3),
    st.sampled_from([24, 80, 192]),
)
def test_the_largest_micro_batch_fits_and_the_next_does_not(name: str, dp: int, shard: int, gib: int) -> None:
    shape, setup, part = model(name), TrainingSetup.of(seq=2048, dp=dp, shard=shard, recompute=FULL), chip(gib)
    most = largest_micro_batch(shape, part, setup)

    def good(count: float) -> bool:
        micro = setup.change(micro_batch=count, global_batch=max(count * dp, float(setup.global_batch[0])))
        return bool(fits(shape, part, micro, changes=False).fits[0])

    assert most[0] == 0 or good(float(most[0]))
    assert not good(float(most[0]) + 1)


@settings(max_examples=cases(25), deadline=None)
@given(st.integers(1, 64), st.sampled_from([24, 80, 192]), st.sampled_from(["vllm", "sglang", "tensorrt-llm", "pytorch"]))
def test_the_largest_batch_and_context_fit_and_the_next_do_not(batch: int, gib: int, engine: str) -> None:
    shape, part = model("llama-3.1-8b"), chip(gib)
    setup = ServingSetup.of(batch=batch, input_len=1000, output_len=24, engine=engine)

    def good(changed: ServingSetup) -> bool:
        return bool(fits(shape, part, changed, changes=False).fits[0])

    most = largest_batch(shape, part, setup)[0]
    assert most == 0 or good(setup.change(batch=most))
    assert not good(setup.change(batch=most + 1))
    longest = largest_context(shape, part, setup)[0]
    if longest:
        assert good(setup.change(input_len=longest - 24))
        assert not good(setup.change(input_len=longest - 24 + 1))


def test_the_largest_context_of_training_grows_with_the_chip() -> None:
    setup = TrainingSetup.of(recompute=FULL)
    small, large = (largest_context(model("qwen2.5-0.5b"), chip(gib), setup)[0] for gib in (24, 80))
    assert 2048 < small < large


def test_halving_finds_the_edge_of_every_row() -> None:
    edges = np.array([0.0, 1.0, 7.0, 1000.0])
    assert largest_whole(lambda tried: tried <= edges, 4).tolist() == edges.tolist()


def test_a_change_is_never_named_that_the_model_does_not_allow() -> None:
    # 14 heads: over 4 or 8 chips they cannot be split, over 2 they can.
    columns: dict[str, Any] = {"batch": 1, "input_len": 1000, "precision_weights": "int4", "precision_kv": "fp8"}
    answer = fits(model("qwen2.5-0.5b"), chip(1), ServingSetup.of(**columns))
    valid = {one.name: one.fits[0] for one in answer.attempts}
    assert not valid["4 x the chips, tensor parallel"] or 14 % 4 == 0
