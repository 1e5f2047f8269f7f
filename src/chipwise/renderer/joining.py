"""What a machine needs to join a Kubernetes cluster: the node image that carries its driver, and the plugins that hand out
its chips.

All of it is rows of the catalog's table `runtimes`; targets read it from `Deployment.platforms` under `EKS` and
`Device plugins`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from chipwise.catalog.tables import RuntimeFact
from chipwise.renderer.deployment import Node

_OPTIMIZED = "AMI EKS optimized"
_RELEASE = re.compile(r"(v\d{8}), Kubernetes (\d+\.\d+)")


def joining(rows: Iterable[RuntimeFact], node: Node) -> dict[str, Mapping[str, str]]:
    """`EKS`: release and kubernetes of the node image, and what it carries for this machine (variant, driver, tested: whether
    its list of machine families has this one). `Device plugins`: their images. What is not known is not there."""
    known = tuple(rows)
    plugins = {row.version: row.value for row in known if (row.component, row.requires) == ("Device plugin", "image")}
    facts: dict[str, Mapping[str, str]] = {"Device plugins": plugins}
    if node.provider == "aws":
        facts["EKS"] = _eks(known, node)
    return facts


def _eks(rows: tuple[RuntimeFact, ...], node: Node) -> dict[str, str]:
    variant = _variant(node)
    if variant is None:
        return {}
    values = {"variant": variant}
    for row in rows:
        release = _RELEASE.fullmatch(row.version) if row.component == _OPTIMIZED else None
        if release is not None and row.requires.startswith("NVIDIA driver"):
            values |= {"release": release[1], "kubernetes": release[2]}
            if variant == "NVIDIA":
                values["driver"] = row.value.partition(" / ")[0]
            elif variant == "Neuron" and (neuron := re.search(r"aws-neuronx-dkms ([\d.]+)", row.fact.notes)):
                values["driver"] = neuron[1].rstrip(".")
    arch = "arm64" if node.arch == "arm64" else "x86_64"
    families = next(
        (
            row.value.split()
            for row in rows
            if (row.component, row.version, row.requires) == (_OPTIMIZED, f"AL2023 {arch} {variant}", "instance families")
        ),
        None,
    )
    if families is not None:
        values["tested"] = "yes" if node.machine.partition(".")[0] in families else "no"
    return values


def _variant(node: Node) -> str | None:
    if not node.accelerated:
        return "standard"
    if node.kind == "neuron":
        return "Neuron"
    return "NVIDIA" if node.kind == "gpu" and node.vendor == "NVIDIA" else None
