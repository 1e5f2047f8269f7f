"""A group of machines whose least, wanted and most contradict each other is rejected when it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from chipwise.auditor.cloudformation import resources_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Located, Sources, TerraformBlock, line_of, listed, mapped
from chipwise.auditor.terraform import inner, line_inside, machine_groups, text_of

_RANGES = (
    *(("min_node_count", "max_node_count"), ("total_min_node_count", "total_max_node_count"), ("min_vcpus", "max_vcpus")),
    *(("min_capacity", "max_capacity"), ("min_count", "max_count"), ("min_replicas", "max_replicas")),
)
ABOUT = "groups of machines have a least, a wanted and a most in this order"


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        if manifest.kind == "ClusterConfig":
            for group in [*listed(manifest.body.get("managedNodeGroups")), *listed(manifest.body.get("nodeGroups"))]:
                wrong = _wrong(mapped(group), "minSize", "desiredCapacity", "maxSize")
                if wrong and isinstance(group, Located):
                    yield _finding(manifest.path, line_of(group, wrong[0]), f"node group {group.get('name')}: {wrong[1]}")
    for resource in resources_of(sources, "AWS::Batch::ComputeEnvironment", "AWS::AutoScaling::AutoScalingGroup"):
        sizes = resource.properties.get("ComputeResources", resource.properties)
        for keys in (("MinvCpus", "DesiredvCpus", "MaxvCpus"), ("MinSize", "DesiredCapacity", "MaxSize")):
            wrong = _wrong(mapped(sizes), *keys)
            if wrong and isinstance(sizes, Located):
                yield _finding(resource.path, line_of(sizes, wrong[0]), f"{resource.name}: {wrong[1]}")
    for block in sources.blocks:
        kind = block.labels[0] if block.labels and block.type == "resource" else ""
        wrong = None
        if kind == "aws_autoscaling_group":
            wrong = _wrong(block.body, "min_size", "desired_capacity", "max_size")
        elif kind == "aws_eks_node_group":
            sizes = next(iter(inner(block.body, "scaling_config")), {})
            wrong = _wrong(sizes, "min_size", "desired_size", "max_size")
        if wrong:
            yield _finding(block.path, block.line, f"{block.title}: {wrong[1]}", line_inside(sources, block, wrong[0]))
        yield from _ranges(sources, block)
        for name, group in machine_groups(block) if block.type == "module" else ():
            if wrong := _wrong(group, "min_size", "desired_size", "max_size"):
                yield _finding(block.path, line_inside(sources, block, name), f"{block.title}: {name}: {wrong[1]}")


def _ranges(sources: Sources, block: TerraformBlock) -> Iterator[Finding]:
    """Of other resources: pools of Google, environments of AWS Batch, targets of scaling."""

    def bodies(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        yield body
        for value in body.values():
            for inside in value if isinstance(value, list) else ():
                if isinstance(inside, Mapping):
                    yield from bodies(inside)

    for body in bodies(block.body) if block.type == "resource" else ():
        for low, high in _RANGES:
            if wrong := _wrong(body, low, high):
                yield _finding(block.path, line_inside(sources, block, low), f"{block.title}: {wrong[1]}")


def _wrong(group: Mapping[str, Any], *keys: str) -> tuple[str, str] | None:
    """The first two of these keys whose numbers fall, and how."""
    stated = [(key, int(text)) for key in keys if (text := text_of(group.get(key))).isdecimal() and len(text) < 10]
    for (low, low_count), (high, high_count) in pairwise(stated):
        if low_count > high_count:
            return low, f"{low} {low_count} is above {high} {high_count}"
    return None


def _finding(path: str, line: int, message: str, also: int | None = None) -> Finding:
    fix = "Raise the most, or lower the others."
    places = ((path, also),) if also else ()
    return Finding(rule="machine-bounds", weight=Weight.HIGH, path=path, line=line, what=message, fix=fix, also=places)
