"""What eksctl's schema (v1alpha5, read in 2026) and its own checks refuse, as rules of our own: each with its reason.

The program itself is on no index that tests can reach, so these stand in for it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment, MachineLayer
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import eksctl
from deployments import on_few_offers as deployment
from layered import ALL, RESERVED_ON_DEMAND, RESERVED_SPOT, layered

AWS = "clouds=[aws]"
CASES = [
    ("train", AWS),
    ("serve", AWS),
    ("serve", AWS, "chips=[inferentia2]"),
    ("batch", AWS),
    ("hybrid", AWS),
    ("interactive", AWS),
    ("hpc", AWS),
    ("finetune", AWS),
    ("transcode", AWS),
]
EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))

# Names and kinds of values of the schema, of the parts that we write. `additionalProperties` is false throughout: eksctl stops
# at a field that it does not know.
TEXTS = {"name", "amiFamily", "volumeType", "overrideBootstrapCommand"}
COUNTS = {"minSize", "desiredCapacity", "maxSize", "volumeSize"}
SWITCHES = {"spot", "efaEnabled", "privateNetworking", "volumeEncrypted", "disableIMDSv1", "disablePodIMDS", "propagateASGTags"}
LISTS = {"instanceTypes", "availabilityZones", "taints"}
MAPS = {"labels", "tags", "placement", "updateConfig", "nodeRepairConfig"}
LOGS = {"api", "audit", "authenticator", "controllerManager", "scheduler", "all", "*"}
KEPT_DAYS = {1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 3653}


@cache
def made(case: tuple[str, ...]) -> Any:
    return parsed(deployment(*case))


def parsed(planned: Deployment) -> Any:
    [file] = eksctl.render(planned)
    return yaml.safe_load(file.text)


def groups(config: Any) -> list[dict[str, Any]]:
    return list(config["managedNodeGroups"])


@EVERY
def test_every_value_is_of_the_kind_that_the_schema_names(case: tuple[str, ...]) -> None:
    config = made(case)
    assert (config["apiVersion"], config["kind"]) == ("eksctl.io/v1alpha5", "ClusterConfig"), "the only ones in the schema"
    assert isinstance(config["metadata"]["version"], str), "1.30 without quotes would be the number 1.3"
    for one in groups(config):
        assert set(one) <= TEXTS | COUNTS | SWITCHES | LISTS | MAPS
        assert all(isinstance(one[key], str) for key in TEXTS & set(one))
        assert all(type(one[key]) is int for key in COUNTS & set(one))
        assert all(type(one[key]) is bool for key in SWITCHES & set(one))
        assert all(isinstance(one[key], list) for key in LISTS & set(one))
        texts = [*one.get("labels", {}).values(), *one.get("tags", {}).values()]
        assert all(isinstance(value, str) for value in texts), "4711 without quotes would be a number, which is no tag"


@EVERY
def test_a_group_has_a_name_of_its_own(case: tuple[str, ...]) -> None:
    """eksctl refuses two groups of a name, and names with other signs than letters, digits and dashes; EKS takes 63."""
    names = [one["name"] for one in groups(made(case))]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,62}", name) for name in names)


def test_a_workload_called_system_does_not_take_the_name_of_the_systems_group() -> None:
    planned = deployment("serve", AWS)
    assert [one["name"] for one in groups(parsed(replace(planned, name="system")))] == ["cluster-system", "system"]


@EVERY
def test_the_usual_number_lies_between_least_and_most(case: tuple[str, ...]) -> None:
    sized(made(case))


def sized(config: Any) -> None:
    """eksctl refuses fewer than the least and more than the most, and updates of more than there are; EKS a most of 0."""
    for one in groups(config):
        assert 0 <= one["minSize"] <= one["desiredCapacity"] <= one["maxSize"]
        assert one["maxSize"] >= 1
        assert one["updateConfig"] == {"maxUnavailable": 1}, "one of number and percentage, never both"


@pytest.mark.parametrize("layers", [RESERVED_SPOT, RESERVED_ON_DEMAND, ALL], ids=["spot", "on-demand", "all"])
def test_layers_are_groups_by_the_same_rules(layers: tuple[MachineLayer, ...]) -> None:
    config = parsed(layered(layers))
    names = [one["name"] for one in groups(config)]
    assert len(names) == 1 + len(layers) == len(set(names))
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,62}", name) for name in names)
    assert all(set(one) <= TEXTS | COUNTS | SWITCHES | LISTS | MAPS for one in groups(config))
    sized(config)


@EVERY
def test_an_encrypted_disk_says_its_size(case: tuple[str, ...]) -> None:
    """`volumeEncrypted` without `volumeSize` is refused; speeds of a volume would have ranges, so none is set."""
    for one in groups(made(case)):
        assert one["volumeEncrypted"]
        assert one["volumeSize"] >= 20
        assert one["volumeType"] == "gp3"


@EVERY
def test_the_family_has_drivers_for_gpus_and_neuron(case: tuple[str, ...]) -> None:
    """Inferentia and Trainium are refused on other families than Amazon Linux and Bottlerocket, and GPUs have no driver there.
    `overrideBootstrapCommand` without an image of one's own is taken on AL2023 alone, where it is a NodeConfig."""
    for one in groups(made(case)):
        assert one["amiFamily"] == "AmazonLinux2023"
        assert "ami" not in one
        if "overrideBootstrapCommand" in one:
            assert yaml.safe_load(one["overrideBootstrapCommand"])["kind"] == "NodeConfig"


