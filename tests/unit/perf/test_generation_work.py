"""What a step of generation does: tokens that speculation checks, experts in pieces, no server around it, formats in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.catalog.load import load
from chipwise.perf.arrays import Coded
from chipwise.perf.family_inference import BARE_LOOP, ServingNames, grouped, question_of
from chipwise.perf.part import Part, Parts
from chipwise.perf.pooling import FactorBlock, Factors
from chipwise.perf.published_inference import InferenceCase, case_of
from chipwise.perf.rows import Row, known_layer, layer_from_row

SHAPE = {
    "layers": "61",
    "hidden": "7168",
    "ffn_hidden": "2048",
    "heads": "128",
    "kv_heads": "",
    "vocab": "129280",
    "params_b": "671",
    "moe_experts_total": "256",
    "moe_experts_active": "8",
}


@pytest.fixture(scope="module")
def chip() -> Part:
    return Parts(load(prices=False).chips.values()).by_name["H200"]


def case(chip: Part, notes: str = "", **cells: str) -> InferenceCase:
    stated = {
        "model": "DeepSeek-V3",
        "task": "llm-online",
        "engine": "vLLM",
        "chips": "8",
        "tp": "8",
        "batch_or_concurrency": "16",
    }
    stated |= {"input_len": "1024", "output_len": "256", "precision_weights": "fp8", "metric_name": "tpot_ms"}
    return case_of(Row(stated | {"notes": notes} | cells), chip)


def work(*cases: InferenceCase) -> dict[str, np.ndarray]:
    found = question_of(cases)
    return {name: np.broadcast_to(values, (len(cases),)) for name, values in found.bases.items()}


def test_a_step_computes_the_tokens_that_are_refused_too(chip: Part) -> None:
    assert case(chip).checked == 1.0
    assert case(chip, "MTP 1 draft token (speculative)").checked == pytest.approx(2.0)
    assert case(chip, "accept length 2.19").checked == pytest.approx(3.0)
    assert case(chip, "accept length 3.4").checked == 8.0


def test_checked_tokens_reach_more_experts_and_read_the_cache_once(chip: Part) -> None:
    plain = case(chip)
    seconds = work(plain, replace(plain, checked=2.0, accepted=1.7), replace(plain, batch=32.0))
    matrix, cache = seconds["decode_matrix"], seconds["decode_cache"]
    assert matrix[1] == pytest.approx(matrix[2])
    assert matrix[1] > 1.3 * matrix[0]
    assert cache[1] == pytest.approx(cache[0])


def test_experts_that_are_split_over_chips_are_narrow(chip: Part) -> None:
    seconds = work(case(chip), case(chip, "expert parallel 8"))
    assert case(chip, "expert parallel 8").ep == 8.0
    assert seconds["prefill_matrix"][0] > 1.15 * seconds["prefill_matrix"][1]
    assert seconds["decode_matrix"][0] == pytest.approx(seconds["decode_matrix"][1])  # bound by the weights


def test_attention_of_a_latent_cache_is_read_as_that_of_the_model_we_know() -> None:
    known = known_layer("deepseek-v3")
    read, _ = layer_from_row(Row({"model": "another of its kind", **SHAPE}))
    assert known is not None
    assert (read.score_width, read.query_width, read.kv_width) == (known.score_width, known.query_width, known.kv_width)
    assert read.attention_weights == pytest.approx(known.attention_weights, rel=0.02)


def test_a_loop_without_a_server_schedules_nothing(chip: Part) -> None:
    loop = case(chip, engine="PyTorch", task="llm-decode", chips="1", tp="1", model="Llama-3.1-8B", precision_weights="bf16")
    seconds = work(loop, replace(loop, engine="vllm"), replace(loop, source="mlcommons/inference_results_v5.1"))
    assert seconds["sequence_host"][0] == 0.0
    assert seconds["step_host"][0] < 0.2 * seconds["step_host"][1]
    assert seconds["step_host"][2] == seconds["step_host"][1]
    assert seconds["sequence_host"][1] > 4 * seconds["sequence_host"][2]  # a scheduler in Python


def test_no_format_with_units_of_its_own_is_nearer_to_the_hardware_than_16_bits(chip: Part) -> None:
    levels = ("weights", "arch|weights", "source|weights")
    blocks = tuple(FactorBlock(level, "decode_matrix", "1", 0.3) for level in levels)
    values = {
        "weights/decode_matrix/1": {"16 bit": (0.1, 0.01), "fp8": (-0.2, 0.02)},
        "arch|weights/decode_matrix/1": {"Hopper|16 bit": (0.2, 0.01)},
        "source|weights/decode_matrix/1": {"user vllm|fp8": (-0.1, 0.01)},
    }
    formats = ("bf16", "fp8", "int4")

    def exponents(source: str) -> np.ndarray:
        one = {name: Coded.of(name) for name in ("version", "style", "kind", "model", "split")}
        names = ServingNames(
            part=Coded.of(chip.name), weights=Coded.of(formats), engine=Coded.of("vllm"), source=Coded.of(source), **one
        )
        found = Factors(blocks, values).pool(grouped(names, {chip.name: chip}, np.arange(3)), {})
        return np.asarray(found.exponents["decode_matrix"])

    assert exponents("another") == pytest.approx([0.3, 0.3, 0.0])
    assert exponents("user vllm") == pytest.approx([0.3, 0.2, 0.0])  # what a source was measured at is its own
    assert BARE_LOOP not in ("another", "user vllm")
