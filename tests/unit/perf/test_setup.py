from __future__ import annotations

import numpy as np
import pytest

from chipwise.errors import BadInput
from chipwise.perf.arrays import Coded
from chipwise.perf.setup import ServingSetup, TrainingSetup, canonical
from chipwise.perf.transformer import Transformers, layer_of
from chipwise.workload.model.registry import find
from chipwise.workload.model.shape import DecoderShape


def model(name: str) -> Transformers:
    shape = find(name).shape
    assert isinstance(shape, DecoderShape)
    return Transformers.of([layer_of(shape)])


def test_a_setup_is_as_long_as_its_longest_column() -> None:
    setup = TrainingSetup.of(seq=2048, micro_batch=[1, 2, 4], dp=8)
    assert len(setup) == 3
    assert setup.global_batch.tolist() == [8, 16, 32]
    assert setup.chips.tolist() == [8]
    assert setup.rows(slice(1, 3)).micro_batch.tolist() == [2, 4]
    assert setup.rows(slice(1, 3)).seq.tolist() == [2048]


def test_a_setup_picks_rows_by_position() -> None:
    setup = ServingSetup.of(batch=[1, 2, 3], engine=["vllm", "sglang", "vllm"])
    picked = setup.rows(np.array([2, 0], dtype=np.intp))
    assert picked.batch.tolist() == [3, 1]
    assert picked.engine.texts() == ["vllm", "vllm"]


def test_micro_batches_are_what_one_replica_runs_per_step() -> None:
    setup = TrainingSetup.of(micro_batch=2, global_batch=64, dp=8)
    assert setup.micro_batches.tolist() == [4]


@pytest.mark.parametrize(
    ("columns", "field", "allowed"),
    [
        ({"micro_batch": 0}, "micro_batch", "whole numbers"),
        ({"tp": -1}, "tp", "whole numbers"),
        ({"seq": float("nan")}, "seq", "whole numbers"),
        ({"seq": float("inf")}, "seq", "whole numbers"),
        ({"dp": 1.5}, "dp", "whole numbers"),
        ({"shard": 4}, "shard", "0, 1, 2, 3"),
        ({"recompute": 3}, "recompute", "0, 1, 2"),
        ({"precision": "bf15"}, "precision", "bf16"),
        ({"optimizer": "adam-ish"}, "optimizer", "adamw"),
        ({"states": "fp32"}, "states", "autocast"),
        ({"method": "dora"}, "method", "qlora"),
        ({"ep": 3}, "ep", "divisors of tp x cp x dp"),
        ({"cp": 8, "seq": 4}, "cp", "at most seq"),
        ({"micro_batch": 4, "dp": 2, "global_batch": 4}, "global_batch", "at least micro_batch x dp"),
    ],
)
def test_a_training_setup_that_cannot_be_is_refused_by_field_and_allowed_values(
    columns: dict[str, float | str], field: str, allowed: str
) -> None:
    setup = TrainingSetup.of(**columns)
    with pytest.raises(BadInput, match=rf"(?m)^{field}: .*{allowed}"):
        setup.check()
    assert not setup.valid().all()


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"batch": 0}, "batch"),
        ({"input_len": -5}, "input_len"),
        ({"output_len": float("nan")}, "output_len"),
        ({"prefix_len": 2000, "input_len": 1000}, "prefix_len"),
        ({"memory_share": 1.5}, "memory_share"),
        ({"batched_tokens": 0}, "batched_tokens"),
        ({"precision_kv": "q9"}, "precision_kv"),
        ({"engine": "vlm"}, "engine"),
        ({"ep": 3, "tp": 4}, "ep"),
    ],
)
def test_a_serving_setup_that_cannot_be_is_refused_by_field(columns: dict[str, float | str], field: str) -> None:
    with pytest.raises(BadInput, match=f"(?m)^{field}: "):
        ServingSetup.of(**columns).check()


