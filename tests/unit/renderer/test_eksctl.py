"""eksctl's file: fields that it knows, groups that hold the plan, and nothing open that could be closed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import candidates, most_machines
from chipwise.renderer.targets import eksctl
from deployments import on_few_offers as deployment

AWS = "clouds=[aws]"
CASES = [
    ("train", AWS),
    ("serve", AWS),
    ("serve", AWS, "chips=[inferentia2]"),
    ("batch", AWS),
    ("hybrid", AWS),
    ("interactive", AWS),
    ("hpc", AWS),
]
# Names that eksctl's published schema of v1alpha5 has, of the parts that we write; it refuses all others.
CLUSTER = {"apiVersion", "kind", "metadata", "iam", "vpc", "addons", "availabilityZones", "cloudWatch", "managedNodeGroups"}
META = {"name", "region", "version", "tags", "annotations"}
GROUP = {
    "name",
    "amiFamily",
    "instanceTypes",
    "spot",
    "minSize",
    "desiredCapacity",
    "maxSize",
    "availabilityZones",
    "placement",
    "efaEnabled",
    "privateNetworking",
    "volumeSize",
    "volumeType",
    "volumeEncrypted",
    "disableIMDSv1",
    "disablePodIMDS",
    "labels",
    "taints",
    "propagateASGTags",
    "tags",
    "updateConfig",
    "nodeRepairConfig",
    "overrideBootstrapCommand",
}
ADDON = {"name", "configurationValues", "useDefaultPodIdentityAssociations"}


def made(planned: Deployment) -> Any:
    [file] = eksctl.render(planned)
    return yaml.safe_load(file.text)


def group(planned: Deployment) -> dict[str, Any]:
    return next(one for one in made(planned)["managedNodeGroups"] if one["name"] == planned.name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))
def test_every_field_is_one_that_eksctl_knows(case: tuple[str, ...]) -> None:
    config = made(deployment(*case))
    assert set(config) <= CLUSTER
    assert set(config["metadata"]) <= META
    assert all(set(one) <= GROUP for one in config["managedNodeGroups"])
    assert all(set(one) <= ADDON for one in config["addons"])
    assert all(isinstance(value, str) for one in config["managedNodeGroups"] for value in one.get("labels", {}).values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))
def test_every_group_is_private_encrypted_and_keeps_its_credentials(case: tuple[str, ...]) -> None:
    for one in made(deployment(*case))["managedNodeGroups"]:
        assert one["privateNetworking"]
        assert one["volumeEncrypted"]
        assert one["volumeType"] == "gp3"
        assert one["disableIMDSv1"]
        assert one["disablePodIMDS"]


def test_machines_that_meet_stand_in_one_zone_with_the_fabric() -> None:
    planned = deployment("train", AWS)
    found = group(planned)
    assert found["efaEnabled"]
    assert found["availabilityZones"] == [f"{planned.node.region}a"]
    assert found["availabilityZones"][0] in made(planned)["availabilityZones"]
    assert found["desiredCapacity"] == found["maxSize"] == planned.machines


def test_a_program_that_is_not_root_may_lock_memory_for_the_fabric() -> None:
    config = yaml.safe_load(group(deployment("train", AWS))["overrideBootstrapCommand"])
    assert (config["apiVersion"], config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    limits = {one["type"]: one for one in config["spec"]["containerd"]["baseRuntimeSpec"]["process"]["rlimits"]}
    assert limits["RLIMIT_MEMLOCK"]["soft"] == limits["RLIMIT_MEMLOCK"]["hard"] == 2**50
    assert float(2**50) == 2**50, "nodeadm reads it as a float"
    assert limits["RLIMIT_NOFILE"]["hard"] == 1048576, "the list of the node image is replaced, not added to"
    assert "overrideBootstrapCommand" not in group(deployment("serve", AWS))


def test_nodes_of_the_system_run_the_images_of_the_workload() -> None:
    def system(planned: Deployment) -> list[str]:
        [found] = [one for one in made(planned)["managedNodeGroups"] if one["name"] == "system"]
        return list(found["instanceTypes"])

    planned = deployment("serve", AWS)
    assert planned.node.arch == "amd64"
    assert system(planned) == ["m7i.large", "m6i.large"]
    assert system(replace(planned, node=replace(planned.node, arch="arm64"))) == ["m7g.large", "m6g.large"]
    assert system(deployment("interactive", AWS))[0] == "m7i.xlarge", "a hub or the head of a Ray cluster fits beside the rest"


def test_spot_takes_several_types_and_says_so() -> None:
    alone = deployment("train", AWS)
    planned = replace(alone, alternatives=(replace(alone.node, machine="p5en.48xlarge"),))
    found = group(planned)
    assert found["spot"] is True
    assert found["instanceTypes"] == [one.machine for one in candidates(planned)]
    assert len(found["instanceTypes"]) > 1
    assert "spot" not in group(deployment("serve", AWS))


def test_accelerators_are_tainted_and_plain_machines_are_not() -> None:
    assert group(deployment("train", AWS))["taints"][0]["key"] == "nvidia.com/gpu"
    assert group(deployment("serve", AWS, "chips=[inferentia2]"))["taints"][0]["key"] == "aws.amazon.com/neuron"
    assert "taints" not in group(deployment("hybrid", AWS, "chips=[graviton4]"))


def test_a_service_has_room_for_its_peak() -> None:
    planned = deployment("serve", AWS)
    found = group(planned)
    assert found["minSize"] <= found["desiredCapacity"] <= found["maxSize"] == most_machines(planned)


def test_shared_volumes_bring_their_driver() -> None:
    names = {one["name"] for one in made(deployment("train", AWS))["addons"]}
    assert "aws-efs-csi-driver" in names
    assert {"vpc-cni", "coredns", "kube-proxy"} <= names


def in_one_region(planned: Deployment) -> Deployment:
    stages = [replace(one, node=replace(one.node, region="eu-north-1")) for one in planned.stages]
    return replace(planned, stages=tuple(stages))


def test_a_pipeline_gets_a_group_for_each_stage() -> None:
    planned = in_one_region(deployment("pipeline", AWS))
    names = [one["name"] for one in made(planned)["managedNodeGroups"]]
    assert names == ["system", *(one.name for one in planned.stages)]


def test_stages_in_several_regions_are_refused_by_name() -> None:
    first, *rest = in_one_region(deployment("pipeline", AWS)).stages
    apart = replace(deployment("pipeline", AWS), stages=(replace(first, node=replace(first.node, region="eu-west-1")), *rest))
    with pytest.raises(CannotRender, match="eu-north-1, eu-west-1"):
        eksctl.render(apart)


def test_a_plan_elsewhere_is_refused_with_what_helps() -> None:
    with pytest.raises(CannotRender, match="The plan is on gcp") as refused:
        eksctl.render(deployment("finetune", "clouds=[gcp]"))
    assert "--cloud aws" in str(refused.value.remedy)


def test_it_says_that_nothing_grows_a_group_of_a_service_by_itself() -> None:
    [serving] = eksctl.render(deployment("serve", AWS))
    assert "autoDiscovery.clusterName" in serving.text
    assert "--to karpenter" in serving.text
    [training] = eksctl.render(deployment("train", AWS))
    assert "autoDiscovery" not in training.text