@EVERY
def test_machines_with_efa_stand_in_one_zone_that_the_cluster_has(case: tuple[str, ...]) -> None:
    """More than one zone is refused with EFA; fewer than two are refused for a cluster."""
    config = made(case)
    zones = config.get("availabilityZones", [])
    assert len(zones) in (0, 2)
    assert len(set(zones)) == len(zones)
    for one in groups(config):
        own = one.get("availabilityZones", [])
        assert set(own) <= set(zones)
        assert len(own) == 1 if one.get("efaEnabled") or "placement" in one else not own
        assert "subnets" not in one, "zones and subnets at once are refused"


def test_with_efa_the_placement_group_is_eksctls_own() -> None:
    """It makes one of the strategy `cluster` where EFA is on and none is named: nobody makes or removes one by hand."""
    [_, with_efa] = groups(made(("train", AWS)))
    assert with_efa["efaEnabled"]
    assert "placement" not in with_efa


def test_machines_that_meet_without_efa_name_a_placement_group() -> None:
    """`placement` with an empty name is refused, and eksctl makes no group without EFA."""
    planned = deployment("train", AWS)
    plain = replace(planned, node=replace(planned.node, interfaces=0), alternatives=())
    [_, group] = groups(parsed(plain))
    assert group["placement"] == {"groupName": planned.name}
    assert "efaEnabled" not in group
    assert "create-placement-group" in eksctl.render(plain)[0].text


def test_efa_on_a_later_card_is_refused() -> None:
    """eksctl writes EFA for the first network card, which the p6-b300 has for ordinary traffic only: it would never start."""
    planned = deployment("train", AWS)
    with pytest.raises(CannotRender, match="first network card") as refused:
        eksctl.render(replace(planned, node=replace(planned.node, machine="p6-b300.48xlarge", first_card=1)))
    assert "terraform" in str(refused.value.remedy)
    late = replace(planned.node, machine="p6-b300.48xlarge", first_card=1)
    [_, group] = groups(parsed(replace(planned, alternatives=(late, *planned.alternatives))))
    assert "p6-b300.48xlarge" not in group["instanceTypes"], "it only stood in: the others remain"


@EVERY
def test_types_stand_in_a_list_that_eks_takes(case: tuple[str, ...]) -> None:
    """`instanceType` beside `instanceTypes` is refused; EKS takes 20 of a kind of processor, each once."""
    for one in groups(made(case)):
        assert "instanceType" not in one
        assert 1 <= len(one["instanceTypes"]) <= 20
        assert len(set(one["instanceTypes"])) == len(one["instanceTypes"])


