"""Text Generation Inference: what it can express, and the launcher's flags."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from chipwise.planner.values.split import GenerationSplit
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import tgi
from fixed_deployments import BATCH, CASES, NEURON, TRAIN

SERVE, AZURE = CASES["serve"], CASES["azure"]


def words(planned: Deployment) -> list[str]:
    [file] = tgi.render(planned)
    assert file.executable
    return shlex.split(file.text.partition("exec ")[2])


def test_flags_are_the_plans() -> None:
    told = words(SERVE)
    assert told[0] == "text-generation-launcher"
    for flag, value in (
        ("--quantize", "fp8"),
        ("--max-total-tokens", "8192"),
        ("--max-batch-size", "128"),
        ("--num-shard", "1"),
    ):
        assert told[told.index(flag) + 1] == value


def test_input_leaves_room_for_an_answer() -> None:
    told = words(SERVE)
    assert int(told[told.index("--max-input-tokens") + 1]) < int(told[told.index("--max-total-tokens") + 1])


def test_replicas_of_one_machine_share_neither_port_nor_chip() -> None:
    many = replace(SERVE, node=replace(SERVE.node, chips=4), split=GenerationSplit(tp=1, pp=1, replicas=4))
    [file] = tgi.render(many)
    assert 'CUDA_VISIBLE_DEVICES="$(seq -s, $(( index * 1 ))' in file.text
    assert "--master-port" in file.text
    assert "--shard-uds-path" in file.text


@pytest.mark.parametrize(
    "planned",
    [
        TRAIN,
        BATCH,
        replace(SERVE, node=NEURON.node, platforms=CASES["neuron"].platforms),
        replace(SERVE, split=GenerationSplit(tp=1, pp=2, replicas=1), node=replace(SERVE.node, chips=2)),
        replace(SERVE, platforms={"Images": {}}, node=replace(SERVE.node, chip="V100", capability=7.0)),
    ],
    ids=["train", "batch", "neuron", "pipeline-parallel", "old chip"],
)
def test_what_it_cannot_do_is_refused_with_another_way(planned: Deployment) -> None:
    with pytest.raises(CannotRender) as refused:
        tgi.render(planned)
    assert refused.value.remedy


def test_another_cloud_gives_the_same_flags() -> None:
    assert words(AZURE) == words(SERVE)
