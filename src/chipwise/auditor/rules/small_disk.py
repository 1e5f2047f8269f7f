"""Images of accelerators take tens of GB: on the disk that a machine has by default, nothing fits beside the system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.auditor.cloudformation import resources_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import accelerated, accelerated_google, pools
from chipwise.auditor.models import model_of_task, weight_bytes
from chipwise.auditor.pods import Pod, pods_of
from chipwise.auditor.quantity import quantity
from chipwise.auditor.source import Located, Manifest, Sources, line_of, listed, look, walk, whole_number
from chipwise.auditor.tasks import Task, tasks_of
from chipwise.auditor.terraform import google_pools, inner, line_inside, machine_groups, text_of

ABOUT = "machines with accelerators have room for their images"
_ENOUGH_GB = 50
_PULL = re.compile(r"ollama (?:pull|run) [\w./-]+:(\d{1,3}(?:\.\d)?)b")


def check(sources: Sources) -> Iterator[Finding]:
    wanted = {str(look(spec, "nodeClassRef", "name")) for _, spec in pools(sources)}
    classes = {one.name for one in sources.manifests if one.kind == "EC2NodeClass"}
    wanted |= classes if wanted and not wanted & classes else set()  # a misspelled one is said by another rule
    for manifest in sources.manifests:
        plain = manifest.kind == "EC2NodeClass" and look(manifest.body, "spec", "amiFamily") != "Custom"
        if plain and manifest.name in wanted and not listed(look(manifest.body, "spec", "blockDeviceMappings")):
            line = line_of(manifest.body, "spec")
            yield _finding(manifest.path, line, f"{manifest.title} leaves machines with accelerators a disk of 20 GiB")
        mappings = listed(look(manifest.body, "spec", "blockDeviceMappings")) if plain and manifest.name in wanted else ()
        sizes = [quantity(look(mapping, "ebs", "volumeSize")) for mapping in mappings]
        if sizes and all(size is not None and size < _ENOUGH_GB * 2**30 for size in sizes):  # of two, one is the system's
            line = line_of(mappings[-1], "ebs", "volumeSize")
            yield _finding(manifest.path, line, f"{manifest.title} leaves machines with accelerators a small disk")
        for group in _groups(manifest) if manifest.kind == "ClusterConfig" else ():
            if whole_number(look(group, "volumeSize")) and not _large(look(group, "volumeSize")):
                message = f"node group {look(group, 'name')} leaves machines with accelerators a small disk"
                yield _finding(manifest.path, line_of(group, "volumeSize"), message)
    for resource in resources_of(sources, "AWS::EKS::Nodegroup"):
        properties = resource.properties
        types = [str(one) for one in listed(properties.get("InstanceTypes"))]
        if any(map(accelerated, types)) and whole_number(properties.get("DiskSize")) and not _large(properties.get("DiskSize")):
            message = f"{resource.name} leaves machines with accelerators a disk of {properties.get('DiskSize')} GB"
            yield _finding(resource.path, line_of(properties, "DiskSize"), message)
    for resource in resources_of(sources, "AWS::EC2::Instance", "AWS::EC2::LaunchTemplate"):
        machine = str(next((one["InstanceType"] for one in walk(resource.properties) if "InstanceType" in one), ""))
        for disk in (one["Ebs"] for one in walk(resource.properties) if isinstance(one.get("Ebs"), Located)):
            if accelerated(machine) and whole_number(disk.get("VolumeSize")) and not _large(disk.get("VolumeSize")):
                message = f"{resource.name} leaves a machine with accelerators a small disk"
                yield _finding(resource.path, line_of(disk, "VolumeSize"), message)
    for task in tasks_of(sources):
        yield from _downloads(task)
    for pod in pods_of(sources):
        yield from _pulled(pod)
    for block in sources.blocks:
        for name, group in machine_groups(block) if block.type == "module" else ():
            types = [text_of(one) for one in listed(group.get("instance_types"))]
            for key, size in _sizes(group) if any(map(accelerated, types)) else ():
                if not _large(size):
                    message = f"{block.title}: {name} leaves machines with accelerators a disk of {text_of(size)} GB"
                    yield _finding(block.path, line_inside(sources, block, key, name), message)
        for pool in google_pools(block):
            google = accelerated_google(text_of(pool.get("machine_type"))) or bool(pool.get("accelerator_type"))
            if google and pool.get("disk_size_gb") is not None and not _large(pool.get("disk_size_gb")):
                line = line_inside(sources, block, "disk_size_gb", "machine_type")
                yield _finding(block.path, line, f"{block.title} leaves machines with accelerators a small disk")
        if block.labels[:1] == ("aws_eks_node_group",) and block.body.get("disk_size") is not None:
            types = [text_of(one) for one in listed(block.body.get("instance_types"))]
            if any(map(accelerated, types)) and not _large(block.body.get("disk_size")):
                line = line_inside(sources, block, "disk_size")
                yield _finding(block.path, line, f"{block.title} leaves machines with accelerators a small disk")
        azure = block.labels[:1] == ("azurerm_kubernetes_cluster_node_pool",)
        stated, machine = block.body.get("os_disk_size_gb"), text_of(block.body.get("vm_size"))
        if azure and stated is not None and "Standard_N" in machine and not _large(stated):
            line = line_inside(sources, block, "os_disk_size_gb")
            yield _finding(block.path, line, f"{block.title} leaves machines with accelerators a small disk")
        if block.labels[:1] == ("google_container_node_pool",):
            for node in inner(block.body, "node_config"):
                google = accelerated_google(text_of(node.get("machine_type"))) or bool(inner(node, "guest_accelerator"))
                if google and node.get("disk_size_gb") is not None and not _large(node.get("disk_size_gb")):
                    line = line_inside(sources, block, "disk_size_gb")
                    yield _finding(block.path, line, f"{block.title} leaves machines with accelerators a small disk")
        kind = block.labels[0] if block.labels and block.type == "resource" else ""
        if kind == "aws_launch_template" and accelerated(text_of(block.body.get("instance_type"))):
            disks = [one for mapping in inner(block.body, "block_device_mappings") for one in inner(mapping, "ebs")]
            if disks and not any(_large(one.get("volume_size")) for one in disks):
                message = f"{block.title} leaves machines with accelerators a small disk"
                yield _finding(block.path, line_inside(sources, block, "volume_size"), message)
        if kind == "aws_instance" and accelerated(text_of(block.body.get("instance_type"))):
            disks = inner(block.body, "root_block_device")
            if not inner(block.body, "launch_template") and not any(_large(one.get("volume_size")) for one in disks):
                also = ((block.path, line_inside(sources, block, "volume_size")),)
                yield _finding(block.path, block.line, f"{block.title} leaves a machine with accelerators a small disk", also)
        if kind == "google_compute_instance" and accelerated_google(text_of(block.body.get("machine_type"))):
            disks = [one for disk in inner(block.body, "boot_disk") for one in inner(disk, "initialize_params")]
            if not any(_large(one.get("size")) for one in disks):
                yield _finding(block.path, block.line, f"{block.title} leaves a machine with accelerators a small disk")


def _groups(manifest: Manifest) -> list[Any]:
    groups = [*listed(manifest.body.get("managedNodeGroups")), *listed(manifest.body.get("nodeGroups"))]
    return [one for one in groups if any(accelerated(str(name)) for name in _types(one))]


def _types(group: Any) -> list[Any]:
    return [name for name in (look(group, "instanceType"), *listed(look(group, "instanceTypes"))) if name]


def _downloads(task: Task) -> Iterator[Finding]:
    """A task that fetches a model to a disk that is smaller."""
    resources, model = task.manifest.body.get("resources"), model_of_task(task)
    size, weights = whole_number(look(resources, "disk_size")), weight_bytes(task.words, model.text) / 1e9 if model else 0.0
    if model and size and weights and size < weights + _ENOUGH_GB:
        message = f"the task has a disk of {size} GB, and {model.text} takes {weights:.0f} GB beside the system"
        line = line_of(resources, "disk_size")
        fix = f"Set disk_size to {weights + 2 * _ENOUGH_GB:.0f} or more."
        yield Finding(rule="small-disk", weight=Weight.MEDIUM, path=task.path, line=line, what=message, fix=fix)


def _pulled(pod: Pod) -> Iterator[Finding]:
    """Models that Ollama is told to fetch, against the claims of a set; it keeps them in about five bits."""
    text = str(pod.spec)
    weights = sum(float(size) * 0.6 for size in _PULL.findall(text))
    claims = [one for one in listed(look(pod.owner.body, "spec", "volumeClaimTemplates")) if isinstance(one, Located)]
    for claim in claims if weights else ():
        request = look(claim, "spec", "resources", "requests")
        size = quantity(look(request, "storage"))
        if len(claims) == 1 and size is not None and size / 1e9 < weights:
            message = f"{pod.owner.title} fetches models of about {weights:.0f} GB into {size / 1e9:.0f}"
            fix = f"Ask for {2 * weights:.0f}Gi or more."
            line = line_of(request, "storage")
            yield Finding(rule="small-disk", weight=Weight.MEDIUM, path=pod.owner.path, line=line, what=message, fix=fix)


def _sizes(value: Any) -> Iterator[tuple[str, Any]]:
    """Sizes of disks inside the arguments of a group."""
    for key, item in value.items() if isinstance(value, Mapping) else ():
        name = str(key).strip('"')
        if name in ("volume_size", "disk_size"):
            yield name, item
        for inside in item if isinstance(item, list) else [item]:
            yield from _sizes(inside)


def _large(size: object) -> bool:
    """A number that is enough; what only Terraform knows is taken for it."""
    text = text_of(size)
    return bool(text) and (not text.isdecimal() or len(text) > 9 or int(text) >= _ENOUGH_GB)


def _finding(path: str, line: int, message: str, also: tuple[tuple[str, int], ...] = ()) -> Finding:
    fix = "Give the root disk 100 GB or more."
    return Finding(rule="small-disk", weight=Weight.MEDIUM, path=path, line=line, what=message, fix=fix, also=also)
