"""A disk that is not encrypted outlives the machine readable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.auditor.cloudformation import Resource, resources_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Located, Sources, TerraformBlock, line_of, listed, look, walk
from chipwise.auditor.terraform import inner, is_true, line_inside, machine_groups, text_of

ABOUT = "disks are encrypted"
_RULE = "unencrypted-disk"


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        if manifest.kind == "EC2NodeClass":
            mappings = listed(look(manifest.body, "spec", "blockDeviceMappings"))
            if not mappings and look(manifest.body, "spec", "amiFamily") == "Custom":  # others are encrypted by default
                yield _finding(
                    manifest.path, line_of(manifest.body, "spec"), f"{manifest.title} leaves the root disk as it comes"
                )
            for mapping in mappings:
                if look(mapping, "ebs", "encrypted") is not True:
                    yield _finding(
                        manifest.path, line_of(mapping), f"{manifest.title}: {look(mapping, 'deviceName')} is not encrypted"
                    )
        if manifest.kind == "ClusterConfig":
            for group in [*listed(manifest.body.get("managedNodeGroups")), *listed(manifest.body.get("nodeGroups"))]:
                if look(group, "volumeEncrypted") is False:
                    yield _finding(
                        manifest.path, line_of(group, "volumeEncrypted"), f"node group {look(group, 'name')} is not encrypted"
                    )
        disks = manifest.kind == "StorageClass" and "ebs" in str(manifest.body.get("provisioner", ""))
        if disks and str(look(manifest.body, "parameters", "encrypted")).lower() != "true":
            yield _finding(manifest.path, line_of(manifest.body, "parameters"), f"{manifest.title} is not encrypted")
    for block in sources.blocks:
        if block.type == "resource" and _bare(block):
            also = ((block.path, line_inside(sources, block, "encrypted")),)
            yield _finding(block.path, block.line, f"{block.title} has a disk that is not encrypted", also)
        for name, group in machine_groups(block) if block.type == "module" else ():
            if any(key == "encrypted" and text_of(value).lower() == "false" for key, value in _settings(group)):
                line = line_inside(sources, block, "encrypted", name)
                yield _finding(block.path, line, f"{block.title}: {name} has a disk that is not encrypted")
    for resource in resources_of(sources):
        yield from _resource(resource)


def _settings(value: Any) -> Iterator[tuple[str, Any]]:
    """Every argument inside, at whatever depth."""
    for key, item in value.items() if isinstance(value, Mapping) else ():
        yield str(key).strip('"'), item
        for inside in item if isinstance(item, list) else [item]:
            yield from _settings(inside)


def _resource(resource: Resource) -> Iterator[Finding]:
    """Of CloudFormation."""
    alone = resource.type in ("AWS::EC2::Volume", "AWS::EFS::FileSystem")
    if alone and not is_true(resource.properties.get("Encrypted")):
        line = line_of(resource.properties, "Encrypted")
        yield _finding(resource.path, line, f"{resource.name} is not encrypted")
    if resource.type in ("AWS::EC2::Instance", "AWS::EC2::LaunchTemplate"):
        for disk in (one["Ebs"] for one in walk(resource.properties) if isinstance(one.get("Ebs"), Located)):
            if not is_true(disk.get("Encrypted")):
                line = line_of(disk, "Encrypted")
                yield _finding(resource.path, line, f"{resource.name} has a disk that is not encrypted")


def _bare(block: TerraformBlock) -> bool:
    kind, body = block.labels[0] if block.labels else "", block.body
    if kind in ("aws_ebs_volume", "aws_efs_file_system"):
        return not is_true(body.get("encrypted"))
    if kind == "aws_instance" and inner(body, "launch_template"):  # the template is looked at where it stands
        return False
    if kind == "aws_instance":
        disks = [*inner(body, "root_block_device"), *inner(body, "ebs_block_device")]
        return not disks or any(not is_true(one.get("encrypted")) for one in disks)
    if kind == "aws_launch_template":
        disks = [ebs for one in inner(body, "block_device_mappings") for ebs in inner(one, "ebs")]
        return any(not is_true(one.get("encrypted")) for one in disks) or not disks
    return False


def _finding(path: str, line: int, message: str, also: tuple[tuple[str, int], ...] = ()) -> Finding:
    fix = "Set encrypted to true."
    return Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=line, what=message, fix=fix, also=also)
