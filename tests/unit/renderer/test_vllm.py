"""vLLM: the flags are the plan's, the same as every other target starts it with, and no text leaves its quotes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import pairwise

import pytest
import yaml

from chipwise.planner.values.split import GenerationSplit
from chipwise.renderer.deployment import Deployment, Software
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import vllm
from deployments import on_few_offers as deployment
from fixed_deployments import BATCH, PIPELINE, SERVE, TRAIN


def written(planned: Deployment) -> dict[str, str]:
    return {file.path: file.text for file in vllm.render(planned)}


def flags(words: tuple[str, ...]) -> dict[str, str]:
    return {key.removeprefix("--"): value for key, value in pairwise(words) if key.startswith("--")}


@pytest.mark.parametrize("example", ["serve", "batch"])
def test_the_settings_are_those_of_the_command_that_other_targets_write(example: str) -> None:
    planned = deployment(example)
    settings = yaml.safe_load(written(planned)["config.yaml"])
    told = flags(planned.software.command)
    told.pop("input-file", None)
    told.pop("output-file", None)
    assert {key: str(settings[key]) for key in told} == told


def test_a_machine_with_several_replicas_answers_under_one_address() -> None:
    many = replace(
        SERVE,
        node=replace(SERVE.node, machine="g6e.48xlarge", chips=8),
        chips_each=2,
        split=GenerationSplit(tp=2, pp=1, replicas=4),
    )
    settings = yaml.safe_load(written(many)["config.yaml"])
    assert (settings["tensor-parallel-size"], settings["data-parallel-size"]) == (2, 4)


def test_every_setting_has_a_reason() -> None:
    lines = written(SERVE)["config.yaml"].splitlines()
    values = [at for at, line in enumerate(lines) if not line.startswith("#") and not line.startswith("port")]
    assert values
    assert all(lines[at - 1].startswith("# ") for at in values)


def test_a_batch_in_parts_gives_each_its_own_chips_and_shards() -> None:
    text = written(
        replace(BATCH, node=replace(BATCH.node, chips=4), chips_each=2, split=GenerationSplit(tp=2, pp=1, replicas=8))
    )["batch.sh"]
    assert "PART % 2 * 2" in text
    assert "export PART PARTS=8" in text
    assert "' batch /data/requests /data/answers " in text


@pytest.mark.parametrize("example", ["train", "finetune"])
def test_training_of_a_model_that_could_answer_is_no_batch_of_requests(example: str) -> None:
    with pytest.raises(CannotRender, match="generates none here"):
        vllm.render(deployment(example))


@pytest.mark.parametrize("planned", [TRAIN, PIPELINE], ids=["train", "pipeline"])
def test_what_generates_no_text_is_refused(planned: Deployment) -> None:
    with pytest.raises(CannotRender):
        vllm.render(planned)


def test_secrets_must_be_set_and_are_not_written() -> None:
    assert ': "${HF_TOKEN:?' in written(SERVE)["serve.sh"]


def test_a_command_of_the_users_own_is_run_as_it_is() -> None:
    own = ("vllm", "serve", "x'y", "$(touch z)", "${HOME}")
    text = written(replace(SERVE, software=replace(SERVE.software, command=own, is_custom=True)))["serve.sh"]
    assert tuple(shlex.split(text.splitlines()[-1])[1:]) == own


@pytest.mark.parametrize(
    "software",
    [
        replace(BATCH.software, command=("python", "answer.py"), is_custom=True, engine="", purpose="pytorch"),
        replace(BATCH.software, command=("vllm", "run-batch"), is_custom=True, engine=""),
        replace(BATCH.software, command=("text-generation-launcher",), engine="tgi", purpose="tgi"),
        replace(BATCH.software, command=("python3", "-m", "sglang.launch_server"), engine="sglang", purpose="sglang"),
    ],
    ids=["own program", "own vllm", "tgi", "sglang"],
)
def test_a_batch_of_another_program_gets_the_batch_of_vllm_and_is_told(software: Software) -> None:
    text = written(replace(BATCH, software=software))["batch.sh"]
    usual = written(BATCH)["batch.sh"]
    assert text.splitlines()[-2:] == usual.splitlines()[-2:]
    assert ("program.command" in text) == software.is_custom
