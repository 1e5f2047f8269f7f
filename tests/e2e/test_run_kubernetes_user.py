"""What people do with jobs on a cluster, by the command line alone: services, pipelines, as many machines as can be had,
watching and stopping from another shell, and what they are told where nothing can run.

Real are the commands and the cluster. Played are machines (`kube.kubelet`) and the port at which they tell what pods wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kube import kubelet
from kube.control_plane import Cluster
from kube.kueue import VERSION
from kube.user import User
from kube.written import written_by_pods

pytestmark = pytest.mark.e2e
GPU = "nvidia.com/gpu"
LIMITS = "limits: {clouds: [aws], regions: [eu-west-1], chips: [a10g]}"
CHAT = f"""
kind: serve
name: chat
model: llama-3.1-8b
arrival: {{rate: 1 req/s}}
input_tokens: 500
output_tokens: 200
replicas: {{min: 1, max: 1}}
{LIMITS}
"""
PIPELINE = f"""
kind: pipeline
name: p
stages:
- kind: hpc
  name: prepare
  steps: 10
  flop_per_step: 1e15
  precision: fp32
  program: {{command: [sh, -c, "echo prepared > prepared.txt"], produces: [prepared.txt]}}
- kind: finetune
  name: tune
  model: llama-3.1-8b
  method: lora
  tokens: 20M
  program: {{image: "registry.example.com/team/tune:1.4", command: [python, tune.py], produces: [adapter.bin]}}
