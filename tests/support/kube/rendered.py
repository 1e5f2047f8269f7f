"""Rendered files on the test cluster: the machines that a plan names as nodes, disks for its claims, and its manifests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any

import yaml

from chipwise.renderer.cluster.accelerators import capacity_labels, chip_taint, resource_of, spot_taints
from chipwise.renderer.deployment import Deployment, Node
from kube.control_plane import Cluster
from kube.process import wait_for

ZONE = "topology.kubernetes.io/zone"
MACHINE = "node.kubernetes.io/instance-type"
EFA = "vpc.amazonaws.com/efa"


def target(name: str) -> ModuleType:
    return import_module(f"chipwise.renderer.targets.{name}")


def named(deployment: Deployment, name: str) -> Deployment:
    """The same under another name, so that tests do not meet in one namespace."""
    return replace(deployment, name=name, namespace="")


def manifests(name: str, deployment: Deployment, *files: str) -> list[dict[str, Any]]:
    """What a target writes, read back from the text that a user gets; only these files, where some are named."""
    made = target(name).render(deployment)
    chosen = [file for file in made if not files or file.path in files]
    return [one for file in chosen for one in yaml.safe_load_all(file.text) if one]


def has(node: Node) -> dict[str, str]:
    """What one machine brings, as its kubelet and device plugins would report."""
    made = {}
    if node.vcpus is not None:
        made["cpu"] = str(node.vcpus)
    if node.memory_bytes is not None:
        made["memory"] = str(int(node.memory_bytes))
    resource = resource_of(node)
    if resource is not None:
        made[resource] = str(node.chips)
    if node.interfaces:
        made[EFA] = str(node.interfaces)
    return made


def labels_of(deployment: Deployment, machine: str = "") -> dict[str, str]:
    made = {MACHINE: machine or deployment.node.machine, ZONE: f"{deployment.node.region}a"}
    return made | dict(capacity_labels(deployment)[:1])


def taints_of(deployment: Deployment) -> list[dict[str, str]]:
    taints = [one for one in (chip_taint(deployment.node),) if one is not None]
    taints += spot_taints(deployment.node) if deployment.spot else ()
    return [{"key": one.key, "value": one.value, "effect": one.effect} for one in taints]


@contextlib.contextmanager
def disks(cluster: Cluster, claims: Iterable[Mapping[str, Any]]) -> Iterator[None]:
    """A disk for each claim, bound to it: nobody makes disks here, and a pod whose claim has none is not placed."""
    made = []
    for claim in claims:
        if claim["kind"] != "PersistentVolumeClaim":
            continue
        meta, spec = claim["metadata"], claim["spec"]
        made.append(meta["name"])
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": meta["name"]},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "claimRef": {"name": meta["name"], "namespace": meta["namespace"]},
                "hostPath": {"path": "/tmp/none"},
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": spec.get("storageClassName", ""),
            },
        }
        cluster.must_apply([volume])
    try:
        yield
    finally:
        for name in made:
            cluster.api.delete("v1", "PersistentVolume", name)


def settled(cluster: Cluster, namespace: str, many: int, seconds: float = 60) -> dict[str, str]:
    """Pods with their nodes, when there are so many."""
    return wait_for(
        f"{many} bound pods",
        lambda: found if len(found := cluster.bound(namespace)) == many else None,
        seconds,
    )


def reasons(cluster: Cluster, namespace: str, seconds: float = 30) -> list[str]:
    """Why each pod without a node has none, when the scheduler has spoken of all."""

    def told() -> list[str] | None:
        waiting = [pod for pod in cluster.pods(namespace) if not pod["spec"].get("nodeName")]
        said = [cluster.why_pending(pod) for pod in waiting]
        return said if said and all(said) else None

    return wait_for("the scheduler's reasons", told, seconds)
