"""A model that is larger than one machine is a group of pods that start and end together, or no file at all."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from chipwise.planner.values.split import GenerationSplit
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import most_machines, replica_machines, surge
from chipwise.renderer.named_targets import files, target, target_names
from fixed_deployments import CASES

WIDE = CASES["wide"]
EXPRESS = {
    "diagram", "dockerfile", "eksctl", "external-secrets", "gateway", "github-actions", "karpenter", "keda", "kubernetes",
    "kueue", "mlflow", "monitoring", "ray",
}  # fmt: skip


def written(name: str, planned: Deployment = WIDE) -> dict[str, str]:
    return {file.path: file.text for file in files(name, target(name), planned)}


def objects(name: str, planned: Deployment = WIDE) -> list[dict[str, Any]]:
    return [one for text in written(name, planned).values() for one in yaml.safe_load_all(text)]


def one(kind: str, name: str = "kubernetes", planned: Deployment = WIDE) -> dict[str, Any]:
    return next(it for it in objects(name, planned) if it["kind"] == kind)


def flag(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def test_a_copy_of_sixteen_chips_takes_two_machines_of_eight() -> None:
    assert replica_machines(WIDE) == 2
    assert replica_machines(CASES["serve"]) == 1
    assert replica_machines(CASES["train"]) == 1, "a job's machines are counted as those that meet"


@pytest.mark.parametrize("name", ["kubernetes", "kueue"])
def test_a_group_has_a_leader_and_workers_that_find_each_other(name: str) -> None:
    group = one("LeaderWorkerSet", name)
    assert group["apiVersion"] == "leaderworkerset.x-k8s.io/v1"
    assert not any(it["kind"] == "Deployment" for it in objects(name))
    spec = group["spec"]["leaderWorkerTemplate"]
    assert spec["size"] == 2
    assert spec["restartPolicy"] == "RecreateGroupOnPodRestart"
    assert group["spec"]["startupPolicy"] == "LeaderCreated", "a leader that waits for its workers is not ready before them"
    [leader], [worker] = (spec[part]["spec"]["containers"] for part in ("leaderTemplate", "workerTemplate"))
    for container, rank in ((leader, "0"), (worker, "$(LWS_WORKER_INDEX)")):
        words = container["command"]
        assert flag(words, "--nnodes") == "2"
        assert flag(words, "--node-rank") == rank
        assert flag(words, "--master-addr") == "$(LWS_LEADER_ADDRESS)"
        assert int(flag(words, "--tensor-parallel-size")) * int(flag(words, "--pipeline-parallel-size")) == 16
        assert container["resources"]["limits"]["nvidia.com/gpu"] == 8
        assert container["resources"]["limits"]["vpc.amazonaws.com/efa"] == 32
    assert "--headless" in worker["command"]
    assert "--headless" not in leader["command"]
    assert leader["readinessProbe"]["httpGet"]["path"] == "/health"
    assert not {"readinessProbe", "livenessProbe", "startupProbe", "ports"} & set(worker), "it answers nobody"


def test_requests_go_to_leaders_and_replicas_are_counted_by_groups() -> None:
    service, scaler = one("Service"), one("HorizontalPodAutoscaler")
    assert service["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"] == "0"
    target = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": WIDE.name}
    assert scaler["spec"]["scaleTargetRef"] == target
    assert one("ScaledObject", "keda")["spec"]["scaleTargetRef"] == target


def test_quotas_and_node_limits_count_all_machines_of_a_group() -> None:
    assert WIDE.scaling is not None
    quota = one("ResourceQuota")["spec"]["hard"]
    assert quota["requests.nvidia.com/gpu"] == str((WIDE.scaling.maximum + 1) * 16)
    assert int(quota["pods"]) >= 2 * (WIDE.scaling.maximum + 1)
    assert most_machines(WIDE) == (WIDE.scaling.maximum + 1) * 2
    assert one("NodePool", "karpenter")["spec"]["limits"]["nvidia.com/gpu"] == str(most_machines(WIDE) * 8)
    [flavors] = one("ClusterQueue", "kueue")["spec"]["resourceGroups"]
    quotas = {it["name"]: it["nominalQuota"] for it in flavors["flavors"][0]["resources"]}
    assert quotas["nvidia.com/gpu"] == str((WIDE.scaling.maximum + surge(WIDE)) * 16)
    [nodes] = [it for it in objects("eksctl")[0]["managedNodeGroups"] if it["name"] == WIDE.name]
    assert nodes["maxSize"] == most_machines(WIDE)


def test_pods_of_a_group_stand_in_one_zone_and_may_talk() -> None:
    affinity = one("LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["affinity"]["podAffinity"]
    [rule] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "topology.kubernetes.io/zone"
    assert rule["matchLabelKeys"] == ["leaderworkerset.sigs.k8s.io/group-index"], "those of one group, not of all"
    policy = one("NetworkPolicy")["spec"]
    peers = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": WIDE.name}}}
    assert {"from": [peers]} in policy["ingress"]
    assert {"to": [peers]} in policy["egress"]


def test_sglang_meets_by_its_own_flags() -> None:
    command = ("python3", "-m", "sglang.launch_server", "--model-path", "x", "--port", "30000", "--tp", "8", "--pp-size", "2")
    software = replace(WIDE.software, engine="sglang", purpose="sglang", command=command, port=30000)
    spec = one("LeaderWorkerSet", planned=replace(WIDE, software=software))["spec"]["leaderWorkerTemplate"]
    words = spec["workerTemplate"]["spec"]["containers"][0]["command"]
    assert flag(words, "--dist-init-addr") == "$(LWS_LEADER_ADDRESS):29500"
    assert (flag(words, "--nnodes"), flag(words, "--node-rank")) == ("2", "$(LWS_WORKER_INDEX)")


def test_a_command_of_the_users_own_gets_the_variables_of_several_nodes() -> None:
    software = replace(WIDE.software, engine="", is_custom=True, command=("python", "serve.py"))
    spec = one("LeaderWorkerSet", planned=replace(WIDE, software=software))["spec"]["leaderWorkerTemplate"]
    [container] = spec["workerTemplate"]["spec"]["containers"]
    env = {it["name"]: it.get("value") for it in container["env"]}
    assert (env["NODE_RANK"], env["NODES"], env["GPUS_PER_NODE"]) == ("$(LWS_WORKER_INDEX)", "2", "8")
    assert env["HEAD_ADDRESS"] == "$(LWS_LEADER_ADDRESS)"


@pytest.mark.parametrize("name", sorted(set(target_names()) - EXPRESS))
def test_a_target_that_starts_machines_one_by_one_refuses(name: str) -> None:
    with pytest.raises(CannotRender) as refused:
        files(name, target(name), WIDE)
    assert str(refused.value)


@pytest.mark.parametrize("name", ["compose", "ec2", "ecs", "sagemaker", "skypilot", "terraform"])
def test_the_refusal_has_the_numbers_and_a_way_out(name: str) -> None:
    with pytest.raises(CannotRender, match=r"takes 16 chips, and p5\.48xlarge has 8") as refused:
        files(name, target(name), WIDE)
    assert "kubernetes" in str(refused.value.remedy)


@pytest.mark.parametrize("name", ["kubernetes", "kueue", "keda"])
def test_an_engine_that_does_not_span_machines_is_refused(name: str) -> None:
    tgi = replace(WIDE, software=replace(WIDE.software, engine="tgi", purpose="tgi"))
    with pytest.raises(CannotRender, match="tgi"):
        files(name, target(name), tgi)


def test_a_batch_whose_copies_are_larger_than_a_machine_is_refused() -> None:
    wide = replace(CASES["batch"], split=GenerationSplit(tp=4, pp=2, replicas=2), chips_each=4)
    assert wide.form is Form.JOB
    for name in ("kubernetes", "ec2", "slurm", "batch"):
        with pytest.raises(CannotRender, match="takes 8 chips"):
            files(name, target(name), wide)


def test_ray_places_a_replica_over_its_machines() -> None:
    workers = one("RayService", "ray")["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]
    assert WIDE.scaling is not None
    assert (workers["minReplicas"], workers["maxReplicas"]) == (2 * WIDE.scaling.minimum, 2 * WIDE.scaling.maximum)


def test_a_rollout_of_groups_is_awaited_by_their_numbers() -> None:
    [text] = written("github-actions").values()
    assert f"kubectl --namespace {WIDE.name} get leaderworkerset/{WIDE.name}" in text
    assert "{.status.observedGeneration}/{.status.updatedReplicas}/{.status.readyReplicas}" in text
    assert "rollout status" not in text


def test_the_wait_ends_when_all_groups_are_new_and_ready_and_not_when_nobody_answers(tmp_path: Path) -> None:
    [text] = written("github-actions").values()
    [wait] = [step["run"] for step in yaml.safe_load(text)["jobs"]["deploy"]["steps"] if step["name"] == "Roll out"]
    answers = ["", "3/1/2=4/2/2", "4/1/2=4/2/2", "4/2/1=4/2/2", "4/2/2=4/2/2"]
    for name, body in {
        "kubectl": f'[ "$1" = apply ] && exit 0\nn=$(cat {tmp_path}/n)\necho $((n + 1)) > {tmp_path}/n\n'
        + "".join(f'[ "$n" = {at} ] && printf "%s" "{answer}"\n' for at, answer in enumerate(answers))
        + "exit 0\n",
        "sleep": "exit 0\n",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "n").write_text("0")
    ran = subprocess.run(["bash", "-e", "-c", wait], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, timeout=60, check=False)
    assert ran.returncode == 0
    assert (tmp_path / "n").read_text().strip() == "5", "it asked until all were new and ready"
