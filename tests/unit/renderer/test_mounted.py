"""Directories that a command names are there when it starts, and belong to who runs it, in every target."""

from __future__ import annotations

import base64
import json
import subprocess
from dataclasses import replace
from email import message_from_string
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.launch.mounted import mounted_volumes
from chipwise.renderer.targets import batch, ecs
from deployments import on_few_offers as deployment
from scripts import constants, loaded, texts

PLACE = "s3://docs/all/"


def archive() -> Deployment:
    """A batch whose data lies in a bucket, and whose command knows files."""
    planned = deployment("batch", "clouds=[aws]")
    volumes = tuple(replace(one, url=PLACE) if one.name == "data" else one for one in planned.volumes)
    return replace(planned, volumes=volumes, machines=2)


def test_a_directory_that_the_command_names_is_mounted_wherever_its_contents_lie() -> None:
    planned = archive()
    assert any(word.startswith("/data/") for word in planned.software.command)
    assert "data" in [one.name for one in mounted_volumes(planned)]
    elsewhere = replace(planned, software=replace(planned.software, command=("python", "ours.py")))
    assert "data" not in [one.name for one in mounted_volumes(elsewhere)], "its program reads the bucket by itself"


def test_batch_mounts_it_and_says_who_fills_it() -> None:
    made = json.loads(texts(batch.render(archive()))["batch_job.json"])
    assert ["data", "/data"] in made["VOLUMES"]
    assert "/data" in made["KEEPS"]
    assert made["notes"]["KEEPS"] == [f"Fill /data from {PLACE} first: the program reads files, not the object store."]


def test_ecs_mounts_it_too() -> None:
    files = texts(ecs.render(archive()))
    task = json.loads(files["task-definition.json"])
    assert {"sourceVolume": "data", "containerPath": "/data"} in task["containerDefinitions"][0]["mountPoints"]
    assert "data" in [one["name"] for one in task["volumes"]]
    assert "/data" in constants(files["ecs_deploy.json"])["KEEPS"]


def test_directories_of_a_machine_of_batch_belong_to_the_programs_user(tmp_path: Path) -> None:
    inside = loaded(texts(batch.render(archive())), "batch_job.py")
    mail = message_from_string(base64.b64decode(inside["template"]("sg-1", "subnet-1")["UserData"]).decode())
    (script,) = [part.get_payload() for part in mail.get_payload() if isinstance(part, type(mail))]
    assert isinstance(script, str)
    owners = tmp_path / "owners"
    tools = f'chown() {{ echo "$@" >> {owners}; }}\n'
    text = tools + script.replace("/var/lib/chipwise", str(tmp_path))
    subprocess.run(["sh", "-eu", "-c", text], check=True)
    names = [name for name, _ in inside["VOLUMES"]]
    assert owners.read_text().split() == ["10001:10001", *(str(tmp_path / name) for name in names)]
    assert all((tmp_path / name).is_dir() for name in names)


class Files:
    """EFS, which gives a door to a directory and makes it ready after a while."""

    def __init__(self) -> None:
        self.points: list[dict[str, Any]] = []

    def create_access_point(self, **asked: Any) -> dict[str, Any]:
        self.points.append({**asked, "AccessPointId": f"fsap-{len(self.points)}", "LifeCycleState": "creating"})
        return self.points[-1]

    def describe_access_points(self, AccessPointId: str) -> dict[str, Any]:  # noqa: N803
        (point,) = [one for one in self.points if one["AccessPointId"] == AccessPointId]
        seen, point["LifeCycleState"] = dict(point), "available"
        return {"AccessPoints": [seen]}

    def get_paginator(self, _: str) -> Any:
        return SimpleNamespace(paginate=lambda FileSystemId: [{"AccessPoints": self.points}])  # noqa: N803


def options(**given: Any) -> SimpleNamespace:
    return SimpleNamespace(
        **{"efs": None, "image": "me/it:1", "job_role": None, "task_role": None, "execution_role": None} | given
    )


def volumes(name: str, module: ModuleType, script: str, aws: Files, folder: Path) -> list[dict[str, Any]]:
    files = texts(module.render(archive()))
    inside = loaded(files, script)
    session = SimpleNamespace(client=lambda _: aws)
    if name == "batch":
        made = inside["container"](session, options(efs="fs-1"))
        assert made["user"] == "10001:10001"
        return list(made["volumes"])
    (folder / "task-definition.json").write_text(files["task-definition.json"])
    inside["task"].__globals__["__file__"] = str(folder / script)
    return list(inside["task"](session, options(efs="fs-1"))["volumes"])


@pytest.mark.parametrize(("name", "module", "script"), [("batch", batch, "batch_job.py"), ("ecs", ecs, "ecs_deploy.py")])
def test_directories_of_a_file_system_are_made_for_the_programs_user(
    name: str, module: ModuleType, script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    aws = Files()
    planned = archive()
    made = volumes(name, module, script, aws, tmp_path)
    places = {one["name"]: one["efsVolumeConfiguration"] for one in made}
    paths = {one["AccessPointId"]: one["RootDirectory"]["Path"] for one in aws.points}
    assert set(places) == {one.name for one in mounted_volumes(planned)}
    for volume, place in places.items():
        assert "rootDirectory" not in place, "a directory that is not there is not mounted"
        assert place["transitEncryption"] == "ENABLED"
        assert paths[place["authorizationConfig"]["accessPointId"]] == f"/{planned.name}/{volume}"
    assert all(one["RootDirectory"]["CreationInfo"]["OwnerUid"] == 10001 for one in aws.points)
    again = volumes(name, module, script, aws, tmp_path)
    assert again == made, "a second start opens no second door"
