"""Machines with accelerators cost ten times others: taints keep ordinary pods away, tolerations let the right ones in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import accelerated, pools
from chipwise.auditor.pods import node_labels, pods_of
from chipwise.auditor.source import Sources, line_of, listed, look, walk
from chipwise.auditor.terraform import inner, line_inside, machine_groups, text_of

# GKE taints its own GPU and TPU node pools, so they are not looked at.
ABOUT = "accelerator nodes are tainted, and pods that use them tolerate it"
_RULE = "accelerator-taints"


def check(sources: Sources) -> Iterator[Finding]:
    tainted = any(_taints(manifest.body) for manifest in sources.manifests) or any(
        "taint" in str(one.body) for one in sources.blocks
    )
    for pod in pods_of(sources):
        if not pod.chips or pod.owner.kind == "DaemonSet":
            continue
        if any(label.startswith("cloud.google.com/gke-") for label in node_labels(pod.spec)):
            continue  # GKE adds the toleration to pods that ask for the device
        wanted = {"nvidia.com/gpu" if name.startswith("nvidia.com/") else name for name in pod.chips}
        tolerations = listed(pod.spec.get("tolerations"))
        open_to = {str(look(one, "key")) for one in tolerations} | {"*" for one in tolerations if not look(one, "key")}
        for name in sorted(wanted - open_to):
            if "*" not in open_to:
                yield _finding(
                    pod.owner.path,
                    line_of(pod.spec, "tolerations"),
                    f"{pod.owner.title} uses {name} and does not tolerate its taint",
                    f"Add a toleration: key {name}, operator Exists, effect NoSchedule.",
                    Weight.MEDIUM if tainted else Weight.LOW,  # many clusters have no taints, or add the toleration themselves
                )
    for manifest, spec in pools(sources):
        if not listed(look(spec, "taints")):
            yield _finding(manifest.path, line_of(spec), f"{manifest.title} brings accelerators without a taint", "Add taints.")
    for manifest in sources.manifests:
        if manifest.kind == "ClusterConfig":
            for group in [*listed(manifest.body.get("managedNodeGroups")), *listed(manifest.body.get("nodeGroups"))]:
                names = [look(group, "instanceType"), *listed(look(group, "instanceTypes"))]
                if any(accelerated(str(name)) for name in names if name) and not look(group, "taints"):
                    message = f"node group {look(group, 'name')} has accelerators and no taint"
                    yield _finding(manifest.path, line_of(group), message, "Add taints.")
    for block in sources.blocks:
        machines = [str(name).strip('"') for name in listed(block.body.get("instance_types"))]
        untainted = block.labels[:1] == ("aws_eks_node_group",) and not inner(block.body, "taint")
        if untainted and any(map(accelerated, machines)):
            yield _finding(block.path, block.line, f"{block.title} has accelerators and no taint", "Add a taint block.")
        for name, group in machine_groups(block) if block.type == "module" else ():
            types = [str(one).strip('"') for one in listed(group.get("instance_types"))]
            if any(map(accelerated, types)) and not group.get("taints"):
                message = f"{block.title}: {name} has accelerators and no taint"
                yield _finding(block.path, line_inside(sources, block, name), message, "Set taints.")
        untainted = block.labels[:1] == ("azurerm_kubernetes_cluster_node_pool",) and not block.body.get("node_taints")
        by_azure = "spot" in text_of(block.body.get("priority")).lower()  # which taints these pools itself
        if untainted and not by_azure and "Standard_N" in str(block.body.get("vm_size", "")):
            yield _finding(block.path, block.line, f"{block.title} has accelerators and no taint", "Set node_taints.")


def _taints(value: Any) -> bool:
    return any(listed(mapping.get("taints")) for mapping in walk(value))


def _finding(path: str, line: int, message: str, fix: str, weight: Weight = Weight.MEDIUM) -> Finding:
    return Finding(rule=_RULE, weight=weight, path=path, line=line, what=message, fix=fix)
