"""A job that asks for more than its queue may ever give waits forever, and Kueue says so only in its status."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import ACCELERATORS, pods_in
from chipwise.auditor.source import Manifest, Sources, line_of, listed, look, mapped, whole_number

ABOUT = "jobs fit into the quota of their queue"
_LABEL = "kueue.x-k8s.io/queue-name"
_MOST = re.compile(r"^\s*max_replicas:\s*(\d{1,4})\s*$", re.MULTILINE)
_SPLIT = re.compile(r"^\s*tensor_parallel_size:\s*(\d{1,4})\s*$", re.MULTILINE)
_NO_WORK = ("LimitRange", "ConfigMap", "Secret", "DaemonSet")
_REPLICAS = ("pytorchReplicaSpecs", "mpiReplicaSpecs", "tfReplicaSpecs")


def check(sources: Sources) -> Iterator[Finding]:
    yield from _spaces(sources)
    clusters = {one.name: one for one in sources.manifests if one.kind == "ClusterQueue"}
    queues = {(one.namespace, one.name): one for one in sources.manifests if one.kind == "LocalQueue"}
    for manifest in sources.manifests:
        yield from _replicas(manifest)
        name = look(manifest.body, "metadata", "labels", _LABEL)
        queue, local_queues = (
            queues.get((manifest.namespace, str(name))),
            [one for one in queues if one[0] == manifest.namespace],
        )
        if name and not queue and local_queues:  # where none is written down, they are kept elsewhere
            stated = ", ".join(other for _, other in local_queues)
            yield Finding(
                rule="quota",
                weight=Weight.HIGH,
                path=manifest.path,
                line=line_of(manifest.body, "metadata", "labels", _LABEL),
                what=f"{manifest.title} waits in the queue {name}, and its namespace has {stated}",
                fix=f"Set {_LABEL} to one of them.",
            )
            queue = queues[local_queues[0]] if len(local_queues) == 1 else None
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


def _spaces(sources: Sources) -> Iterator[Finding]:
    """A quota of a namespace that one object of it exceeds by itself."""
    for quota in (one for one in sources.manifests if one.kind == "ResourceQuota"):
        hard = look(quota.body, "spec", "hard")
        for manifest in sources.manifests:
            if manifest.namespace != quota.namespace or manifest.kind in _NO_WORK:
                continue
            for name, wanted in _wanted(manifest).items():
                key = f"requests.{name}"
                if key in mapped(hard) and wanted > whole_number(mapped(hard)[key]):
                    yield Finding(
                        rule="quota",
                        weight=Weight.HIGH,
                        path=quota.path,
                        line=line_of(hard, key),
                        what=f"{manifest.title} asks for {wanted} {name}, and {quota.title} allows {mapped(hard)[key]}",
                        fix=f"Raise {key} to {wanted}, or ask for less.",
                        also=((manifest.path, line_of(manifest.body, "kind")),),
                    )


def _replicas(manifest: Manifest) -> Iterator[Finding]:
    """A service of Ray that is to grow beyond the devices that its cluster may have."""
    spec = manifest.body.get("spec")
    text, line = str(look(spec, "serveConfigV2") or ""), line_of(spec, "serveConfigV2")
    maximum, split = _MOST.search(text), _SPLIT.search(text)
    groups = listed(look(spec, "rayClusterConfig", "workerGroupSpecs"))
    if manifest.kind != "RayService" or not maximum or len(_MOST.findall(text)) > 1 or not groups:
        return
    devices = 0
    for pod in pods_in(manifest):
        group = next((one for one in reversed(pod.above) if "maxReplicas" in one), None)
        devices += whole_number(look(group, "maxReplicas")) * sum(pod.chips.values())
    wanted = int(maximum[1]) * int(split[1] if split else 1)
    if devices and wanted > devices:
        place = line + text.count("\n", 0, maximum.start(1)) + 1
        replica_devices = wanted // int(maximum[1])
        message = (
            f"{manifest.title} may have {maximum[1]} replicas of {replica_devices} devices, and its workers have {devices}"
        )
        fix = "Raise maxReplicas of the worker group, or lower max_replicas: those above wait forever."
        yield Finding(rule="quota", weight=Weight.MEDIUM, path=manifest.path, line=place, what=message, fix=fix)


def _wanted(manifest: Manifest) -> dict[str, int]:
    """Accelerators of all its pods together."""
    spec, total = manifest.body.get("spec"), dict[str, int]()
    if manifest.kind == "LeaderWorkerSet":
        pod_count = max(1, whole_number(look(spec, "leaderWorkerTemplate", "size")))
    else:
        counted = ("parallelism", "replicas", *(("maxReplicaCount",) if manifest.kind == "ScaledJob" else ()))
        pod_count = max(1, *(whole_number(look(spec, key)) for key in counted))
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
