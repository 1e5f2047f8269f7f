"""What jobs on a cluster tell of their steps: the command line, a real control plane, and pods that really run.

`kube.process_kubelet` stands in for the kubelet: each container is a process of this machine, with the pod's settings, its
signals, its exit code and its last words.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from command import Chipwise
from kube.control_plane import Cluster
from kube.process import wait_for
from kube.process_kubelet import ProcessKubelet
from kube.rendered import disks
from kube.user import User, user_of
from own_machine import CPUS, OWN

pytestmark = pytest.mark.e2e
IMAGE = "team/trainer:1.4"
# A walk of numbers that depends on every step before, so that one that is done twice or left out shows in the last bit.
TRAIN = """
import sys, time
import numpy as np
import chipwise.job as job

state = {"w": np.zeros(256), "rng": np.random.default_rng(7)}
begun = None
for step in job.steps(state, total=60, every=5):
    begun = step if begun is None else begun
    state["w"] += 0.1 * (np.tanh(state["rng"].normal(size=256) + state["w"][::-1]) - 0.3 * state["w"])
    time.sleep(float(sys.argv[2]))
np.savez(sys.argv[1], w=state["w"], begun=begun)
"""
FAILS = """
import chipwise.job as job
for step in job.steps({"n": 0}, total=40, every=5):
    if step == 17:
        raise ArithmeticError("the loss is no number")
"""
LONG = """
import time
import chipwise.job as job
for step in job.steps({"n": 0}, every=5):
    time.sleep(0.05)
"""
# Its last step lasts until a file is there, so that it is told to leave just when it is done.
LAST = """
import pathlib, sys, time
import chipwise.job as job
last, go = map(pathlib.Path, sys.argv[1:])
for step in job.steps({"n": 0}, total=4):
    if step == 3:
        last.touch()
        while not go.exists():
            time.sleep(0.05)
    assert step < 3 or job.leaving() is not None, "nobody has told it to leave"
"""
# Nothing is learnt: steps that take as long as they are told, so that a measured speed can be held against a known one.
STAND_IN = """
import sys, time
import chipwise.job as job
for step in job.steps({"n": 0}, total=5000, every=1000):
    time.sleep(0.8 if step < 2 else 0.02)
