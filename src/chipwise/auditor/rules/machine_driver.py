"""A machine whose system has no driver joins the cluster and offers no device: pods that want one wait forever."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chipwise.auditor.cloudformation import resources_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import accelerated
from chipwise.auditor.source import Sources, TerraformBlock, line_of, listed, look
from chipwise.auditor.terraform import inner, line_inside, machine_groups, text_of

ABOUT = "machines with accelerators have their driver"
_BARE = re.compile(r"(?:AL2|AL2023|BOTTLEROCKET)_(?:x86_64|ARM_64|x86_64_STANDARD|ARM_64_STANDARD)")
_AMI = re.compile(r"data\.aws_ami\.(\w+)\.")
_PLAIN = re.compile(r"ubuntu/images|ubuntu-minimal|al2023-ami-2|al2023-ami-\*|amzn2-ami-hvm|debian-|RHEL-", re.IGNORECASE)
_GOOGLE_PLAIN = re.compile(r"(?:debian|ubuntu-os|rocky-linux|centos|rhel)-cloud/|^(?:debian|ubuntu|rocky)-")
_INSTALLS = ("nvidia", "cuda", "rocm", "neuron")
_FIX = "Take the variant with drivers: AL2023_x86_64_NVIDIA, AL2023_x86_64_NEURON or BOTTLEROCKET_x86_64_NVIDIA."


def check(sources: Sources) -> Iterator[Finding]:
    for block in sources.blocks:
        groups = [(block.title, block.body)] if block.labels[:1] == ("aws_eks_node_group",) else []
        groups += list(machine_groups(block)) if block.type == "module" else []
        for name, group in groups:
            if (system := _bare(group.get("ami_type"), listed(group.get("instance_types")))) is not None:
                yield _finding(block.path, line_inside(sources, block, "ami_type", name), name, system)
        if block.labels[:1] == ("google_container_node_pool",):
            for config in (one for node in inner(block.body, "node_config") for one in inner(node, "guest_accelerator")):
                for driver in inner(config, "gpu_driver_installation_config"):
                    if text_of(driver.get("gpu_driver_version")) == "INSTALLATION_DISABLED":
                        yield Finding(
                            rule="machine-driver",
                            weight=Weight.LOW,
                            path=block.path,
                            line=line_inside(sources, block, "gpu_driver_version"),
                            what=f"{block.title} comes without a driver: something else must install one",
                            fix='Set gpu_driver_version = "DEFAULT", unless a DaemonSet installs another.',
                        )
    yield from _plain_systems(sources)
    for resource in resources_of(sources, "AWS::EKS::Nodegroup"):
        properties = resource.properties
        system = _bare(properties.get("AmiType"), listed(look(properties, "InstanceTypes")))
        if system is not None:
            yield _finding(resource.path, line_of(properties, "AmiType"), resource.name, system)


def _plain_systems(sources: Sources) -> Iterator[Finding]:
    """Groups of eksctl and single machines whose system is one that comes without drivers."""
    for manifest in sources.manifests:
        for key in ("managedNodeGroups", "nodeGroups") if manifest.kind == "ClusterConfig" else ():
            for group in listed(manifest.body.get(key)):
                family = str(look(group, "amiFamily") or "")
                names = [str(name) for name in (look(group, "instanceType"), *listed(look(group, "instanceTypes"))) if name]
                if family.startswith("Ubuntu") and not look(group, "ami") and any(map(accelerated, names)):
                    yield _finding(manifest.path, line_of(group, "amiFamily"), f"node group {look(group, 'name')}", family)
    images = {one.labels[1]: one for one in sources.blocks if one.type == "data" and one.labels[:1] == ("aws_ami",)}
    for block in sources.blocks:
        yield from _plain_google(sources, block)
        machine = text_of(block.body.get("instance_type"))
        source = _AMI.search(text_of(block.body.get("ami")))
        image = images.get(source[1]) if source else None
        if block.labels[:1] != ("aws_instance",) or image is None or not accelerated(machine):
            continue
        patterns = [text_of(value) for one in inner(image.body, "filter") for value in listed(one.get("values"))]
        started = str(block.body.get("user_data") or "").lower()
        if any(_PLAIN.match(pattern) for pattern in patterns) and not any(sign in started for sign in _INSTALLS):
            yield Finding(
                rule="machine-driver",
                weight=Weight.HIGH,
                path=block.path,
                line=line_inside(sources, block, "ami"),
                what=f"{block.title} is a {machine}, and its image ({patterns[0]}) has no driver for it",
                fix="Take a Deep Learning Base AMI, or install the driver in user_data.",
            )


def _plain_google(sources: Sources, block: TerraformBlock) -> Iterator[Finding]:
    """Machines of Google whose disk is a plain system, and whose start installs no driver."""
    if not block.labels[:1] or not block.labels[0].startswith("google_compute_") or not inner(block.body, "guest_accelerator"):
        return
    disks = [
        *inner(block.body, "disk"),
        *(one for boot in inner(block.body, "boot_disk") for one in inner(boot, "initialize_params")),
    ]
    images = [text_of(one.get("source_image") or one.get("image")) for one in disks]
    started = f"{block.body.get('metadata')} {block.body.get('metadata_startup_script')}".lower()
    for image in images:
        if _GOOGLE_PLAIN.search(image) and not any(sign in started for sign in _INSTALLS):
            yield Finding(
                rule="machine-driver",
                weight=Weight.HIGH,
                path=block.path,
                line=line_inside(sources, block, "source_image", "disk") if inner(block.body, "disk") else block.line,
                what=f"{block.title} has accelerators, and its image ({image.rpartition('/')[2]}) has no driver for them",
                fix="Take an image of deeplearning-platform-release, or install the driver at the start.",
            )


def _bare(system: Any, machines: Any) -> str | None:
    names = [text_of(one) for one in listed(machines)]
    kind = text_of(system)
    return kind if _BARE.fullmatch(kind) and names and any(map(accelerated, names)) else None


def _finding(path: str, line: int, name: str, system: str) -> Finding:
    message = f"{name} has accelerators, and {system} has no driver for them"
    return Finding(rule="machine-driver", weight=Weight.HIGH, path=path, line=line, what=message, fix=_FIX)
