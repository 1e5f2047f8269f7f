"""Dockerfiles: what is installed follows from chip and framework, nothing runs as root, and no text becomes an instruction."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets.dockerfile import render
from fixed_deployments import DEVICE, HPC, NEURON, NOTEBOOKS, PIPELINE, SERVE, TPU, TRAIN


def text(what: Deployment) -> str:
    return next(file.text for file in render(what) if file.path == "Dockerfile")


def command(what: Deployment) -> list[str]:
    joined = text(what).replace("\\\n", " ")
    found: list[str] = json.loads(re.findall(r"^CMD (\[.*\])$", joined, re.MULTILINE)[-1])
    return found


@pytest.mark.parametrize("what", [TRAIN, SERVE, NEURON, TPU, HPC, DEVICE], ids=lambda what: what.name)
def test_the_program_is_nobody_on_the_machine(what: Deployment) -> None:
    users = re.findall(r"^USER (.*)$", text(what), re.MULTILINE)
    assert users[-1] == "10001:10001"


def test_the_command_of_the_workload_is_the_command_of_the_image() -> None:
    assert command(TRAIN) == list(TRAIN.software.command)
    assert command(SERVE) == list(SERVE.software.command)


def test_one_machine_with_many_chips_starts_a_process_for_each() -> None:
    assert command(replace(TRAIN, machines=1))[:3] == ["torchrun", "--standalone", "--nproc-per-node=8"]


def test_neuron_starts_a_process_for_each_core() -> None:
    assert "--nproc-per-node=32" in command(replace(NEURON, machines=1))


def test_frameworks_that_the_base_lacks_are_installed_at_their_version() -> None:
    assert 'pip install "jax[tpu]==0.10.2"' in text(TPU)
    cpu = replace(TRAIN, machines=1, node=replace(HPC.node), chips_each=0)
    cpu = replace(cpu, software=replace(TRAIN.software, base="python:3.12-slim-bookworm", cuda=""))
    assert "torch==2.9.0 --index-url https://download.pytorch.org/whl/cpu" in text(cpu)
    assert "torch==" not in text(TRAIN), "its base image has it"


def test_machines_that_talk_over_efa_get_what_speaks_it() -> None:
    assert "aws-efa-installer" in text(TRAIN)
    assert "aws-efa-installer" not in text(replace(TRAIN, machines=1))
    assert "aws-efa-installer" not in text(NEURON), "its base image has it"


def test_a_service_tells_whether_it_is_well() -> None:
    assert "http://127.0.0.1:8000/health" in text(SERVE)
    assert "HEALTHCHECK" not in text(TRAIN)


def test_secrets_are_named_and_never_set() -> None:
    assert not re.search(r"^\s*(ENV|ARG).*HF_TOKEN", text(TRAIN), re.MULTILINE)


def test_each_stage_of_a_pipeline_has_its_own() -> None:
    assert {file.path for file in render(PIPELINE)} >= {"train/Dockerfile", "serve/Dockerfile"}


def test_a_comment_cannot_become_a_directive() -> None:
    lines = text(replace(TRAIN, title="escape=`")).splitlines()
    assert lines[:2] == ["# syntax=docker/dockerfile:1", "#"], "a comment without `=` ends the directives"


def test_settings_stay_text() -> None:
    hostile = (("A", 'x"$HOME\\'), ("B", "two\nlines"))
    made = text(replace(TRAIN, software=replace(TRAIN.software, env=hostile)))
    assert 'A="x\\"\\$HOME\\\\"' in made
    assert "two" not in made
    assert "# B has signs that a Dockerfile cannot hold" in made


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (NOTEBOOKS, "finished image"),
        (replace(TRAIN, software=replace(TRAIN.software, built=False, image="team/trainer:1")), "nothing to build"),
        (replace(TRAIN, software=replace(TRAIN.software, command=("python", "\U0001f600" * 16_384))), "65,535"),
    ],
)
def test_what_cannot_be_said_is_refused(what: Deployment, why: str) -> None:
    with pytest.raises(CannotRender, match=why):
        render(what)