- kind: batch
  name: score
  model: llama-3.1-8b
  items: 1000
  input_tokens: 100
  output_tokens: 10
  program: {{command: [cat, prepared.txt]}}
{LIMITS}
"""
BIG = """
kind: train
name: big
model: llama-3.1-8b
tokens: 2B
goals: {deadline: 20d}
limits: {clouds: [aws], regions: [us-east-1], chips: [a100-40gb-sxm], chip_count: {min: 16, max: 16}}
program: {image: "registry.example.com/team/train:1.4", command: [python, train.py]}
"""


@pytest.fixture
def queued(kueued: Cluster, namespace: str, user: User) -> Iterator[User]:
    """In the namespace are team-a, which has 2 GPUs, and team-z, which has nothing."""
    made: list[Mapping[str, Any]] = [
        {"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": namespace}, "spec": {}}
    ]
    for team, gpus, cpus in (("team-a", "2", "64"), ("team-z", "0", "0")):
        quotas = [{"name": "cpu", "nominalQuota": cpus}, {"name": GPU, "nominalQuota": gpus}]
        group = {"coveredResources": ["cpu", GPU], "flavors": [{"name": namespace, "resources": quotas}]}
        given = {"namespaceSelector": {}, "resourceGroups": [group]}
        meta = {"name": f"{namespace}-{team}"}
        made += [
            {"apiVersion": VERSION, "kind": "ClusterQueue", "metadata": meta, "spec": given},
            {
                "apiVersion": VERSION,
                "kind": "LocalQueue",
                "metadata": {"name": team, "namespace": namespace},
                "spec": {"clusterQueue": meta["name"]},
            },
        ]
    kueued.must_apply(made)
    yield user
    for version, kind in (("batch/v1", "Job"), ("apps/v1", "Deployment")):
        kueued.api.empty(version, kind, namespace)
    for team in ("team-a", "team-z"):
        kueued.api.delete(VERSION, "LocalQueue", team, namespace)
        kueued.api.delete(VERSION, "ClusterQueue", f"{namespace}-{team}")
    kueued.api.delete(VERSION, "ResourceFlavor", namespace)


def _crash(cluster: Cluster, pod: Mapping[str, Any]) -> None:
    """As a kubelet tells of a container that ends each time: the pod itself is said to run."""
    last = {"exitCode": 2, "reason": "Error", "startedAt": "2026-11-15T00:00:00Z", "finishedAt": "2026-11-15T00:00:05Z"}
    container = {
        "name": "main",
        "image": "x",
        "imageID": "",
        "ready": False,
        "restartCount": 3,
        "lastState": {"terminated": last},
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
    }
    conditions = [{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]
    status = {"containerStatuses": [container], "conditions": conditions}
    meta = pod["metadata"]
    cluster.api.merge("v1", "Pod", meta["name"], {"status": status}, meta["namespace"], status=True).must()


def test_a_service_says_where_it_serves_and_what_ails_it_and_leaves_nothing_when_it_is_stopped(
    cluster: Cluster, user: User, tmp_path: Path
) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(CHAT)
    id = user.submit(str(path))["id"]
    user.told(id, "no node fits")
    assert "requests" in user.shown("describe", id).out, "nothing is held while nothing came"
    user.bring_what_it_waits_for(id)
    user.wait(id, "running")
    service = f"{id}-a1"
    assert cluster.api.get("v1", "Service", service, user.namespace) is not None
    shown = user.shown("describe", id).out
    assert f"serves at  http://{service}.{user.namespace}.svc" in shown
    assert f"svc/{service} 8080:80" in " ".join(shown.split())
    [pod] = user.pods()
    cpus = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert f"uses       1 GPU, {cpus} CPUs" in shown
    assert "kubernetes" in user.shown("top", "--once").out
    _crash(cluster, pod)
    user.told(id, "it keeps crashing: started 4 times, last ended with code 2")
    assert "problem" in user.shown("describe", id).out
    cluster.api.delete("v1", "Pod", pod["metadata"]["name"], user.namespace, at_once=True)
    user.told(id, "waits: started; it does not pass its health check yet")
    [other] = user.pods()
    assert other["metadata"]["name"] != pod["metadata"]["name"]
    assert len(user.look(id)["attempts"]) == 1, "its Deployment replaced the pod; the attempt goes on"
    done = user.run("stop", "--wait", id)
    assert (done.code, done.err.splitlines()[-1]) == (0, f"{id} stopped")
    user.must_leave_nothing()


def test_a_stage_on_the_cluster_comes_in_its_turn_and_its_failure_ends_the_pipeline(
    cluster: Cluster, user: User, tmp_path: Path
) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE)
    done = user.run("run", "-d", "--stage-engine", "tune=cluster", "--retries", "0", str(path))
    assert done.code == 0, done.err
    prepare, tune, score = done.out.split()
    assert f"{tune}: adapter.bin is not on a persistent volume" in " ".join(done.err.split())
    user.wait(prepare, "done")
    user.bring_what_it_waits_for(tune)
    begun = user.wait(tune, "running")["attempts"][0]["begun"]
    assert begun >= int(user.look(prepare)["ended"])
    assert user.look(score)["waiting"] == "waits for p-tune"
    assert "waits for p-tune" in user.shown("ps").out
    user.end_pods(3)
    failed = user.wait(tune, "failed")
    assert (failed["reason"], len(failed["attempts"])) == ("exit code 3", 1), "--retries holds for a workload too"
    assert user.wait(score, "failed")["reason"] == f"p-tune failed before it ({tune})"
    user.must_leave_nothing()
    assert user.run("retry", tune, score).code == 0
    user.wait(tune, "running")
    user.end_pods()
    user.wait(score, "done")
    assert user.shown("logs", score).out == "prepared\n"


def test_a_command_that_can_do_with_fewer_machines_goes_on_with_as_many_as_came_and_later_asks_for_all(
    cluster: Cluster, namespace: str, user: User
) -> None:
    cluster.fake_node(f"{namespace}-a", {GPU: "6"})
    words = ("--image", "a:1", "--machines", "2-4", "--gpus", "2", "--patience", "8s")
    id = user.submit("--name", "wide", *words, "--", "train")["id"]
    user.told(id, "3 of 4 pods run; no node fits: of 1 node 1 Insufficient nvidia.com/gpu")
    assert user.look(id)["phase"] == "starting", "pods wait for each other"
    story = user.told(id, "attempt 2 starts (continues with 3 of 4 machines, since no more came)")
    assert "attempt 1 is asked to save and exit: 3 of 4 machines came in" in story
    user.wait(id, "running")
    assert "on each of 3 of 4 machines" in user.shown("describe", id).out
    assert "3 x 2" in user.shown("ps").out
    assert "3 x 2" in user.shown("top", "--once").out
    [size] = {one["value"] for one in user.pods()[0]["spec"]["containers"][0]["env"] if one["name"] == "WORLD_SIZE"}
    assert size == "3"
    kubelet.disrupt(cluster.api, user.pods()[0], "the machine was shut down")
    story = user.told(id, "attempt 3 starts (continues with 3 of 4 machines)")
    assert "attempt 2 was lost" in story
    assert "the machine was shut down" in story
    user.run("stop", "--wait", id)
    cluster.fake_node(f"{namespace}-b", {GPU: "2"})
    assert user.run("resume", id).code == 0
    user.told(id, "attempt 4 starts (all 4 machines again)")
    found = user.wait(id, "running")
    assert found["held"]["machines"] == 4
    user.run("stop", "--wait", id)
    user.must_leave_nothing()


def test_where_the_quota_holds_fewer_machines_it_goes_on_with_those(cluster: Cluster, namespace: str, queued: User) -> None:
    cluster.fake_node(f"{namespace}-a", {GPU: "8"})
    words = ("--image", "a:1", "--gpus", "1", "--patience", "8s", "--queue", "team-a")
    done = queued.run("run", "--engine", "cluster", *words, "--machines", "3-4", "--", "train")
    assert (done.code, "needs 3 GPUs, and queue team-a never gives more than 2" in done.err) == (2, True), done.err
    id = queued.submit(*words, "--machines", "1-4", "--", "train")["id"]
    queued.told(id, "team-a has 0 of 2 GPUs in use, and it asks for 4")
    queued.told(id, "continues with 2 of 4 machines, since no more came")
    assert queued.wait(id, "running")["held"]["machines"] == 2
    second = queued.submit(*words, "--name", "second", "--", "train")["id"]
    queued.told(second, "team-a has 2 of 2 GPUs in use")
    assert queued.run("stop", "--wait", second, id).code == 0
    queued.must_leave_nothing()


def test_a_planned_workload_goes_on_with_fewer_machines_than_its_plan_takes_where_those_will_do(
    user: User, tmp_path: Path
) -> None:
    path = tmp_path / "big.yaml"
    path.write_text(BIG)
    done = user.run("run", "--engine", "cluster", "--machines", "3-", str(path))
    assert (done.code, "has 2 machines, fewer than the minimum of 3" in done.err) == (2, True), done.err
    id = user.submit("--machines", "1-", "--patience", "45s", str(path))["id"]
    user.bring_what_it_waits_for(id)
    story = user.told(id, "continues with 1 of 2 machines, since no more came)")
    assert "1 of 2 pods run; no node fits" in story
    user.wait(id, "running")
    [pod] = user.pods()
    assert "--nnodes=1" in pod["spec"]["containers"][0]["command"][-1]
    assert "on each of 1 of 2 machines" in user.shown("describe", id).out
    user.bring_a_machine(id, "second")
    assert user.run("stop", "--wait", id).code == 0
    assert user.run("resume", id).code == 0
    user.told(id, "all 2 machines again)")
    assert user.wait(id, "running")["held"]["machines"] == 2
    assert all("--nnodes=2" in pod["spec"]["containers"][0]["command"][-1] for pod in user.pods())
    assert user.run("stop", "--wait", id).code == 0
    user.must_leave_nothing()


def test_a_quota_of_nothing_is_one_sentence_for_a_command_and_for_a_service(queued: User, tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(CHAT)
    for words in (("--image", "a:1", "--gpus", "1", "--", "train"), (str(path),)):
        done = queued.run("run", "--engine", "cluster", "--queue", "team-z", *words)
        assert done.code == 2
        assert "needs 1 GPU, and queue team-z never gives more than 0. Ask for fewer" in done.err
        assert len(done.err.splitlines()) == 1
    assert queued.shown("ps", "--all", "--json").json == []
    assert not queued.left()


def test_without_a_kubeconfig_the_remedy_is_told(user: User) -> None:
    for engine, path in (("kubernetes", ".kube/config"), ("nowhere", "/nowhere/config")):
        (user.chipwise.config_dir / "engines.yaml").write_text("nowhere: {kind: kubernetes, kubeconfig: /nowhere/config}")
        done = user.run("run", "--engine", engine, "--image", "a:1", "--", "true")
        assert done.code == 3
        assert f"{path} is not there. Set KUBECONFIG" in done.err
    assert user.shown("ps", "--all", "--json").json == []


def test_an_image_that_is_not_there_is_told_and_its_job_can_be_stopped(cluster: Cluster, namespace: str, user: User) -> None:
    cluster.fake_node(f"{namespace}-a", {})
    image = f"team/trainer{kubelet.NOT_THERE}"
    id = user.submit("--image", image, "--", "train")["id"]
    user.told(id, f"its image {image} cannot be pulled: ErrImagePull")
    assert f"its image {image}"[:12] in user.shown("ps").out
    user.kill_controller()
    assert user.run("stop", "--wait", id).code == 0
    user.must_leave_nothing()


def test_a_job_is_watched_stopped_resumed_and_tried_again_from_other_shells_whoever_was_killed(
    cluster: Cluster, namespace: str, user: User, tmp_path: Path
) -> None:
    with written_by_pods(tmp_path) as written:
        written.serve(cluster, cluster.fake_node(f"{namespace}-a", {}))
        id = user.submit("--image", "a:1", "--machines", "2", "--name", "two", "--", "train")["id"]
        user.wait(id, "running")
        first, second = sorted(one["metadata"]["name"] for one in user.pods())
        written.lines[first] += [f"first {number}" for number in range(20)]
        written.lines[second] += ["second 0", "second 1"]
        assert user.shown("logs", id, "--tail", "1").out == "second 1\n"
        assert user.shown("logs", id, "--rank", "1").out == "second 0\nsecond 1\n"
        done = user.shown("logs", id, "--rank", "2")
        assert (done.code, "has 2 pods, and none is 2. They are numbered from 0 to 1." in done.err) == (2, True), done.err
        user.kill_controller()
        with user.shell("attach", id) as attached, user.shell("logs", "-f", "--rank", "1", id) as followed:
            assert attached.stdout is not None
            assert [attached.stdout.readline() for _ in range(10)] == [f"first {n}\n".encode() for n in range(10, 20)]
            written.lines[first].append("first 20")
            assert attached.stdout.readline() == b"first 20\n", "what was shown is not shown again"
            written.over |= {first, second}
            assert user.run("stop", "--wait", id).err.endswith("stopped\n")
            assert attached.stdout.read() == f"{id} stopped: on request\n".encode()
            assert attached.wait(30) == 1
            assert followed.communicate(timeout=30)[0] == b"second 0\nsecond 1\n"
        user.must_leave_nothing()
        assert user.shown("logs", id, "--rank", "1").out == "second 0\nsecond 1\n", "kept when its pods went"
        user.kill_controller()
        assert user.run("resume", id).err == f"{id} continues\n"
        user.wait(id, "running")
        user.end_pods(4)
        assert "pod 1 of 2 ended with code 4" in user.wait(id, "failed")["reason"]
        assert user.run("retry", id).err == f"{id} restarts\n"
        user.wait(id, "running")
        user.end_pods()
        assert [one["outcome"] for one in user.wait(id, "done")["attempts"]] == ["stopped", "failed", "done"]
        for again in ("retry", "resume"):
            done = user.run(again, id)
            assert (done.code, "Submit it again" in done.err) == (2, True)
        later = user.submit("--image", "a:1", "--after", id, "--", "train")["id"]
        user.wait(later, "running")
        last = user.submit("--image", "a:1", "--after", later, "--", "train")["id"]
        assert user.look(last)["waiting"] == "waits for train"
        assert user.run("stop", "--wait", last, later).code == 0, "one that is queued, and one that runs"
        user.must_leave_nothing()