@pytest.mark.parametrize(
    ("name", "columns", "field"),
    [
        ("llama-3.1-8b", {"tp": 3}, "tp"),
        ("llama-3.1-8b", {"tp": 64}, "tp"),
        ("qwen2.5-7b", {"tp": 8}, "tp"),
        ("llama-3.1-8b", {"pp": 35}, "pp"),
        ("llama-3.1-8b", {"ep": 2, "dp": 2}, "ep"),
        ("mixtral-8x7b", {"ep": 16, "dp": 16}, "ep"),
    ],
)
def test_a_split_that_the_model_does_not_allow_is_refused(name: str, columns: dict[str, float], field: str) -> None:
    setup = TrainingSetup.of(**columns)
    with pytest.raises(BadInput, match=f"(?m)^{field}: "):
        setup.check(model(name))


def test_what_the_model_allows_is_told_with_its_numbers_and_the_row() -> None:
    told = r"(?s)tp: 3 in row 1 .*28 attention heads: 1, 2, 4, 7, 14, 28\..*pp: 99 in row 2 .*28 layers"
    for made in (TrainingSetup.of(tp=[1, 3, 1], pp=[1, 1, 99]), ServingSetup.of(tp=[1, 3, 1], pp=[1, 1, 99])):
        with pytest.raises(BadInput, match=told):
            made.check(model("qwen2.5-7b"))
        assert made.valid(model("qwen2.5-7b")).tolist() == [True, False, False]
    with pytest.raises(BadInput, match=r"ep: 3 .*8 experts: 1, 2, 4, 8\."):
        TrainingSetup.of(ep=3, dp=3).check(model("mixtral-8x7b"))


def test_a_split_that_the_model_allows_passes() -> None:
    TrainingSetup.of(tp=8, pp=4, dp=8, ep=8).check(model("mixtral-8x7b"))
    ServingSetup.of(tp=8).check(model("llama-3.1-70b"))


def test_the_row_that_cannot_be_is_named() -> None:
    with pytest.raises(BadInput, match="tp: -1 in row 1"):
        TrainingSetup.of(tp=[1, -1]).check()


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(BadInput, match=r"(?s)seq: 0.*tp: 0.*shard: 7"):
        TrainingSetup.of(seq=0, tp=0, shard=7).check()


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(BadInput, match="micro_batch 2, dp 3"):
        TrainingSetup.of(micro_batch=[1, 2], dp=[1, 2, 3])


def test_an_unknown_column_offers_the_nearest() -> None:
    with pytest.raises(BadInput, match="Did you mean shard"):
        TrainingSetup.of(shrad=3)


def test_text_where_a_number_belongs_is_refused() -> None:
    with pytest.raises(BadInput, match="seq: 'long' is not a number"):
        TrainingSetup.of(seq="long")
    with pytest.raises(BadInput, match="engine: takes names"):
        ServingSetup.of(engine=[1.0, 2.0])
    with pytest.raises(BadInput, match="engine: takes names"):
        ServingSetup.of(engine=5.0)
    with pytest.raises(BadInput, match="seq: is empty or a table"):
        TrainingSetup.of(seq=[])
    with pytest.raises(BadInput, match=r"seq: 1000+ is not a number"):
        TrainingSetup.of(seq=10**400)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vLLM 0.12.0", "vllm"),
        ("TensorRT-LLM 1.0 (PyTorch backend)", "tensorrt-llm"),
        ("SGLang nightly-dev", "sglang"),
        ("llama.cpp (May 2024)", "llama.cpp"),
        ("fp16/bf16", "bf16"),
        ("int4-g128 (AWQ)", "awq"),
        ("Q4_K_M", "q4_k_m"),
        ("paged-adamw-8bit", "adamw-8bit"),
        ("Adam", "adamw"),
        ("HF Transformers (PyTorch 2.1)", "transformers"),
        ("Transformers NeuronX (Neuron 2.18.0)", "neuron"),
        ("something else", "something else"),
    ],
)
def test_published_spellings_mean_one_name(typed: str, meant: str) -> None:
    assert canonical(typed) == meant


def test_names_given_as_columns_are_kept() -> None:
    names = Coded.of(["vllm", "sglang"])
    assert ServingSetup.of(engine=names).engine is names


def test_a_changed_setup_leaves_the_first_alone() -> None:
    setup = TrainingSetup.of(tp=2)
    assert setup.change(tp=4).tp.tolist() == [4]
    assert setup.tp.tolist() == [2]
