"""Machines with accelerators, by the names that clouds give them: what rules about nodes ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.auditor.source import Located, Manifest, Sources, listed, look

_FAMILIES = ("p3", "p4", "p5", "p6", "g4", "g5", "g6", "g7", "gr6", "trn", "inf", "dl1", "dl2", "f2", "vt1")
_CATEGORIES = {"p", "g", "gr", "trn", "inf", "dl", "f", "vt"}
_GOOGLE = ("a2-", "a3-", "a4-", "a4x-", "g2-", "g4-")
_TYPE_KEYS = ("node.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-family")
_COUNT_KEYS = ("karpenter.k8s.aws/instance-gpu-", "karpenter.k8s.aws/instance-accelerator-")


def accelerated(machine: str) -> bool:
    """Whether a machine of AWS has an accelerator, by its name."""
    return machine.split(".")[0].startswith(_FAMILIES)


def accelerated_google(machine: str) -> bool:
    return machine.startswith(_GOOGLE)


def pools(sources: Sources) -> Iterator[tuple[Manifest, Located]]:
    """Karpenter's pools that bring accelerators, each with what it says of their nodes."""
    for manifest in sources.manifests:
        spec = look(manifest.body, "spec", "template", "spec")
        if manifest.kind == "NodePool" and isinstance(spec, Located) and _requires_accelerator(spec):
            yield manifest, spec


def _requires_accelerator(spec: Mapping[str, Any]) -> bool:
    """By name, family or category, or by what the machine must have."""
    for requirement in listed(look(spec, "requirements")):
        key, values = str(look(requirement, "key")), [str(value) for value in listed(look(requirement, "values"))]
        if look(requirement, "operator") in ("NotIn", "DoesNotExist"):
            continue
        if key in _TYPE_KEYS and any(map(accelerated, values)):
            return True
        if key == "karpenter.k8s.aws/instance-category" and values and set(values) <= _CATEGORIES:
            return True
        if key.startswith(_COUNT_KEYS):
            return True
    return False
