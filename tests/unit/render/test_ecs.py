"""ECS: the task, the service, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.render.file import CannotRender
from chipwise.render.targets import ecs
from deployments import deployment
from hostile import TEXTS, hostile
from scripts import accepted, constants, same_files, texts

ON_AWS = "clouds=[aws]"
SERVE = deployment("serve", ON_AWS)


@pytest.mark.parametrize("name", ["serve", "transcode", "finetune", "hpc", "hybrid", "render"])
def test_files_are_accepted_and_do_not_change(name: str, tmp_path: Path) -> None:
    planned = deployment(name, ON_AWS)
    accepted(ecs.render(planned), tmp_path)
    assert same_files(ecs.render, planned)


def test_a_task_asks_for_its_chips_and_leaves_room_for_the_system() -> None:
    task = json.loads(texts(ecs.render(SERVE))["task-definition.json"])
    (inside,) = task["containerDefinitions"]
    assert inside["resourceRequirements"] == [{"type": "GPU", "value": "1"}]
    assert SERVE.node.memory_bytes is not None
    assert inside["memory"] * 2**20 < SERVE.node.memory_bytes
    assert inside["privileged"] is False
    assert inside["entryPoint"] + inside["command"] == list(SERVE.software.command)


def test_a_service_rolls_within_the_chips_it_has_and_sleeps_out_of_hours() -> None:
    said = constants(texts(ecs.render(SERVE))["ecs_deploy.py"])
    assert said["ROLLOUT"]["maximumPercent"] == 100
    assert said["SCHEDULE"]["close"][2:] == (0, 0)
    alone = replace(SERVE, scaling=replace(SERVE.scaling, least=1)) if SERVE.scaling else SERVE
    assert constants(texts(ecs.render(alone))["ecs_deploy.py"])["ROLLOUT"]["minimumHealthyPercent"] == 100


def test_the_group_is_told_its_machines_and_their_image() -> None:
    said = constants(texts(ecs.render(SERVE))["ecs_deploy.py"])
    assert said["MACHINES"][0] == SERVE.node.machine
    assert said["IMAGE_PARAMETER"].startswith("/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/")


@pytest.mark.parametrize(("name", "limit", "what"), [
    ("train", ON_AWS, "sagemaker"), ("stream", ON_AWS, "ec2"), ("batch", ON_AWS, "batch"),
    ("interactive", ON_AWS, "jupyterhub"),
    ("serve", "clouds=[gcp]", "aws"),
])  # fmt: skip
def test_what_it_cannot_express_is_refused_with_what_can(name: str, limit: str, what: str) -> None:
    with pytest.raises(CannotRender) as refused:
        ecs.render(deployment(name, limit))
    assert what in str(refused.value.remedy)


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_stays_text(text: str) -> None:
    evil = hostile(deployment("serve", ON_AWS), text)
    files = texts(ecs.render(evil))
    (inside,) = json.loads(files["task-definition.json"])["containerDefinitions"]
    assert inside["command"][-2:] == [text, f"--a={text}"]
    assert {"name": "SETTING", "value": text} in inside["environment"]
    assert constants(files["ecs_deploy.py"])["NAME"] == evil.name
