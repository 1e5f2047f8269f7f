"""Rendered pools on the real Karpenter: pending pods bring the machine that the plan chose, and it goes when they are gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chipwise.renderer.deployment import Deployment, Node
from chipwise.renderer.layout import pods
from deployments import deployment
from kube.control_plane import Cluster
from kube.karpenter import GONE_SECONDS, VERSION, MachineType, Offering, on_played_machines
from kube.process import wait_for
from kube.rendered import MACHINE, ZONE, disks, has, manifests, named, settled

pytestmark = pytest.mark.e2e
CAPACITY = "karpenter.sh/capacity-type"
AWS = "clouds=[aws]"
CASES = {
    "spot machines for training": ("train", AWS),
    "machines for a service": ("serve", AWS),
    "Inferentia for a service": ("serve", AWS, "chips=[inferentia2]"),
    "a small machine without chips": ("hybrid", AWS),
}


def _type(node: Node, price: float) -> MachineType:
    zones = (f"{node.region}a", f"{node.region}b")
    offered = [Offering(kind, zone, price * (0.4 if kind == "spot" else 1)) for kind in ("spot", "on-demand") for zone in zones]
    resources = {**has(node), "pods": "110", "ephemeral-storage": "100Gi"}
    return MachineType(node.machine, resources, offered, node.arch)


def _offered(planned: Deployment) -> list[MachineType]:
    """The plan's machine and its stand-ins, dearer the later they stand; and one cheaper than all, but not in the plan."""
    types = [_type(one, 10.0 * (1 + at)) for at, one in enumerate((planned.node, *planned.alternatives))]
    tempting = _type(planned.node, 0.01)
    return [*types, MachineType("x9.cheap", tempting.resources, tempting.offerings, tempting.architecture)]


@pytest.mark.parametrize("case", CASES)
def test_pending_pods_bring_the_machine_of_the_plan_and_it_goes_with_them(
    cluster: Cluster, namespace: str, start_karpenter: Callable[[Sequence[MachineType]], None], case: str
) -> None:
    planned = named(deployment(*CASES[case]), namespace)
    start_karpenter(_offered(planned))
    pool = next(one for one in manifests("karpenter", planned) if one["kind"] == "NodePool")
    played = on_played_machines(pool)
    work = manifests("kubernetes", planned, "namespace.yaml", "workload.yaml")
    many = planned.scaling.usual if planned.scaling is not None else pods(planned)
    cluster.must_apply([played])
    try:
        with disks(cluster, work):
            cluster.must_apply(work)
            if planned.scaling is not None:
                _replicas(cluster, namespace, many)
            bound = settled(cluster, namespace, many, 120)
            nodes = [_node(cluster, name) for name in set(bound.values())]
            # Pods that come in several batches bring a machine each time: never more than one each, and as planned where
            # each has a machine of its own.
            assert 1 <= len(nodes) <= many
            assert len(nodes) == planned.machines or many > planned.machines
            for node in nodes:
                labels = node["metadata"]["labels"]
                assert labels[MACHINE] == planned.node.machine
                assert labels[CAPACITY] == ("spot" if planned.spot else "on-demand")
                taints = {one["key"] for one in node["spec"].get("taints", ())}
                assert taints >= {one["key"] for one in pool["spec"]["template"]["spec"].get("taints", ())}
            assert len({node["metadata"]["labels"][ZONE] for node in nodes}) == 1 or planned.scaling is not None

            soon = {"spec": {"disruption": {"consolidateAfter": "2s"}}}  # minutes in the file, which a test does not wait for
            cluster.api.merge(VERSION, "NodePool", namespace, soon).must()
            if planned.scaling is not None:
                _replicas(cluster, namespace, 0)
            else:
                cluster.api.delete("batch/v1", "Job", namespace, namespace)
            gone = lambda: not any(cluster.api.get("v1", "Node", one) for one in set(bound.values()))  # noqa: E731
            wait_for("the machines to go", gone, GONE_SECONDS)
    finally:
        cluster.api.delete(VERSION, "NodePool", namespace)


def test_a_pool_brings_no_more_than_the_plan_ever_uses(
    cluster: Cluster, namespace: str, start_karpenter: Callable[[Sequence[MachineType]], None]
) -> None:
    planned = named(deployment("serve", AWS), namespace)
    assert planned.scaling is not None
    start_karpenter(_offered(planned))
    pool = next(one for one in manifests("karpenter", planned) if one["kind"] == "NodePool")
    work = manifests("kubernetes", planned, "namespace.yaml", "workload.yaml")
    holds = ("ResourceQuota", "HorizontalPodAutoscaler")  # which would hold the pods back, or take some away, by themselves
    work = [one for one in work if one["kind"] not in holds]
    cluster.must_apply([on_played_machines(pool)])
    try:
        with disks(cluster, work):
            cluster.must_apply(work)
            _replicas(cluster, namespace, planned.scaling.maximum + 8)
            most = int(pool["spec"]["limits"]["nvidia.com/gpu"])
            wait_for(f"{most} bound pods", lambda: len(cluster.bound(namespace)) >= most, 90)
            bound = len(_pods(cluster, namespace, planned.scaling.maximum + 8))
            # Karpenter checks limits in parallel with what it starts, and documents that it may run over in a fast scale-out.
            assert most <= bound <= most + 2
    finally:
        _replicas(cluster, namespace, 0)
        cluster.api.delete(VERSION, "NodePool", namespace)


def _pods(cluster: Cluster, namespace: str, many: int) -> dict[str, str]:
    """Those with a node, when there are so many of both kinds."""
    wait_for(f"{many} pods", lambda: len(cluster.pods(namespace)) == many, 60)
    return cluster.bound(namespace)


def _replicas(cluster: Cluster, namespace: str, many: int) -> None:
    cluster.api.merge("apps/v1", "Deployment", namespace, {"spec": {"replicas": many}}, namespace).must()


def _node(cluster: Cluster, name: str) -> dict[str, Any]:
    node = cluster.api.get("v1", "Node", name)
    assert node is not None
    return dict(node)
