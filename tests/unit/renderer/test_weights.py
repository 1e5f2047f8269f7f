"""What must be there before an engine answers is written down: a token, a template of a dialogue, and time to start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.renderer.deployment import Form, Model, Software
from chipwise.renderer.launch.health import loading_seconds
from chipwise.renderer.launch.weights import READY_KEY, READY_S, patient, weight_notes
from chipwise.units import GB

VLLM = Software("i:1", "i:1", False, "vllm", "0.24.0", ("vllm", "serve"), False, engine="vllm")


def model(hub: str | None, size: float = 16 * GB) -> Model:
    return Model("m", hub, "bf16", 8192, size, generates=True, fetched_bytes=size)


def test_gated_weights_need_a_token_and_it_is_said_once() -> None:
    [note, _] = weight_notes(VLLM, model("meta-llama/Llama-3.1-8B"), Form.SERVICE)
    assert "HF_TOKEN" in note
    assert "terms" in note
    with_token = replace(VLLM, secrets=(("HF_TOKEN", "hub", "token"),))
    assert not any("terms" in note for note in weight_notes(with_token, model("meta-llama/Llama-3.1-8B"), Form.SERVICE))
    assert weight_notes(VLLM, model("Qwen/Qwen2.5-7B-Instruct"), Form.SERVICE) == ()


@pytest.mark.parametrize(
    ("hub", "talks"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", True),
        ("google/gemma-2-9b-it", True),
        ("Qwen/Qwen3-14B", True),
        ("meta-llama/Llama-3.1-8B", False),
        ("mistralai/Mistral-7B-v0.3", False),
    ],
)
def test_a_base_model_has_no_chat_template_and_it_is_said(hub: str, talks: bool) -> None:
    assert any("chat template" in note for note in weight_notes(VLLM, model(hub), Form.SERVICE)) is not talks
    assert not any("chat template" in note for note in weight_notes(VLLM, model(hub), Form.JOB))


def test_own_programs_and_own_weights_need_neither() -> None:
    assert weight_notes(replace(VLLM, engine=""), model("meta-llama/Llama-3.1-8B"), Form.SERVICE) == ()
    assert weight_notes(VLLM, replace(model("meta-llama/Llama-3.1-8B"), weights="/models/own"), Form.SERVICE) == ()
    assert weight_notes(VLLM, model(None), Form.SERVICE) == ()


def test_an_engine_has_the_time_that_its_start_is_predicted_to_take() -> None:
    large, small = model("x/y", 140 * GB), model("x/y", 16 * GB)
    assert loading_seconds(small, "gpu") <= READY_S < loading_seconds(large, "gpu")
    assert dict(patient(VLLM, large, "gpu").env)[READY_KEY] == str(loading_seconds(large, "gpu"))
    assert patient(VLLM, small, "gpu") == VLLM
    own = replace(VLLM, env=((READY_KEY, "9000"),))
    assert patient(own, large, "gpu") == own
    assert patient(replace(VLLM, engine="tgi"), large, "gpu").env == ()


@pytest.mark.parametrize(("kind", "compiling_s"), [("neuron", 1200), ("tpu", 1800)])
def test_what_compiles_whole_graphs_has_the_time_for_it_even_with_a_small_model(kind: str, compiling_s: int) -> None:
    small = model("x/y", 16 * GB)
    assert loading_seconds(small, kind) >= compiling_s
    assert int(dict(patient(VLLM, small, kind).env)[READY_KEY]) >= compiling_s
