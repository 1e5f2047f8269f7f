"""A command of the user's own on several machines finds its place by the same four names, whoever starts it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.launch.nodes import NAMES, unread
from chipwise.renderer.named_targets import files, target
from fixed_deployments import CASES

TRAIN = CASES["train"]
OWN = replace(
    TRAIN,
    purchase="on-demand",
    software=replace(TRAIN.software, command=("./train.sh", "--all"), framework="none", secrets=()),
)
READS = replace(OWN, software=replace(OWN.software, command=("sh", "-c", "./train --rank $NODE_RANK")))
STARTING = ("batch", "ec2", "kubernetes", "kueue", "parallelcluster", "ray", "sagemaker", "skypilot", "slurm", "terraform")


def written(name: str, planned: Deployment) -> str:
    return "\n".join(file.text for file in files(name, target(name), planned))


@pytest.mark.parametrize("name", STARTING)
def test_every_target_that_starts_it_on_several_machines_sets_them(name: str) -> None:
    text = written(name, OWN)
    for variable in NAMES:
        assert variable in text, variable


@pytest.mark.parametrize("name", STARTING)
def test_a_command_that_names_none_of_them_is_warned_of(name: str) -> None:
    assert "does its work 2 times" in " ".join(written(name, OWN).replace("#", " ").split())
    assert "does its work 2 times" not in " ".join(written(name, READS).replace("#", " ").split())


def test_torchrun_and_single_machines_need_none() -> None:
    assert unread(TRAIN) == ""
    assert unread(replace(OWN, machines=1)) == ""
    assert "NODE_RANK" not in written("kubernetes", TRAIN)


def test_the_places_are_numbers_and_the_first_pod() -> None:
    text = written("kubernetes", OWN)
    assert "value: llama-8b-legal-0.llama-8b-legal.llama-8b-legal.svc" in text
    assert "name: GPUS_PER_NODE\n" in text
    assert "value: '8'" in text