@EVERY
def test_spot_is_a_switch_and_nothing_else(case: tuple[str, ...]) -> None:
    """`instancesDistribution`, prices and pools are of groups that eksctl manages itself; a market option without a capacity
    reservation is refused. A plan by reservation is a discount on the bill, so it names no capacity."""
    for one in groups(made(case)):
        assert not set(one) & {"instancesDistribution", "maxPrice", "instanceMarketOptions", "capacityReservation"}
        assert one.get("spot", True) is True
    planned = deployment("serve", AWS)
    assert parsed(replace(planned, purchase="reserved-1y")) == parsed(planned)


@EVERY
def test_labels_and_taints_are_what_kubelets_start_with(case: tuple[str, ...]) -> None:
    """Labels below kubernetes.io and k8s.io are refused; a taint has one of three effects."""
    for one in groups(made(case)):
        for key, value in one.get("labels", {}).items():
            assert not re.search(r"(^|\.)(kubernetes|k8s)\.io/", key)
            assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value)
        for taint in one.get("taints", []):
            assert set(taint) == {"key", "value", "effect"}
            assert taint["effect"] in ("NoSchedule", "PreferNoSchedule", "NoExecute")


@EVERY
def test_credentials_of_machines_are_closed_without_rights_that_need_them(case: tuple[str, ...]) -> None:
    """`disablePodIMDS` beside `iam.withAddonPolicies` is refused: pods could not fetch those rights."""
    assert all("iam" not in one and "launchTemplate" not in one for one in groups(made(case)))


@EVERY
def test_add_ons_with_rights_have_the_agent_that_hands_them_out(case: tuple[str, ...]) -> None:
    """`useDefaultPodIdentityAssociations` needs the agent, and excludes policies and roles of one's own."""
    config = made(case)
    names = [one["name"] for one in config["addons"]]
    assert len(set(names)) == len(names)
    assert "eks-pod-identity-agent" in names
    for one in config["addons"]:
        assert set(one) <= {"name", "configurationValues", "useDefaultPodIdentityAssociations"}
        assert isinstance(one.get("configurationValues", ""), str), "JSON in a text"


def test_repair_sees_chips_only_with_its_agent() -> None:
    """Without the monitoring agent, `nodeRepairConfig` reacts to machines that fall silent, not to a failed GPU."""
    for case in CASES:
        config = made(case)
        repaired = any("nodeRepairConfig" in one for one in groups(config))
        assert repaired == ("eks-node-monitoring-agent" in {one["name"] for one in config["addons"]})


@EVERY
def test_the_cluster_can_be_reached_and_keeps_its_logs(case: tuple[str, ...]) -> None:
    """Neither endpoint is refused; days of retention are a list, and need at least one kind of log."""
    config = made(case)
    assert any(config["vpc"]["clusterEndpoints"].values())
    assert config["vpc"]["nat"]["gateway"] in ("HighlyAvailable", "Single", "Disable")
    kept = config["cloudWatch"]["clusterLogging"]
    assert kept["enableTypes"]
    assert set(kept["enableTypes"]) <= LOGS
    assert kept["logRetentionInDays"] in KEPT_DAYS


def test_more_machines_than_a_group_has_are_told() -> None:
    """450 in a managed group is the quota that every account begins with; it can be raised."""
    many = eksctl.render(replace(deployment("batch", AWS), machines=512))[0].text
    assert "desiredCapacity: 512" in many
    assert "EKS takes 450 in a group" in many
    assert "EKS takes 450" not in eksctl.render(deployment("train", AWS))[0].text


def test_tokyo_has_no_zone_b_for_new_accounts() -> None:
    planned = deployment("train", AWS)
    moved = replace(planned, node=replace(planned.node, region="ap-northeast-1"))
    assert parsed(moved)["availabilityZones"] == ["ap-northeast-1a", "ap-northeast-1c"]


def test_tags_are_no_more_than_a_resource_has() -> None:
    """50 for a resource, of which eksctl and EKS take some themselves."""
    planned = replace(deployment("serve", AWS), labels={f"label-{at}": "x" for at in range(60)})
    config = parsed(planned)
    assert len(config["metadata"]["tags"]) <= 41
    assert all(len(one.get("tags", {})) <= 40 for one in groups(config))
