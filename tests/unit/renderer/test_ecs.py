"""ECS: the task, the service, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chipwise.planner.values.split import Runs
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.health import start_seconds
from chipwise.renderer.targets import ecs
from deployments import on_few_offers as deployment
from hostile import TEXTS, hostile
from scripts import accepted, constants, loaded, same_files, texts

ON_AWS = "clouds=[aws]"


def serve() -> Deployment:
    return deployment("serve", ON_AWS)


@pytest.mark.parametrize("name", ["serve", "finetune", "hpc", "hybrid", "render"])
def test_files_are_accepted_and_do_not_change(name: str, tmp_path: Path) -> None:
    planned = deployment(name, ON_AWS)
    accepted(ecs.render(planned), tmp_path)
    assert same_files(ecs.render, planned)


def test_a_task_asks_for_its_chips_and_leaves_room_for_the_system() -> None:
    task = json.loads(texts(ecs.render(serve()))["task-definition.json"])
    inside = task["containerDefinitions"][0]
    assert inside["resourceRequirements"] == [{"type": "GPU", "value": "1"}]
    assert inside["memory"] * 2**20 < (serve().node.memory_bytes or 0.0)
    assert inside["privileged"] is False
    assert inside["entryPoint"] + inside["command"] == list(serve().software.command)


def test_a_service_rolls_within_the_chips_it_has_and_sleeps_out_of_hours() -> None:
    said = constants(texts(ecs.render(serve()))["ecs_deploy.json"])
    assert said["ROLLOUT"]["maximumPercent"] == 100
    assert said["SCHEDULE"]["close"][2:] == [0, 0]
    planned = serve()
    alone = replace(planned, scaling=replace(planned.scaling, minimum=1)) if planned.scaling else planned
    assert constants(texts(ecs.render(alone))["ecs_deploy.json"])["ROLLOUT"]["minimumHealthyPercent"] == 100


def test_the_group_is_told_its_machines_and_their_image() -> None:
    said = constants(texts(ecs.render(serve()))["ecs_deploy.json"])
    assert said["MACHINES"][0] == serve().node.machine
    assert said["IMAGE_PARAMETER"].startswith("/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/")


@pytest.mark.parametrize(
    ("name", "limit", "what"),
    [
        ("train", ON_AWS, "sagemaker"),
        ("stream", ON_AWS, "ec2"),
        ("batch", ON_AWS, "batch"),
        ("interactive", ON_AWS, "jupyterhub"),
        ("serve", "clouds=[gcp]", "aws"),
    ],
)
def test_what_it_cannot_express_is_refused_with_what_can(name: str, limit: str, what: str) -> None:
    with pytest.raises(CannotRender) as refused:
        ecs.render(deployment(name, limit))
    assert what in str(refused.value.remedy)


def test_runs_are_tasks_that_are_counted_and_parts_find_their_file() -> None:
    files = texts(ecs.render(deployment("hpc", ON_AWS)))
    said, (inside, *_) = constants(files["ecs_deploy.json"]), json.loads(files["task-definition.json"])["containerDefinitions"]
    assert (said["COUNTED"], said["COPIES"]) == ("RUN", 6)
    assert inside["entryPoint"] + inside["command"] == ["mpirun", "-n", "8", "python", "main.py"]
    files = texts(ecs.render(replace(deployment("batch", ON_AWS), machines=2)))
    said, (inside, *_) = constants(files["ecs_deploy.json"]), json.loads(files["task-definition.json"])["containerDefinitions"]
    assert (said["COUNTED"], said["COPIES"]) == ("PART", 16)
    assert inside["command"][1].startswith('export SHARD="$(printf %05d $PART)"; exec sh -c \'')


def test_one_mpi_run_over_several_machines_is_for_schedulers() -> None:
    planned = replace(deployment("hpc", ON_AWS), split=Runs(at_once=1, chips_each=24), runs=1)
    with pytest.raises(CannotRender, match="one MPI program over 3 machines") as told:
        ecs.render(planned)
    assert told.value.remedy == "Use --to slurm or parallelcluster."


def test_failures_count_once_there_was_time_to_start() -> None:
    said = constants(texts(ecs.render(serve()))["ecs_deploy.json"])
    assert said["STARTUP_SECONDS"] == start_seconds(serve())


class Group:
    """ECS with one machine that its auto scaling group protects, and that goes only when it may."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.protected, self.desired, self.polls = True, 1, 0

    def machines(self) -> list[str]:
        self.polls += 0 if self.protected or self.desired else 1
        return ["m"] if self.polls < 3 else []

    def __getattr__(self, name: str) -> Any:
        if name == "exceptions":
            return SimpleNamespace(ObjectNotFoundException=KeyError)
        return lambda **asked: self.call(name, asked)

    def call(self, name: str, asked: dict[str, Any]) -> Any:
        mine = [{"key": "chipwise-deployment", "value": serve().name}]
        match name:
            case "describe_clusters":
                return {"clusters": [{"status": "ACTIVE", "tags": mine}]}
            case "list_services":
                return {"serviceArns": ["s"]}
            case "describe_services":
                gone = "delete_service" in self.said
                return {"services": [{"status": "INACTIVE" if gone else "ACTIVE", "serviceArn": "s"}]}
            case "list_tasks" | "list_task_definitions":
                return {"taskArns": [], "taskDefinitionArns": []}
            case "describe_capacity_providers":
                arn = "arn:aws:autoscaling:x:1:autoScalingGroup:u:autoScalingGroupName/g"
                return {
                    "capacityProviders": [
                        {"status": "ACTIVE", "tags": mine, "autoScalingGroupProvider": {"autoScalingGroupArn": arn}}
                    ]
                }
            case "describe_auto_scaling_groups":
                one = {"InstanceId": "i", "LifecycleState": "InService", "ProtectedFromScaleIn": self.protected}
                return {"AutoScalingGroups": [{"Instances": [one]}]}
            case "set_instance_protection":
                self.protected = False
            case "update_auto_scaling_group":
                assert asked["AutoScalingGroupName"] == "g"
                self.desired = asked["DesiredCapacity"]
            case "list_container_instances":
                return {"containerInstanceArns": self.machines()}
            case "put_cluster_capacity_providers" | "delete_capacity_provider" | "delete_cluster":
                assert self.polls >= 3, "there are machines"
                self.said.append(name)
            case "update_service" | "delete_service":
                self.said.append(name)
        return {}


