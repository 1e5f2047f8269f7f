"""Karpenter's files bring the machines of the plan, no more of them than it uses, and let go of them when they are empty."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import candidates, most_machines
from chipwise.renderer.targets import karpenter
from deployments import on_few_offers as deployment

AWS = "clouds=[aws]"
JOBS: list[tuple[str, ...]] = [("train", AWS), ("finetune", AWS), ("hybrid", AWS), ("batch", AWS)]
SERVICES: list[tuple[str, ...]] = [("serve", AWS), ("transcode", AWS), ("serve", AWS, "chips=[inferentia2]")]


def made(planned: Deployment) -> tuple[dict[str, Any], dict[str, Any]]:
    [file] = karpenter.render(planned)
    pool, node_class = yaml.safe_load_all(file.text)
    return pool, node_class


@pytest.mark.parametrize("case", JOBS + SERVICES, ids=lambda case: "-".join(case))
def test_a_pool_holds_the_machines_of_the_plan_and_no_more(case: tuple[str, ...]) -> None:
    planned = deployment(*case)
    pool, _ = made(planned)
    wanted = {one["key"]: one["values"] for one in pool["spec"]["template"]["spec"]["requirements"]}
    assert wanted["node.kubernetes.io/instance-type"] == [one.machine for one in candidates(planned)]
    assert wanted["karpenter.sh/capacity-type"] == ["spot" if planned.spot else "on-demand"]
    assert planned.node.region in wanted["topology.kubernetes.io/region"]
    limits = pool["spec"]["limits"]
    if planned.node.chips:
        [chips] = [value for key, value in limits.items() if key != "cpu"]
        assert int(chips) == most_machines(planned) * planned.node.chips
    assert int(limits["cpu"]) >= most_machines(planned) * (planned.node.vcpus or 0)


@pytest.mark.parametrize("case", JOBS, ids=lambda case: "-".join(case))
def test_nothing_disturbs_a_job(case: tuple[str, ...]) -> None:
    pool, _ = made(deployment(*case))
    assert pool["spec"]["template"]["spec"]["expireAfter"] == "Never"
    disruption = pool["spec"]["disruption"]
    assert disruption["consolidationPolicy"] == "WhenEmpty"
    assert {"nodes": "0", "reasons": ["Underutilized", "Drifted"]} in disruption["budgets"]


@pytest.mark.parametrize("case", SERVICES, ids=lambda case: "-".join(case))
def test_machines_of_a_service_go_one_at_a_time(case: tuple[str, ...]) -> None:
    pool, _ = made(deployment(*case))
    assert pool["spec"]["disruption"]["budgets"] == [{"nodes": "1"}]


@pytest.mark.parametrize("case", JOBS + SERVICES, ids=lambda case: "-".join(case))
def test_a_machine_is_closed_and_its_disk_encrypted(case: tuple[str, ...]) -> None:
    _, node_class = made(deployment(*case))
    spec = node_class["spec"]
    assert spec["metadataOptions"]["httpTokens"] == "required"
    assert spec["metadataOptions"]["httpPutResponseHopLimit"] == 1
    assert spec["associatePublicIPAddress"] is False
    for disk in spec["blockDeviceMappings"]:
        assert disk["ebs"]["encrypted"]
        assert disk["ebs"]["volumeType"] == "gp3"


def test_the_node_image_is_pinned_and_its_driver_told() -> None:
    [file] = karpenter.render(deployment("serve", AWS))
    assert "alias: al2023@v2" in file.text
    assert "latest" not in file.text
    assert "NVIDIA with driver 580" in file.text
    [file] = karpenter.render(deployment("serve", AWS, "chips=[inferentia2]"))
    assert "Neuron with driver 2." in file.text


def test_machines_that_meet_stand_close_together() -> None:
    planned = deployment("train", AWS)
    _, node_class = made(planned)
    assert node_class["spec"]["placementGroupSelector"] == {"name": planned.name}
    _, alone = made(deployment("finetune", AWS))
    assert "placementGroupSelector" not in alone["spec"]


def test_a_program_that_is_not_root_may_lock_memory_for_the_fabric() -> None:
    _, node_class = made(deployment("train", AWS))
    config = yaml.safe_load(node_class["spec"]["userData"])
    assert (config["apiVersion"], config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    limits = {one["type"]: one["hard"] for one in config["spec"]["containerd"]["baseRuntimeSpec"]["process"]["rlimits"]}
    assert limits["RLIMIT_MEMLOCK"] == 2**50
    _, alone = made(deployment("serve", AWS))
    assert "userData" not in alone["spec"]


def test_tags_say_who_pays() -> None:
    _, node_class = made(deployment("train", AWS))
    assert node_class["spec"]["tags"]["chipwise:team"] == "language"


def test_a_pipeline_gets_a_pool_for_each_stage() -> None:
    planned = deployment("pipeline", AWS)
    files = karpenter.render(planned)
    assert [file.path for file in files] == [f"{one.name}.yaml" for one in planned.stages]


def test_a_plan_elsewhere_is_refused_with_what_helps() -> None:
    with pytest.raises(CannotRender, match="The plan is on gcp") as refused:
        karpenter.render(deployment("finetune", "clouds=[gcp]"))
    assert "--cloud aws" in str(refused.value.remedy)
