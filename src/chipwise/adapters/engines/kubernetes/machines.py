"""What nodes say: where an attempt really runs, and that its machine is about to go away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chipwise.catalog.offer import Purchase
from chipwise.runner.job import MachinePlace

from .kinds import NODE, Object
from .picture import Picture, condition, seconds

PROVIDERS = {"aws": "aws", "gce": "gcp", "azure": "azure", "kwok": ""}
# Taints by which those who take machines away say so beforehand. The value says when, in seconds since 1970, where it does.
GOING = (
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "ToBeDeletedByClusterAutoscaler",
    "aws-node-termination-handler/",
    "cloud.google.com/impending-node-termination",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.kubernetes.io/out-of-service",
)
SPOT = (
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-preemptible", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
BOUGHT = ("karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType", "cloud.google.com/gke-provisioning")


@dataclass(frozen=True, slots=True)
class NodeNotice:
    deadline: float
    reason: str


def place_of(node: Object | None, places: Sequence[MachinePlace]) -> MachinePlace | None:
    """The node's machine, with the price that was planned for one like it."""
    if node is None:
        return None
    labels = node["metadata"].get("labels") or {}
    machine = str(labels.get("node.kubernetes.io/instance-type", ""))
    if not machine:
        return None
    provider = PROVIDERS.get(str((node.get("spec") or {}).get("providerID", "")).partition(":")[0], "")
    spot = any(labels.get(key) == value for key, value in SPOT)
    purchase = (
        Purchase.SPOT if spot else Purchase.ON_DEMAND if provider or any(key in labels for key in BOUGHT) else Purchase.OWNED
    )
    price = next((one.usd_per_hour for one in places if one.machine == machine and one.purchase is purchase), None)
    region = str(labels.get("topology.kubernetes.io/region", ""))
    return MachinePlace(
        purchase=purchase,
        provider=provider,
        region=region,
        zone=str(labels.get("topology.kubernetes.io/zone", "")),
        machine=machine,
        usd_per_hour=price,
    )


def notice(picture: Picture, pods: Iterable[Object], soon: float, sick: Mapping[str, str] | None = None) -> NodeNotice | None:
    """The first that goes: all of an attempt leave with it. `soon`: by when, where nobody says. `sick`: nodes that it must
    leave, with the words for it."""
    notices = [
        notice
        for pod in pods
        if (notice := _of_pod(pod) or _of_node(picture, pod, soon) or _of_health(pod, soon, sick or {})) is not None
    ]
    return min(notices, key=lambda one: one.deadline, default=None)


def _of_health(pod: Object, soon: float, sick: Mapping[str, str]) -> NodeNotice | None:
    words = sick.get(str((pod.get("spec") or {}).get("nodeName", "")))
    return None if words is None else NodeNotice(soon, words)


def _of_pod(pod: Object) -> NodeNotice | None:
    """One that is being evicted: what deletes it says until when."""
    deadline, eviction = seconds(pod["metadata"].get("deletionTimestamp")), condition(pod, "DisruptionTarget")
    if deadline is None or eviction is None:
        return None
    return NodeNotice(
        deadline, f"{pod['metadata']['name']} is being evicted: {eviction.get('message') or eviction.get('reason', '')}"
    )


def _of_node(picture: Picture, pod: Object, soon: float) -> NodeNotice | None:
    node = picture.by_name(NODE, str((pod.get("spec") or {}).get("nodeName", "")))
    if node is None:
        return None
    name = node["metadata"]["name"]
    for taint in (node.get("spec") or {}).get("taints") or ():
        key = str(taint.get("key", ""))
        if key.startswith(GOING):
            value = str(taint.get("value", ""))
            is_time = value.isascii() and value.isdigit() and len(value) == 10
            return NodeNotice(float(value) if is_time else soon, f"node {name} is about to be removed: {key}")
    if node["metadata"].get("deletionTimestamp"):
        return NodeNotice(soon, f"node {name} is being removed")
    return None
