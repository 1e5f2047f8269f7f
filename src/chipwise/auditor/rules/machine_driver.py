"""A machine whose system has no driver joins the cluster and offers no device: pods that want one wait forever."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chipwise.auditor.cloudformation import resources_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import accelerated
from chipwise.auditor.source import Sources, line_of, listed, look
from chipwise.auditor.terraform import inner, line_inside, machine_groups, text_of

ABOUT = "machines with accelerators have their driver"
_BARE = re.compile(r"(?:AL2|AL2023|BOTTLEROCKET)_(?:x86_64|ARM_64|x86_64_STANDARD|ARM_64_STANDARD)")
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
    for resource in resources_of(sources, "AWS::EKS::Nodegroup"):
        properties = resource.properties
        system = _bare(properties.get("AmiType"), listed(look(properties, "InstanceTypes")))
        if system is not None:
            yield _finding(resource.path, line_of(properties, "AmiType"), resource.name, system)


def _bare(system: Any, machines: Any) -> str | None:
    names = [text_of(one) for one in listed(machines)]
    kind = text_of(system)
    return kind if _BARE.fullmatch(kind) and names and any(map(accelerated, names)) else None


def _finding(path: str, line: int, name: str, system: str) -> Finding:
    message = f"{name} has accelerators, and {system} has no driver for them"
    return Finding(rule="machine-driver", weight=Weight.HIGH, path=path, line=line, what=message, fix=_FIX)
