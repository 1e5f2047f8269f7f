"""The command line on a real cluster: planned, rendered, tried out, applied, told, stopped and cleared by real processes.

Only machines are played: nodes are objects, and `kube.kubelet` says of their pods what a kubelet would.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.control_plane import Cluster
from kube.process import wait_for
from kube.user import User, user_of
from patience import deadline

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


@pytest.fixture
def user(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[User]:
    with user_of(cluster, namespace, tmp_path) as made:
        yield made


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
    until = deadline(60)
    waiting = ""
    while "no node" not in waiting and time.monotonic() < until:
        waiting = user.run("describe", told["id"], "--json").json["waiting"]
        time.sleep(0.5)
    assert "no node fits" in waiting, waiting + user.controller_log()
    user.kill_controller()
    assert user.run("stop", "--wait", told["id"]).err.endswith("stopped\n")
    wait_for("its pods to go", lambda: not user.pods(), 30)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "true"), "--image"),
        (("--image", "no image", "--", "true"), "is not an image"),
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
