"""Kubernetes manifests say what the plan says: how many pods, what each asks for, and which machines will do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.render.deployment import Deployment
from chipwise.render.file import CannotRender
from chipwise.render.layout import candidates, meets, pods, uses_efa
from chipwise.render.targets import kubernetes
from deployments import deployment

AWS = "clouds=[aws]"
MACHINE = "node.kubernetes.io/instance-type"


def made(planned: Deployment, file: str = "") -> list[dict[str, Any]]:
    files = [one for one in kubernetes.render(planned) if not file or one.path == file]
    return [one for each in files for one in yaml.safe_load_all(each.text)]


def one(planned: Deployment, kind: str) -> dict[str, Any]:
    return next(it for it in made(planned) if it["kind"] == kind)


def requests(job: dict[str, Any]) -> dict[str, Any]:
    container = job["spec"]["template"]["spec"]["containers"][0]
    return dict(container["resources"]["requests"])


def test_independent_workers_get_a_pod_for_each_chip() -> None:
    planned = deployment("batch", AWS)
    job = one(planned, "Job")
    assert job["spec"]["completions"] == planned.machines * planned.node.chips == pods(planned)
    assert requests(job)["nvidia.com/gpu"] == 1
    assert "vpc.amazonaws.com/efa" not in requests(job), "nobody to talk to"
    assert "podAffinity" not in job["spec"]["template"]["spec"]["affinity"]


def test_machines_that_work_together_meet_in_one_zone_on_one_type() -> None:
    planned = deployment("train", AWS)
    assert meets(planned)
    assert uses_efa(planned)
    job = one(planned, "Job")
    rules = job["spec"]["template"]["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [rule["topologyKey"] for rule in rules] == ["topology.kubernetes.io/zone", MACHINE]
    assert requests(job)["vpc.amazonaws.com/efa"] == planned.node.interfaces
    assert "hugepages-2Mi" not in requests(job), "Karpenter brings no machine to a pod that asks for huge pages"


def test_a_stand_in_has_room_for_what_the_pod_asks_for() -> None:
    planned = deployment("train", AWS)
    asked = requests(one(planned, "Job"))
    for node in candidates(planned):
        assert node.vcpus is not None
        assert node.memory_bytes is not None
        assert int(asked["cpu"]) < node.vcpus
        assert int(asked["memory"].removesuffix("Gi")) * 2**30 < node.memory_bytes
        assert node.interfaces >= asked["vpc.amazonaws.com/efa"]


def test_paid_by_the_hour_only_machines_with_the_same_chip_stand_in() -> None:
    planned = deployment("serve", AWS)
    assert not planned.spot
    assert {node.chip for node in candidates(planned)} == {planned.node.chip}
    affinity = one(planned, "Deployment")["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    [preferred] = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"]["matchExpressions"][0]["values"] == [planned.node.machine]


def test_volumes_of_pods_on_several_machines_are_shared() -> None:
    claims = [it for it in made(deployment("train", AWS)) if it["kind"] == "PersistentVolumeClaim"]
    assert claims
    assert all(claim["spec"]["accessModes"] == ["ReadWriteMany"] for claim in claims)


def plugins(planned: Deployment) -> dict[str, dict[str, Any]]:
    return {it["metadata"]["name"]: it for it in made(planned, "devices.yaml") if it["kind"] == "DaemonSet"}


def config(planned: Deployment) -> Any:
    [found] = [it for it in made(planned, "devices.yaml") if it["kind"] == "ConfigMap"]
    return yaml.safe_load(found["data"]["config.yaml"])


def test_gpus_and_fabric_each_have_their_plugin_on_the_machines_of_the_plan() -> None:
    planned = deployment("train", AWS)
    found = plugins(planned)
    assert set(found) == {"nvidia-device-plugin", "aws-efa-k8s-device-plugin"}
    for daemon in found.values():
        affinity = daemon["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == [node.machine for node in candidates(planned)]


def test_neuron_has_its_own_plugin_with_its_rights() -> None:
    planned = deployment("serve", AWS, "chips=[inferentia2]")
    assert set(plugins(planned)) == {"neuron-device-plugin"}
    assert {it["kind"] for it in made(planned, "devices.yaml")} == {
        "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet"}  # fmt: skip


def test_a_machine_without_chips_and_a_cluster_of_google_need_no_plugin() -> None:
    assert not plugins(deployment("hybrid", AWS))
    assert not plugins(deployment("train", "clouds=[gcp]", "chips=[h100]"))


def test_turns_on_a_gpu_are_a_resource_of_their_own() -> None:
    planned = deployment("serve", AWS)
    shared = replace(planned, node=replace(planned.node, sharing="turns", held=4))
    turns = config(shared)["sharing"]["timeSlicing"]
    assert turns["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]
    assert turns["renameByDefault"]
    assert turns["failRequestsGreaterThanOne"]
    asked = requests(one(shared, "Deployment"))
    assert asked["nvidia.com/gpu.shared"] == 1
    assert "nvidia.com/gpu" not in asked


def test_processes_together_on_a_gpu_go_through_mps() -> None:
    planned = deployment("serve", AWS)
    shared = replace(planned, node=replace(planned.node, sharing="mps", held=60))
    assert config(shared)["sharing"]["mps"]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 48}]


def test_slices_of_a_gpu_are_asked_for_by_their_profile() -> None:
    planned = deployment("serve", AWS)
    sliced = replace(planned, node=replace(planned.node, sharing="slices", held=7, profile="1g.10gb"))
    assert config(sliced)["flags"]["migStrategy"] == "mixed"
    assert requests(one(sliced, "Deployment"))["nvidia.com/mig-1g.10gb"] == 1
    daemon = plugins(sliced)["nvidia-device-plugin"]["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "NVIDIA_MIG_MONITOR_DEVICES", "value": "all"} in daemon["env"]


def test_the_file_of_plugins_says_which_node_image_has_the_driver() -> None:
    [text] = [file.text for file in kubernetes.render(deployment("train", AWS)) if file.path == "devices.yaml"]
    assert "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia/recommended/image_id" in text
    assert "driver 580" in text


@pytest.mark.parametrize(("example", "remedy"), [("pipeline", "argo"), ("interactive", "jupyterhub"), ("stream", "ec2")])
def test_what_it_cannot_express_it_hands_to_who_can(example: str, remedy: str) -> None:
    with pytest.raises(CannotRender) as refused:
        kubernetes.render(deployment(example))
    assert remedy in str(refused.value.remedy)
