"""Triton: the repository's layout, batching from the latency goal, and the backend by the format that is handed on."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from chipwise.planner.values.split import Copies
from chipwise.renderer.deployment import Deployment, HandOff, Model, Scaling
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import triton
from fixed_deployments import NEURON, NOTEBOOKS, PIPELINE, SERVE, TRAIN

BERT = replace(
    SERVE,
    model=Model("bert-base", "google-bert/bert-base-uncased", "fp16", None, 2.2e8, False),
    scaling=Scaling(2, 2, 4, 900.0, None),
    goals={"latency p95": 0.02, "latency p99": 0.05},
    split=Copies(replicas=2),
)


def written(planned: Deployment) -> dict[str, str]:
    return {file.path: file.text for file in triton.render(planned)}


def number(text: str, name: str) -> int:
    found = re.search(rf"{name}: (\d+)", text)
    assert found
    return int(found[1])


def test_a_text_model_goes_to_the_vllm_backend_with_the_plans_settings() -> None:
    files = written(SERVE)
    assert 'backend: "vllm"' in files["model_repository/llama-3-1-8b/config.pbtxt"]
    settings = json.loads(files["model_repository/llama-3-1-8b/1/model.json"])
    assert settings == {
        "model": "meta-llama/Llama-3.1-8B",
        "quantization": "fp8",
        "max_model_len": 8192,
        "max_num_seqs": 128,
    }


def test_a_request_waits_a_tenth_of_the_strictest_goal_and_no_longer_than_the_loosest() -> None:
    config = written(BERT)["model_repository/bert-base/config.pbtxt"]
    assert number(config, "max_queue_delay_microseconds") == 2000
    assert number(config, "default_timeout_microseconds") == 50000


@pytest.mark.parametrize("rate", [1.0, 30.0, 900.0, 1e6])
def test_a_batch_is_a_power_of_two_within_limits_and_grows_with_the_rate(rate: float) -> None:
    many = triton.largest_batch(replace(BERT, scaling=Scaling(1, 1, 1, rate)))
    more = triton.largest_batch(replace(BERT, scaling=Scaling(1, 1, 1, 2 * rate)))
    assert 4 <= many <= more <= triton.LARGEST
    assert many & (many - 1) == 0


def test_instances_stand_on_the_chips_of_the_plan() -> None:
    four = replace(BERT, node=replace(BERT.node, chips=4), chips_each=4)
    assert "gpus: [ 0, 1, 2, 3 ]" in written(four)["model_repository/bert-base/config.pbtxt"]


def test_the_format_that_is_handed_on_decides_the_backend() -> None:
    stage = replace(BERT, title="serve", name="p-serve")
    for format, backend in (("onnx", "onnxruntime"), ("TensorRT", "tensorrt"), ("torchscript", "pytorch")):
        whole = replace(PIPELINE, stages=(stage,), hand_offs=(HandOff("train", "serve", 1e8, format),))
        assert f'backend: "{backend}"' in written(whole)["model_repository/bert-base/config.pbtxt"]


@pytest.mark.parametrize("planned", [TRAIN, NOTEBOOKS, replace(SERVE, node=NEURON.node), replace(SERVE, model=None)])
def test_what_serves_no_model_on_its_chips_is_refused(planned: Deployment) -> None:
    with pytest.raises(CannotRender) as refused:
        triton.render(planned)
    assert refused.value.remedy
