"""A load in layers on the real tools: what is promised is filled first, and what comes above it is bought its own way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import aws_stand_in
from aws_stand_in import Aws
from chipwise.renderer.cluster.accelerators import chip_taint
from chipwise.renderer.deployment import Deployment
from kube.control_plane import Cluster
from kube.karpenter import VERSION as KARPENTER
from kube.karpenter import MachineType, Offering, on_played_machines
from kube.kueue import VERSION as KUEUE
from kube.process import wait_for
from kube.rendered import MACHINE, ZONE, disks, has, manifests, named, settled
from layered import ALL, RESERVED_ON_DEMAND, RESERVED_SPOT, layered
from terraform_tool import ACCOUNT, applied, subnets

pytestmark = pytest.mark.e2e
CAPACITY = "karpenter.sh/capacity-type"
POOL = "karpenter.sh/nodepool"
GPU = "nvidia.com/gpu"


def _replicas(cluster: Cluster, namespace: str, many: int) -> None:
    cluster.api.merge("apps/v1", "Deployment", namespace, {"spec": {"replicas": many}}, namespace).must()


def _offered(planned: Deployment) -> list[MachineType]:
    zone = f"{planned.node.region}a"
    offered = [Offering("spot", zone, 1.0), Offering("on-demand", zone, 2.5)]
    return [MachineType(planned.node.machine, {**has(planned.node), "pods": "110", "ephemeral-storage": "100Gi"}, offered)]


def test_karpenter_fills_the_base_before_spot(
    cluster: Cluster, namespace: str, start_karpenter: Callable[[Sequence[MachineType]], None]
) -> None:
    """Though spot is cheaper by list prices, which are all that it knows."""
    planned = named(layered(RESERVED_SPOT), namespace)
    start_karpenter(_offered(planned))
    pools = [one for one in manifests("karpenter", planned) if one["kind"] == "NodePool"]
    work = [
        one for one in manifests("kubernetes", planned, "namespace.yaml", "workload.yaml") if one["kind"] != "ResourceQuota"
    ]
    cluster.must_apply([on_played_machines(pool) for pool in pools])
    try:
        with disks(cluster, work):
            cluster.must_apply(work)
            _replicas(cluster, namespace, 5)
            bound = settled(cluster, namespace, 5, 120)
            nodes = [cluster.api.get("v1", "Node", name) for name in set(bound.values())]
            found = Counter((one["metadata"]["labels"][POOL], one["metadata"]["labels"][CAPACITY]) for one in nodes if one)
            assert found == {(f"{namespace}-base", "on-demand"): 3, (f"{namespace}-spot", "spot"): 2}
            _replicas(cluster, namespace, 0)
    finally:
        for pool in pools:
            cluster.api.delete(KARPENTER, "NodePool", pool["metadata"]["name"])


@pytest.mark.parametrize("layers", [RESERVED_SPOT, RESERVED_ON_DEMAND, ALL])
def test_the_server_takes_a_pool_for_every_layer(cluster: Cluster, namespace: str, layers: Any) -> None:
    planned = named(layered(layers), namespace)
    made = [one for one in manifests("karpenter", planned) if one["kind"] == "NodePool"]
    assert len(made) == len(layers)
    cluster.must_apply(made)
    for pool in made:
        cluster.api.delete(KARPENTER, "NodePool", pool["metadata"]["name"])


def test_kueue_counts_a_service_in_its_layers_from_the_base_up(kueued: Cluster, namespace: str) -> None:
    planned = named(layered(ALL), namespace)
    taint = chip_taint(planned.node)
    assert taint is not None
    marked = [{"key": taint.key, "value": taint.value, "effect": taint.effect}]
    for number, kind in enumerate(("on-demand",) * 3 + ("spot",) * 4):
        labels = {MACHINE: planned.node.machine, ZONE: f"{planned.node.region}a", CAPACITY: kind}
        kueued.fake_node(f"{namespace}-{number}", has(planned.node), labels, marked)
    made = manifests("kueue", planned)
    flavors = [one["metadata"]["name"] for one in made if one["kind"] == "ResourceFlavor"]
    try:
        with disks(kueued, made):
            kueued.must_apply(made)
            _replicas(kueued, namespace, 5)
            settled(kueued, namespace, 5, 60)

            def used() -> bool:
                seen = kueued.api.get(KUEUE, "ClusterQueue", namespace) or {}
                usage = seen.get("status", {}).get("flavorsUsage", [])
                chips = {one["name"]: it["total"] for one in usage for it in one["resources"] if it["name"] == GPU}
                return [chips.get(name) for name in flavors] == ["2", "1", "2"]

            wait_for("the base, what is paid by the hour, and spot to be used in this order", used, 30)
            asked = Counter(pod["spec"]["nodeSelector"][CAPACITY] for pod in kueued.pods(namespace))
            assert asked == {"on-demand": 3, "spot": 2}
            _replicas(kueued, namespace, 0)
    finally:
        kueued.api.delete(KUEUE, "ClusterQueue", namespace)
        for name in flavors:
            kueued.api.delete(KUEUE, "ResourceFlavor", name)


# -- Terraform


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
        with aws_stand_in.started() as running:
            yield running


@pytest.mark.parametrize(("layers", "base", "above"), [(ALL, 3, 0), (RESERVED_SPOT, 3, 0), (RESERVED_ON_DEMAND, 0, 100)])
def test_a_group_buys_the_base_on_demand_and_spot_above_it(
    aws: Aws, tmp_path: Path, layers: Any, base: int, above: int
) -> None:
    planned = layered(layers)
    one = applied(aws, planned, tmp_path, {"subnet_ids": subnets(aws, planned.node.region)})
    groups = aws.client("autoscaling", planned.node.region)
    (group,) = groups.describe_auto_scaling_groups()["AutoScalingGroups"]
    bought = group["MixedInstancesPolicy"]["InstancesDistribution"]
    assert bought.get("OnDemandBaseCapacity", 0) == base
    assert bought["OnDemandPercentageAboveBaseCapacity"] == above
    assert group["MinSize"] == layers[0].machines
    assert group["MaxSize"] == sum(layer.machines for layer in layers) + 1
    one.run("destroy", "-no-color", "-auto-approve")


def test_each_layer_is_a_node_group_of_the_cluster(aws: Aws, tmp_path: Path) -> None:
    planned = layered(ALL)
    eks, places = aws.client("eks", planned.node.region), subnets(aws, planned.node.region)
    role = f"arn:aws:iam::{ACCOUNT}:role/cluster"
    eks.create_cluster(name="main", roleArn=role, resourcesVpcConfig={"subnetIds": places})
    applied(aws, planned, tmp_path, {"subnet_ids": places, "cluster_name": "main"}, "eks")
    names = eks.list_nodegroups(clusterName="main")["nodegroups"]
    found = [eks.describe_nodegroup(clusterName="main", nodegroupName=name)["nodegroup"] for name in names]
    sizes = {one["nodegroupName"].rpartition("-")[0]: (one["capacityType"], one["scalingConfig"]["maxSize"]) for one in found}
    assert sizes == {
        "chat-api-base": ("ON_DEMAND", 2),
        "chat-api-on-demand": ("ON_DEMAND", 1),
        "chat-api-spot": ("SPOT", 5),
    }