def test_down_empties_the_group_before_it_takes_the_provider_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    inside, aws = loaded(texts(ecs.render(serve())), "ecs_deploy.py"), Group()
    pages = SimpleNamespace(paginate=lambda **_: [{"taskArns": []}])
    aws.__dict__["get_paginator"] = lambda _: pages
    inside["down"](SimpleNamespace(client=lambda _: aws))
    assert aws.said == [
        "update_service",
        "delete_service",
        "put_cluster_capacity_providers",
        "delete_capacity_provider",
        "delete_cluster",
    ]


def test_the_log_group_is_made_by_who_deploys_and_not_by_the_machines() -> None:
    files = texts(ecs.render(serve()))
    inside, *_ = json.loads(files["task-definition.json"])["containerDefinitions"]
    options = inside["logConfiguration"]["options"]
    assert "awslogs-create-group" not in options
    assert constants(files["ecs_deploy.json"])["LOGS"] == options["awslogs-group"]


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_stays_text(text: str) -> None:
    evil = hostile(deployment("serve", ON_AWS), text)
    files = texts(ecs.render(evil))
    inside, *_ = json.loads(files["task-definition.json"])["containerDefinitions"]
    assert inside["command"][-2:] == [text, f"--a={text}"]
    assert {"name": "SETTING", "value": text} in inside["environment"]
    assert constants(files["ecs_deploy.json"])["NAME"] == evil.name
