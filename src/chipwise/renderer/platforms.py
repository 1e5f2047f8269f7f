"""What platforms offer for one machine or chip: machine images, managed instance types, limits of functions.

All of it is rows of the catalog's table `runtimes`; targets read what is found here from `Deployment.platforms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chipwise.catalog.tables import RuntimeFact
from chipwise.renderer.deployment import Node

OPEN_DRIVER = 7.5  # NVIDIA's open kernel driver, which the GPU images carry, knows chips from this compute capability on
# Services with limits of their own. A row of version `any` holds for all, one with the name of a kind or a chip goes over it.
_LIMITED = ("SageMaker", "SageMaker Serverless", "Lambda", "Cloud Run", "Container Apps")


def platforms(rows: Iterable[RuntimeFact], node: Node) -> dict[str, Mapping[str, str]]:
    """By platform, then by what is asked: `facts["Lambda"]["most seconds"]`. What is not offered is not there."""
    known = tuple(rows)
    facts: dict[str, Mapping[str, str]] = {}
    for name in _LIMITED:
        own = [row for row in known if row.component == name]
        facts[name] = {
            row.requires: row.value for version in ("any", node.kind, node.chip) for row in own if row.version == version
        }
    if node.provider == "aws":
        facts["AMI"] = _images(known, node)
        facts["SageMaker"] = {**facts["SageMaker"], **_managed(known, node)}
    return facts


def first_card(rows: Iterable[RuntimeFact], machine: str) -> int:
    """The first network card that carries EFA."""
    family = machine.partition(".")[0]
    return next((int(row.value) for row in rows if (row.component, row.version) == ("EFA", family)), 0)


def _images(rows: tuple[RuntimeFact, ...], node: Node) -> dict[str, str]:
    """SSM parameters by where the machine joins: ec2, ecs, eks. A chip without a public image has none."""
    arch = "arm64" if node.arch == "arm64" else "x86_64"
    if not node.accelerated:
        wanted = {
            "ec2": ("AMI Amazon Linux", f"AL2023 {arch}"),
            "eks": ("AMI EKS optimized", f"AL2023 {arch} standard"),
            "ecs": ("AMI ECS optimized", "AL2023 arm64" if arch == "arm64" else "AL2023"),
        }
    elif node.kind == "neuron":
        wanted = {
            "ec2": ("AMI Neuron DLAMI", "base, AL2023"),
            "eks": ("AMI EKS optimized", "AL2023 x86_64 Neuron"),
            "ecs": ("AMI ECS optimized", "AL2023 Neuron"),
        }
    elif node.kind == "gpu" and node.vendor == "NVIDIA" and (node.capability or 0.0) >= OPEN_DRIVER:
        base = "base, AL2023, arm64" if arch == "arm64" else "base, AL2023"
        wanted = {"ec2": ("AMI DLAMI (GPU)", base), "eks": ("AMI EKS optimized", f"AL2023 {arch} NVIDIA")}
        if arch != "arm64":
            wanted["ecs"] = ("AMI ECS optimized", "AL2023 NVIDIA")
        if node.share < 1:  # a part of a chip takes NVIDIA's GRID driver, which of these the images of EKS alone have
            wanted = {"eks": wanted["eks"]}
    else:
        return {}
    values = {(row.component, row.version): row.value for row in rows if row.requires == "SSM parameter"}
    return {where: values[key].replace("<version>", "recommended/image_id") for where, key in wanted.items() if key in values}


def _managed(rows: tuple[RuntimeFact, ...], node: Node) -> dict[str, str]:
    """SageMaker's name of the machine, for each use in which it has it."""
    name = f"ml.{node.machine}"
    return {
        row.version: name
        for row in rows
        if row.component == "SageMaker" and row.requires == "instance types" and name in row.value.split()
    }
