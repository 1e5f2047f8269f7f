"""The command line on a real cluster: planned, rendered, tried out, applied, told, stopped and cleared by real processes.

Only machines are played: nodes are objects, and `kube.kubelet` says of their pods what a kubelet would.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from command import Chipwise, Done
from kube import kubelet
from kube.control_plane import Cluster
from kube.process import wait_for

pytestmark = pytest.mark.e2e
GPU = "nvidia.com/gpu"
WORK = """
kind: finetune
name: tune
model: llama-3.1-8b
method: lora
tokens: 20M
labels: {team: vision}
limits: {clouds: [aws], regions: [eu-west-1]}
program: {image: "registry.example.com/team/tune:1.4", command: [python, tune.py]}
"""


class User:
    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace = cluster, namespace
        self.chipwise = Chipwise(folder, {"CHIPWISE_GPUS": "", "CHIPWISE_CPUS": "0"})
        self.chipwise.config_dir.mkdir(parents=True)
        fields = {"kind": "kubernetes", "kubeconfig": str(cluster.kubeconfig()), "namespace": namespace}
        (self.chipwise.config_dir / "engines.yaml").write_text(json.dumps({"cluster": fields}))

    def run(self, *words: str, **more: Any) -> Done:
        return self.chipwise.process(*words, **more)

    def submit(self, *words: str) -> dict[str, Any]:
        done = self.run("run", "--json", "--engine", "cluster", *words)
        assert done.code == 0, done.err
        told: dict[str, Any] = done.json[0]
        return told

    def wait(self, id: str, phase: str) -> dict[str, Any]:
        def probe() -> dict[str, Any]:
            found: dict[str, Any] = self.run("describe", id, "--json").json
            assert found["phase"] == phase, f"{found['phase']} {found['waiting']} {found['reason']} {self.controller_log()}"
            return found

        return wait_for(f"{id} to be {phase}", probe, 90)

    def controller_log(self) -> str:
        return "".join(one.read_text() for one in self.chipwise.data_dir.glob("run/places/*/controller.log"))

    def pods(self) -> list[Mapping[str, Any]]:
        return self.cluster.pods(self.namespace)

    def end_pods(self, code: int = 0) -> None:
        told = {kubelet.RUNS_SECONDS: "0", kubelet.EXIT_CODE: str(code)}
        for pod in self.pods():
            self.cluster.api.merge(
                "v1", "Pod", pod["metadata"]["name"], {"metadata": {"annotations": told}}, self.namespace
            ).must()

    def controller(self) -> int:
        [lock] = self.chipwise.data_dir.glob("run/places/*/controller.lock")
        return int(lock.read_text())


@pytest.fixture
def user(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[User]:
    made = User(cluster, namespace, tmp_path)
    yield made
    for lock in made.chipwise.data_dir.glob("run/places/*/controller.lock"):
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(lock.read_text()), signal.SIGTERM)


def test_a_command_in_an_image_runs_is_told_and_cleared(cluster: Cluster, namespace: str, user: User) -> None:
    cluster.fake_node(f"{namespace}-a", {GPU: "8"})
    told = user.submit(
        "--image", "team/trainer:1.4", "--gpus", "2", "--name", "train", "--env", "LR=0.1", "--", "python", "t.py"
    )
    user.wait(told["id"], "running")
    [pod] = user.pods()
    [container] = pod["spec"]["containers"]
    assert (container["image"], container["command"]) == ("team/trainer:1.4", ["python", "t.py"])
    assert container["resources"]["limits"][GPU] == "2"
    settings = {one["name"]: one.get("value") for one in container["env"]}
    assert (settings["LR"], settings["CHIPWISE_JOB"]) == ("0.1", told["id"])
    assert not settings.keys() & {"PATH", "HOME", "VIRTUAL_ENV"}, "settings of this machine went along"
    user.end_pods()
    found = user.wait(told["id"], "done")
    assert len(found["attempts"]) == 1
    wait_for("its objects to go", lambda: not user.pods(), 30)
    assert user.run("reap", "--json").json == []
    assert "done" in user.run("ps").out


def test_its_own_failure_is_told_and_not_tried_again(cluster: Cluster, namespace: str, user: User) -> None:
    cluster.fake_node(f"{namespace}-a", {})
    told = user.submit("--image", "team/trainer:1.4", "--", "python", "t.py")
    user.wait(told["id"], "running")
    user.end_pods(3)
    found = user.wait(told["id"], "failed")
    assert [one["code"] for one in found["attempts"]] == [3]


def test_a_planned_workload_waits_for_the_machine_of_its_plan_and_is_stopped(
    cluster: Cluster, namespace: str, user: User, tmp_path: Path
) -> None:
    path = tmp_path / "tune.yaml"
    path.write_text(WORK)
    told = user.submit(str(path))
    assert told["predicted"]["seconds"] > 60
    assert told["team"] == "vision"
    until = time.monotonic() + 60
    waiting = ""
    while "no node" not in waiting and time.monotonic() < until:
        waiting = user.run("describe", told["id"], "--json").json["waiting"]
        time.sleep(0.5)
    assert "no node fits" in waiting, waiting + user.controller_log()
    os.kill(user.controller(), signal.SIGKILL)
    assert user.run("stop", "--wait", told["id"]).err.endswith("stopped\n")
    wait_for("its pods to go", lambda: not user.pods(), 30)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "true"), "--image"),
        (("--image", "no image", "--", "true"), "is no image"),
        (("--image", "a:1", "--namespace", "nowhere", "--", "true"), "There is no namespace nowhere"),
        (("--image", "a:1", "--context", "nowhere", "--", "true"), "nowhere"),
        (("--image", "a:1", "--queue", "nowhere", "--", "true"), "no queue nowhere"),
        (("--image", "a:1", "--secret", "TOKEN", "--", "true"), "--secret TOKEN=NAME/KEY"),
        (("--image", "a:1", "--machine", "g5.xlarge", "--", "true"), "--machine"),
    ],
)
def test_what_the_cluster_would_refuse_is_told_and_recorded_nowhere(user: User, words: tuple[str, ...], said: str) -> None:
    done = user.run("run", "--engine", "cluster", *words, TOKEN="x")
    assert done.code in (2, 3), done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert user.run("ps", "--all", "--json").json == []
    assert not user.pods()
