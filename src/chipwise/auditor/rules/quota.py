"""A job that asks for more than its queue may ever give waits forever, and Kueue says so only in its status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import ACCELERATORS, pods_in
from chipwise.auditor.source import Manifest, Sources, line_of, listed, look, mapped, whole_number

ABOUT = "jobs fit into the quota of their queue"
_LABEL = "kueue.x-k8s.io/queue-name"
_REPLICAS = ("pytorchReplicaSpecs", "mpiReplicaSpecs", "tfReplicaSpecs")


def check(sources: Sources) -> Iterator[Finding]:
    clusters = {one.name: one for one in sources.manifests if one.kind == "ClusterQueue"}
    queues = {(one.namespace, one.name): one for one in sources.manifests if one.kind == "LocalQueue"}
    for manifest in sources.manifests:
        queue = queues.get((manifest.namespace, str(look(manifest.body, "metadata", "labels", _LABEL))))
        cluster = clusters.get(str(look(queue.body, "spec", "clusterQueue"))) if queue else None
        if cluster is None or look(cluster.body, "spec", "cohort") or look(cluster.body, "spec", "cohortName"):
            continue  # whoever has a cohort may borrow
        for name, wanted in _wanted(manifest).items():
            available = _available(cluster, name)
            if available is not None and wanted > available:
                yield Finding(
                    rule="quota",
                    weight=Weight.HIGH,
                    path=manifest.path,
                    line=line_of(manifest.body, "metadata", "labels", _LABEL),
                    what=f"{manifest.title} asks for {wanted} {name}, and {cluster.title} has {available}",
                    fix=f"Raise nominalQuota to {wanted}, or ask for less.",
                    also=tuple((cluster.path, line_of(one, "nominalQuota")) for one in _counted(cluster, name)),
                )


def _wanted(manifest: Manifest) -> dict[str, int]:
    """Accelerators of all its pods together."""
    spec, total = manifest.body.get("spec"), dict[str, int]()
    if manifest.kind == "LeaderWorkerSet":
        pod_count = max(1, whole_number(look(spec, "leaderWorkerTemplate", "size")))
    else:
        pod_count = max(1, whole_number(look(spec, "parallelism")), whole_number(look(spec, "replicas")))
    groups = next((mapped(look(spec, key)) for key in _REPLICAS if look(spec, key)), {})
    counts = [max(1, whole_number(look(group, "replicas"))) for group in groups.values()]
    for index, pod in enumerate(pods_in(manifest)):
        if manifest.kind == "LeaderWorkerSet" and "leaderTemplate" in mapped(look(spec, "leaderWorkerTemplate")):
            times = 1 if index == 0 else pod_count - 1
        else:
            times = counts[index] if index < len(counts) else pod_count
        for name, count in pod.chips.items():
            total[name] = total.get(name, 0) + count * times
    return total


def _counted(cluster: Manifest, name: str) -> list[Any]:
    return [
        resource
        for group in listed(look(cluster.body, "spec", "resourceGroups"))
        for flavor in listed(look(group, "flavors"))
        for resource in listed(look(flavor, "resources"))
        if look(resource, "name") == name and name.startswith(ACCELERATORS)
    ]


def _available(cluster: Manifest, name: str) -> int | None:
    """Of all flavors together, with what may be borrowed; None where the queue does not count it."""
    resources = _counted(cluster, name)
    return sum(whole_number(look(one, "nominalQuota")) for one in resources) if resources else None