"""
WORK = """
kind: train
name: stand-in
model: gpt2
tokens: 10M
sequence_length: 256
batch_tokens: 2048
precision: bf16
limits: {{clouds: [aws], regions: [eu-west-1]}}
program: {{image: "registry.example.com/team/train:1.4", command: [{python}, {program}]}}
"""


@pytest.fixture
def user(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[User]:
    with user_of(cluster, namespace, tmp_path) as made:
        made.chipwise = Chipwise(tmp_path, {"CHIPWISE_GPUS": "none", "CHIPWISE_CHIP": "this-box"})
        (made.chipwise.config_dir / "catalog").mkdir()
        (made.chipwise.config_dir / "catalog" / "own.yaml").write_text(OWN)
        yield made


def written(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(text)
    return str(path)


def submitted(user: User, *words: str) -> str:
    return str(user.submit("--image", IMAGE, *words)["id"])


def test_a_training_whose_machine_is_lost_ends_as_one_that_was_not(
    namespace: str, user: User, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    kubelet.node(f"{namespace}-a")
    kept, program = tmp_path / "kept", written(tmp_path, TRAIN)
    id = submitted(user, "--checkpoints", str(kept), "--", "python", program, str(tmp_path / "lost.npz"), "0.08")
    wait_for("a checkpoint", lambda: len(list(kept.rglob("*.json"))) > 1, 40)
    kubelet.lose(f"{namespace}-a")
    kubelet.node(f"{namespace}-b")
    found = user.wait(id, "done")
    assert [one["outcome"] for one in found["attempts"]] == ["lost", "done"]
    assert [one["step"] for one in found["attempts"]] == [None, 60], "a machine that is lost tells nothing"
    assert "node no longer exists" in found["attempts"][0]["reason"]
    alone = {**os.environ, "CHIPWISE_CHECKPOINTS": str(tmp_path / "alone")}
    subprocess.run([sys.executable, program, str(tmp_path / "whole.npz"), "0"], env=alone, check=True, timeout=300)
    with np.load(tmp_path / "lost.npz") as lost, np.load(tmp_path / "whole.npz") as whole:
        assert lost["w"].tobytes() == whole["w"].tobytes()
        assert lost["begun"] > 0, "it did not go on from its checkpoint"
        assert whole["begun"] == 0


def test_a_job_that_fails_three_times_at_one_step_has_a_bug(
    namespace: str, user: User, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    kubelet.node(f"{namespace}-a")
    id = submitted(user, "--retries", "9", "--checkpoints", str(tmp_path / "kept"), "--", "python", written(tmp_path, FAILS))
    found = user.wait(id, "failed")
    assert found["reason"] == "exit code 1; 3 times at step 17: a bug in the program", kubelet.output()
    assert [one["step"] for one in found["attempts"]] == [17, 17, 17]


def told_to_leave(cluster: Cluster, namespace: str, id: str) -> bool:
    main = cluster.api.get("batch/v1", "Job", f"{id}-a1", namespace)
    return main is not None and "chipwise.dev/leave-by" in main["metadata"]["annotations"]


def test_a_job_that_is_told_to_leave_just_when_it_is_done_is_done(
    cluster: Cluster, namespace: str, user: User, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    kubelet.node(f"{namespace}-a")
    last, go = tmp_path / "last", tmp_path / "go"
    id = submitted(user, "--checkpoints", str(tmp_path / "kept"), "--", "python", written(tmp_path, LAST), str(last), str(go))
    wait_for("its last step", last.exists, 40)
    user.wait(id, "running")
    [pod] = user.pods()
    name = pod["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    cluster.api.call("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", eviction).must()
    wait_for("its Job to be told to leave", lambda: told_to_leave(cluster, namespace, id), 20)
    go.touch()
    found = user.wait(id, "done")
    assert [(one["outcome"], one["code"], one["step"]) for one in found["attempts"]] == [("done", 0, 4)]


def test_of_a_gang_that_is_stopped_the_first_pod_tells_how_far_it_came(
    namespace: str, user: User, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    kubelet.node(f"{namespace}-a")
    kept = tmp_path / "kept"
    id = submitted(user, "--machines", "2", "--checkpoints", str(kept), "--", "python", written(tmp_path, LONG))
    user.wait(id, "running")
    wait_for("a checkpoint", lambda: len(list(kept.rglob("*.json"))) > 1, 40)
    assert user.run("stop", "--wait", id).err.endswith("stopped\n")
    [found] = user.wait(id, "stopped")["attempts"]
    assert (found["outcome"], found["code"]) == ("stopped", 75), kubelet.output()
    assert found["step"] > 0


@contextmanager
def brought(cluster: Cluster, namespace: str, user: User, kubelet: ProcessKubelet) -> Iterator[None]:
    """The machine and the disks that the pod of a plan waits for."""
    [pod] = wait_for("a pod that waits for a machine", lambda: user.pods() or None, 60)
    claims = [{**one, "kind": "PersistentVolumeClaim"} for one in cluster.api.list("v1", "PersistentVolumeClaim", namespace)]
    affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = {one["key"]: one["values"][0] for one in affinity["nodeSelectorTerms"][0]["matchExpressions"]}
    with disks(cluster, claims):
        kubelet.node(f"{namespace}-a", pod["spec"]["containers"][0]["resources"]["limits"], labels)
        yield


def test_a_benchmark_on_a_cluster_measures_steps_as_one_on_this_machine_does(
    cluster: Cluster, namespace: str, user: User, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    work = tmp_path / "work.yaml"
    work.write_text(WORK.format(python=sys.executable, program=written(tmp_path, STAND_IN)))
    rows = tmp_path / "runs.csv"
    places = ("--on", "cluster", "--on", f"local:cpus={CPUS}")
    with user.shell("bench", str(work), *places, "--steps", "130", "--out", str(rows), "--json") as bench:
        with brought(cluster, namespace, user, kubelet):
            said = bench.communicate(timeout=100)[0].decode()
        assert bench.returncode == 0, said + kubelet.output() + user.controller_log()
    results, _ = json.JSONDecoder().raw_decode(said, said.index("[{"))
    for found in results:
        # 50 steps a second at most, of 2048 tokens. With the first two in it, it would be two thirds of that.
        assert 0.75 * 50 * 2048 < found["speed"] < 50 * 2048, found
        assert found["low"] < found["predicted"] < found["high"]
        assert found["ratio"] == pytest.approx(found["speed"] / found["predicted"])
        assert [(one["steps"], one["attempts"]) for one in found["runs"]] == [(130, 1)]
        assert found["usd_per_unit"] > 0
    with rows.open() as file:
        chips = [one["chip"] for one in csv.DictReader(file)]
    assert chips == [one["chip"] for one in results]
    assert chips[1] == "this-box" != chips[0]
    assert user.shown("score", str(rows)).code == 0
    assert user.shown("calibrate", str(rows), "--json").json["used"] == 2
