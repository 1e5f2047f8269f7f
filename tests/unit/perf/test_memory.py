"""Laws of memory, facts that everybody knows, and rows as they were measured."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.calibration.measurements import read
from chipwise.perf.arrays import column
from chipwise.perf.memory import CHUNK, Memory
from chipwise.perf.memory_serving import (
    ENGINE,
    kv_budget_bytes,
    kv_bytes,
    kv_bytes_per_token,
    serving_memory,
    weight_bytes,
)
from chipwise.perf.memory_training import training_memory
from chipwise.perf.rows import Row, layer_from_row
from chipwise.perf.setup import ENGINES, KV_BITS, OPTIMIZERS, STATES, WEIGHT_BITS, ServingSetup, TrainingSetup
from chipwise.perf.tables import DATA
from chipwise.perf.transformer import Transformers, layer_of
from chipwise.units import GIB
from chipwise.workload.model.registry import find
from chipwise.workload.model.shape import Attention, DecoderShape, FeedForward

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "deepseek-v3", "qwen2.5-0.5b", "llama-2-13b")
H100 = column(80 * GIB)


def model(*names: str) -> Transformers:
    shapes = [find(name).shape for name in names]
    return Transformers.of([layer_of(shape) for shape in shapes if isinstance(shape, DecoderShape)])


names = st.sampled_from(MODELS)
ways = st.sampled_from([1, 2, 4, 8])
training = st.fixed_dictionaries(
    {
        "seq": st.sampled_from([512, 2048, 8192]),
        "micro_batch": st.integers(1, 8),
        "tp": ways,
        "pp": ways,
        "cp": st.sampled_from([1, 2]),
        "dp": ways,
        "shard": st.integers(0, 3),
        "recompute": st.integers(0, 2),
        "sequence_parallel": st.integers(0, 1),
        "interleave": st.sampled_from([1, 2]),
        "flash": st.integers(0, 1),
        "method": st.sampled_from(["full", "lora", "qlora"]),
        "precision": st.sampled_from(["bf16", "fp32", "fp8"]),
        "states": st.sampled_from(STATES),
        "optimizer": st.sampled_from(OPTIMIZERS),
        "compiled": st.integers(0, 1),
    }
)
serving = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 256),
        "input_len": st.integers(1, 20_000),
        "output_len": st.integers(0, 4000),
        "tp": ways,
        "pp": st.sampled_from([1, 2]),
        "precision_weights": st.sampled_from(list(WEIGHT_BITS)),
        "precision_kv": st.sampled_from(list(KV_BITS)),
        "engine": st.sampled_from(ENGINES),
    }
)


def bytes_of(name: str, columns: dict[str, Any], **other: Any) -> Memory:
    return training_memory(model(name), TrainingSetup.of(**{"global_batch": 4096, **columns, **other}))


def served(name: str, columns: dict[str, Any], **other: Any) -> Memory:
    return serving_memory(model(name), ServingSetup.of(**columns | other))


@given(names, training)
def test_training_lines_sum_to_the_total_and_none_is_negative(name: str, columns: dict[str, Any]) -> None:
    memory = bytes_of(name, columns)
    assert memory.total == pytest.approx(sum(memory.lines().values()))
    assert all(np.all(values >= 0) and np.all(np.isfinite(values)) for values in memory.lines().values())
    assert memory.allocated == pytest.approx(memory.total - memory.context - memory.fragmentation)


@given(names, training, st.integers(1, 8))
def test_a_larger_micro_batch_never_takes_less(name: str, columns: dict[str, Any], more: int) -> None:
    larger = bytes_of(name, columns, micro_batch=columns["micro_batch"] + more)
    assert larger.total >= bytes_of(name, columns).total * (1 - 1e-12)


@given(names, training)
def test_a_longer_sequence_never_takes_less(name: str, columns: dict[str, Any]) -> None:
    assert bytes_of(name, columns, seq=columns["seq"] * 2).total >= bytes_of(name, columns).total * (1 - 1e-12)


@given(names, training)
def test_a_higher_zero_stage_takes_no_more_but_for_gather_buffers(name: str, columns: dict[str, Any]) -> None:
    # And but for the fp32 logits that FSDP has in place of autocast's: 12 bytes each, not 10.
    stages = [bytes_of(name, columns, shard=stage) for stage in range(4)]
    for lower, higher in pairwise(stages):
        extra = higher.communication + (higher.logits / 5 if higher is stages[3] else 0)
        assert np.all(higher.allocated - extra <= (lower.allocated - lower.communication) * (1 + 1e-12))


@given(names, training)
def test_more_recomputation_never_keeps_more_activations_at_the_loss(name: str, columns: dict[str, Any]) -> None:
    totals = [float(bytes_of(name, columns | {"recompute": level}).allocated[0]) for level in range(3)]
    assert totals[1] <= totals[0] * (1 + 1e-9)
    assert totals[2] <= totals[0] * (1 + 1e-9)


@given(names, training)
def test_more_tensor_parallel_chips_never_take_more_each(name: str, columns: dict[str, Any]) -> None:
    held = [float(bytes_of(name, columns, tp=tp).allocated[0]) for tp in (1, 2, 4, 8)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(held))


@given(names, training)
def test_adapters_take_less_than_full_training_and_four_bits_less_than_sixteen(name: str, columns: dict[str, Any]) -> None:
    # In fp8 the kept inputs are narrower too, whatever the method.
    full, lora, qlora = (bytes_of(name, columns, method=method) for method in ("full", "lora", "qlora"))
    assert np.all(lora.weights + lora.optimizer <= (full.weights + full.optimizer) * 1.05)
    assert np.all(qlora.weights <= lora.weights)


@pytest.mark.parametrize("seed", [0, 1])
def test_an_array_of_setups_gives_what_each_gives_alone(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = 40
    columns: dict[str, Any] = {
        "seq": random.choice([512.0, 4096.0], count),
        "micro_batch": random.integers(1, 9, count).astype(float),
        "tp": random.choice([1.0, 2.0, 4.0], count),
        "pp": random.choice([1.0, 2.0, 4.0], count),
        "dp": random.choice([1.0, 8.0], count),
        "shard": random.integers(0, 4, count).astype(float),
        "recompute": random.integers(0, 3, count).astype(float),
        "states": [STATES[i] for i in random.integers(0, 3, count)],
        "method": [("full", "lora", "qlora")[i] for i in random.integers(0, 3, count)],
    }
    chosen = [MODELS[i] for i in random.integers(0, len(MODELS), count)]
    together = training_memory(model(*chosen), TrainingSetup.of(**columns))
    for i in range(count):
        one = {name: values[i] for name, values in columns.items()}
        alone = training_memory(model(chosen[i]), TrainingSetup.of(**one))
        for name, values in together.lines().items():
            assert values[i] == alone.lines()[name][0], name


def test_rows_beyond_one_chunk_are_computed_like_the_first() -> None:
    count = CHUNK + 5
    memory = training_memory(model("llama-3.1-8b"), TrainingSetup.of(micro_batch=np.full(count, 2.0)))
    assert len(memory.total) == count
    assert np.ptp(memory.total) == 0


# Facts


def test_weights_of_llama_8b_in_bf16_are_16_06_gb() -> None:
    assert weight_bytes(model("llama-3.1-8b"), ServingSetup.of()) / 1e9 == pytest.approx(16.06, abs=0.005)


def test_layers_of_llama_70b_in_fp8_take_a_byte_each_and_its_ends_two() -> None:
    # 70.55e9 parameters, of which 2.1e9 are embedding and head: published FP8 checkpoints are 72.7 GB.
    assert weight_bytes(model("llama-3.1-70b"), ServingSetup.of(precision_weights="fp8")) / 1e9 == pytest.approx(
        72.65, abs=0.05
    )


@pytest.mark.parametrize(
    ("name", "precision", "gigabytes"),
    [
        ("gpt-oss-120b", "fp4", 65.28),  # 60.8 GiB by its model card (arXiv:2508.10925): experts in MXFP4, all else in bf16
        ("gpt-oss-120b", "mxfp4", 65.28),
        ("gpt-oss-20b", "fp4", 13.74),  # 12.8 GiB, likewise
        ("deepseek-v3", "fp8", 673.1),  # 688.6 GB of files, less the module that predicts a second token
        ("llama-3.1-8b", "awq", 5.73),  # hugging-quants, AWQ of groups of 128: embedding, head and norms in 16 bits
        ("llama-3.1-70b", "awq", 39.77),
        ("llama-3.1-70b", "gptq", 39.77),
        ("qwen2.5-7b", "awq", 5.58),
    ],
)
def test_weights_of_mixed_formats_take_what_published_checkpoints_do(name: str, precision: str, gigabytes: float) -> None:
    setup = ServingSetup.of(precision_weights=precision)
    assert weight_bytes(model(name), setup)[0] / 1e9 == pytest.approx(gigabytes, rel=0.004)


def test_a_cached_token_of_llama_8b_takes_131072_bytes() -> None:
    shape = model("llama-3.1-8b")
    assert kv_bytes_per_token(shape, ServingSetup.of()).tolist() == [131072]
    assert kv_bytes_per_token(shape, ServingSetup.of(precision_kv="fp8")).tolist() == [65536]


def test_keys_are_not_split_over_more_chips_than_kv_heads() -> None:
    shape = model("llama-3.1-8b")
    assert kv_bytes_per_token(shape, ServingSetup.of(tp=[1, 8, 16])).tolist() == [131072, 16384, 16384]


def test_a_latent_cache_is_whole_on_every_chip() -> None:
    shape = model("deepseek-v3")
    assert kv_bytes_per_token(shape, ServingSetup.of(tp=[1, 8])).tolist() == [61 * 576 * 2] * 2


def test_q4_k_m_of_llama_8b_is_a_file_of_4_9_gb() -> None:
    assert weight_bytes(model("llama-3.1-8b"), ServingSetup.of(precision_weights="q4_k_m")) / 1e9 == pytest.approx(4.9, abs=0.1)


@pytest.mark.parametrize(
    ("columns", "per_parameter"),
    [
        ({"states": "autocast"}, 16),
        ({"states": "master"}, 16),
        ({"states": "pure"}, 8),
        ({"precision": "fp32"}, 16),
        ({"states": "autocast", "optimizer": "adamw-8bit"}, 10),
        ({"states": "autocast", "optimizer": "adamw-16bit"}, 12),
        ({"states": "autocast", "optimizer": "lion"}, 12),
        ({"states": "autocast", "optimizer": "sgd"}, 12),
        ({"states": "master", "optimizer": "adafactor"}, 8),
    ],
)
def test_bytes_per_parameter_of_each_way_to_keep_states(columns: dict[str, Any], per_parameter: float) -> None:
    shape = model("llama-3.1-8b")
    memory = training_memory(shape, TrainingSetup.of(seq=1, global_batch=2, recompute=2, **columns))
    kept = memory.weights + memory.gradients + memory.optimizer
    assert kept / shape.parameters == pytest.approx(per_parameter, rel=0.002)


def test_attention_that_is_not_fused_keeps_scores_as_in_korthikanti() -> None:
    shape = model("llama-2-13b")
    fused, not_fused = (
        training_memory(shape, TrainingSetup.of(seq=4096, flash=flash, compiled=0)).activations for flash in (1, 0)
    )
    assert not_fused - fused == pytest.approx(40 * 4096 * 5 * 40 * 4096)


def test_the_first_stage_of_a_pipeline_holds_one_micro_batch_per_stage() -> None:
    shape = model("llama-3.1-70b")
    few = training_memory(shape, TrainingSetup.of(pp=8, global_batch=2, states="master"))
    many = training_memory(shape, TrainingSetup.of(pp=8, global_batch=64, states="master"))
    assert many.activations == pytest.approx(4 * few.activations)


def test_interleaving_holds_a_little_more() -> None:
    shape = model("llama-3.1-70b")
    plain = training_memory(shape, TrainingSetup.of(pp=8, global_batch=64, states="master"))
    woven = training_memory(shape, TrainingSetup.of(pp=8, global_batch=64, states="master", interleave=5))
    assert woven.activations / plain.activations == pytest.approx(1 + 7 / (8 * 5))


def test_experts_are_spread_over_expert_parallel_chips() -> None:
    shape = model("mixtral-8x7b")
    whole = training_memory(shape, TrainingSetup.of(dp=8, states="master"))
    spread = training_memory(shape, TrainingSetup.of(dp=8, ep=8, states="master"))
    assert np.all(spread.weights < whole.weights / 5)


# Serving


@given(names, serving)
def test_serving_lines_sum_to_the_total_and_none_is_negative(name: str, columns: dict[str, Any]) -> None:
    memory = served(name, columns)
    assert memory.total == pytest.approx(sum(memory.lines().values()))
    assert all(np.all(values >= 0) and np.all(np.isfinite(values)) for values in memory.lines().values())


@given(names, serving, st.integers(1, 100), st.integers(1, 5000))
def test_more_sequences_and_longer_prompts_never_take_less(name: str, columns: dict[str, Any], more: int, longer: int) -> None:
    now = served(name, columns).total
    assert served(name, columns, batch=columns["batch"] + more).total >= now
    assert served(name, columns, input_len=columns["input_len"] + longer).total >= now


@given(names, serving)
def test_serving_on_more_chips_never_takes_more_each(name: str, columns: dict[str, Any]) -> None:
    held = [float(served(name, columns, tp=tp).allocated[0]) for tp in (1, 2, 4, 8)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(held))


@given(names, serving)
def test_a_larger_chip_never_leaves_less_for_the_cache(name: str, columns: dict[str, Any]) -> None:
    shape, setup = model(name), ServingSetup.of(**columns)
    assert np.all(kv_budget_bytes(shape, setup, H100 * 1.5) >= kv_budget_bytes(shape, setup, H100))


def test_a_shared_prefix_is_kept_once() -> None:
    shape = model("llama-3.1-8b")
    apart = kv_bytes(shape, ServingSetup.of(batch=10, input_len=1024, output_len=0))
    shared = kv_bytes(shape, ServingSetup.of(batch=10, input_len=1024, output_len=0, prefix_len=512))
    assert apart - shared == pytest.approx(9 * 512 * 131072)


def test_pages_round_up_and_static_caches_do_not() -> None:
    shape = model("llama-3.1-8b")
    paged, static = (kv_bytes(shape, ServingSetup.of(input_len=17, output_len=0, engine=name)) for name in ("vllm", "pytorch"))
    assert paged.tolist() == [32 * 131072]
    assert static.tolist() == [17 * 131072]


def test_every_engine_that_can_be_named_has_its_habits() -> None:
    assert set(ENGINE) == set(ENGINES)


def test_vllm_has_what_its_log_says_for_llama_8b_on_an_h100() -> None:
    # vllm-project/vllm pull request 10511: 79.22 GiB, share 0.9, 53.29 GiB left for the cache (weights 14.96, others 3.05).
    budget = kv_budget_bytes(model("llama-3.1-8b"), ServingSetup.of(batch=256, input_len=8192), column(79.22 * GIB))
    assert budget / GIB == pytest.approx(53.29, rel=0.03)


# Rows measured on an H200


def _rows(task: str, file: str = "own.csv") -> list[dict[str, Any]]:
    rows = [row for row in read(DATA.parent / "measurements" / file).rows if row.text("task") == task and row.text("peak_gb")]
    assert rows
    return [{name: int(cell) if cell.isdecimal() else cell for name, cell in row.cells.items()} for row in rows]


def _measured_models(rows: list[dict[str, Any]]) -> Transformers:
    layers = []
    for row in rows:
        heads = Attention(row["hidden"], row["heads"], row["kv_heads"], row["hidden"] // row["heads"])
        mlp = FeedForward(row["hidden"], row["ffn_hidden"])
        plain = DecoderShape(layers=row["layers"], hidden=row["hidden"], vocab=row["vocab"], attention=heads, mlp=mlp)
        tied = abs(plain.parameters / 1e9 - float(row["params_b"])) > 2e-4
        layers.append(layer_of(replace(plain, tied_embeddings=tied)))
    return Transformers.of(layers)


def _numbers(rows: list[dict[str, Any]], name: str) -> list[float]:
    return [float(row[name]) for row in rows]


def test_training_against_pytorch_on_an_h200() -> None:
    rows = _rows("pretrain")
    full = [2.0 if row["activation_checkpointing"] == "full" else 0.0 for row in rows]
    setup = TrainingSetup.of(seq=_numbers(rows, "seq_len"), micro_batch=_numbers(rows, "micro_batch"), recompute=full)
    error = training_memory(_measured_models(rows), setup).allocated / 1e9 / _numbers(rows, "peak_gb") - 1
    assert np.median(np.abs(error)) < 0.001
    assert np.max(np.abs(error)) < 0.01


@pytest.mark.parametrize("task", ["llm-prefill", "llm-decode"])
def test_inference_against_pytorch_on_an_h200(task: str) -> None:
    rows = _rows(task)
    batch = _numbers(rows, "batch_or_concurrency")
    at_once = batch if task == "llm-decode" else [np.nan] * len(rows)
    setup = ServingSetup.of(
        batch=batch, input_len=_numbers(rows, "input_len"), output_len=0, engine="pytorch", batched_tokens=at_once
    )
    error = serving_memory(_measured_models(rows), setup).allocated / 1e9 / _numbers(rows, "peak_gb") - 1
    assert np.median(np.abs(error)) < 0.001
    assert np.max(np.abs(error)) < 0.01


@pytest.mark.parametrize(("task", "worst"), [("lora", 0.01), ("pretrain", 0.01)])
def test_adapters_experts_and_other_precisions_against_pytorch_on_an_h200(task: str, worst: float) -> None:
    rows = _rows(task, "variants.jsonl")
    layers = [layer_from_row(Row({name: str(value) for name, value in row.items()}))[0] for row in rows]
    setup = TrainingSetup.of(
        seq=_numbers(rows, "seq_len"),
        micro_batch=_numbers(rows, "micro_batch"),
        method="lora" if task == "lora" else "full",
        precision=[row["precision"] for row in rows],
        recompute=[2.0 if row["activation_checkpointing"] == "full" else 0.0 for row in rows],
    )
    error = training_memory(Transformers.of(layers), setup).allocated / 1e9 / _numbers(rows, "peak_gb") - 1
    assert np.median(np.abs(error)) < 0.001
    assert np.max(np.abs(error)) < worst


def test_served_experts_and_narrow_weights_against_pytorch_on_an_h200() -> None:
    for task in ("llm-prefill", "llm-decode"):
        rows = _rows(task, "variants.jsonl")
        layers = [layer_from_row(Row({name: str(value) for name, value in row.items()}))[0] for row in rows]
        batch = _numbers(rows, "batch_or_concurrency")
        setup = ServingSetup.of(
            batch=batch,
            input_len=_numbers(rows, "input_len"),
            output_len=0,
            engine="pytorch",
            precision_weights=[row["precision_weights"] for row in rows],
            batched_tokens=batch if task == "llm-decode" else [np.nan] * len(rows),
        )
        error = serving_memory(Transformers.of(layers), setup).allocated / 1e9 / _numbers(rows, "peak_gb") - 1
        assert np.median(np.abs(error)) < 0.002
        assert np.max(np.abs(error)) < 0.01


# Transformers 5.17 and PEFT (rank 16, all matrices) as they come, bf16 autocast, AdamW; recompute 2: gradient checkpointing.
_TRANSFORMERS = (
    ("llama-3.2-1b", "lora", 4, 2048, 0, 30.654),
    ("llama-3.2-1b", "lora", 4, 2048, 2, 15.888),
    ("llama-3.1-8b", "lora", 2, 2048, 0, 51.521),
    ("llama-3.1-8b", "lora", 2, 2048, 2, 24.077),
    ("llama-2-7b", "lora", 2, 1024, 0, 28.336),
    ("llama-2-7b", "lora", 2, 1024, 2, 15.381),
    ("llama-3.2-1b", "full", 2, 2048, 0, 32.223),
    ("llama-3.2-1b", "full", 2, 2048, 2, 23.277),
    ("llama-3.2-3b", "full", 4, 1024, 0, 70.048),
    ("llama-3.2-3b", "full", 4, 1024, 2, 53.156),
)


@pytest.mark.parametrize(("name", "method", "batch", "length", "again", "peak_gb"), _TRANSFORMERS)
def test_eager_training_against_transformers_on_an_h200(
    name: str, method: str, batch: int, length: int, again: int, peak_gb: float
) -> None:
    setup = TrainingSetup.of(seq=length, micro_batch=batch, recompute=again, method=method, compiled=0)
    assert training_memory(model(name), setup).allocated[0] / 1e9 == pytest.approx(peak_gb, rel=0.045)


def test_a_higher_rank_takes_more_weights_states_and_activations() -> None:
    low, high = (bytes_of("llama-3.1-8b", {"seq": 2048, "method": "lora", "rank": rank, "global_batch": 1}) for rank in (8, 64))
    for line in ("weights", "optimizer", "activations", "weight_copies"):
        assert getattr(high, line)[0] > getattr(low, line)[0]
