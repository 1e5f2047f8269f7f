"""The first version of the metadata service hands a machine's credentials to any program that is tricked into asking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chipwise.auditor.cloudformation import Resource, resources_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Located, Sources, line_of, listed, look, walk
from chipwise.auditor.terraform import inner, line_inside, machine_groups, text_of

ABOUT = "machines answer metadata requests with tokens only (IMDSv2)"
_RULE = "metadata-v1"


def check(sources: Sources) -> Iterator[Finding]:
    for block in sources.blocks:
        if block.type == "resource" and block.labels[:1] in (("aws_instance",), ("aws_launch_template",)):
            options = inner(block.body, "metadata_options")
            if inner(block.body, "launch_template"):  # the template is looked at where it stands
                continue
            if not any(text_of(one.get("http_tokens")) == "required" for one in options):
                fix = 'Add metadata_options { http_tokens = "required" }.'
                also = ((block.path, line_inside(sources, block, "http_tokens")),)
                yield _finding(block.path, block.line, f"{block.title} allows IMDSv1", fix, also)
    for resource in resources_of(sources, "AWS::EC2::LaunchTemplate", "AWS::EC2::Instance"):
        yield from _resource(resource)
    for block in (one for one in sources.blocks if one.type == "module"):
        for name, group in machine_groups(block):
            group_options = group.get("metadata_options")
            stated = text_of(group_options.get("http_tokens")) if isinstance(group_options, Mapping) else ""
            if stated and stated != "required":
                line = line_inside(sources, block, "http_tokens", name)
                yield _finding(block.path, line, f"{block.title}: {name} allows IMDSv1", 'Set http_tokens = "required".')
    for block in sources.blocks:
        for node in inner(block.body, "node_config") if block.type == "resource" else ():
            for config in inner(node, "workload_metadata_config"):
                if text_of(config.get("mode")) in ("GCE_METADATA", "EXPOSE"):
                    line = line_inside(sources, block, "mode")
                    message = f"{block.title} shows pods the credentials of their machine"
                    yield _finding(block.path, line, message, 'Set mode = "GKE_METADATA".')
    for manifest in sources.manifests:
        if manifest.kind == "EC2NodeClass" and look(manifest.body, "spec", "metadataOptions", "httpTokens") not in (
            None,
            "required",
        ):
            line = line_of(manifest.body, "spec", "metadataOptions", "httpTokens")
            yield _finding(manifest.path, line, f"{manifest.title} allows IMDSv1", "Set httpTokens: required.")
        if manifest.kind == "ClusterConfig":
            for group in [*listed(manifest.body.get("managedNodeGroups")), *listed(manifest.body.get("nodeGroups"))]:
                if look(group, "disableIMDSv1") is False:
                    yield _finding(
                        manifest.path,
                        line_of(group, "disableIMDSv1"),
                        f"node group {look(group, 'name')} allows IMDSv1",
                        "Set disableIMDSv1: true.",
                    )


def _resource(resource: Resource) -> Iterator[Finding]:
    """Of CloudFormation: what it says; an instance by itself says nothing of it."""
    for mapping in walk(resource.properties):
        options = mapping.get("MetadataOptions")
        if isinstance(options, Located) and options.get("HttpTokens") != "required":
            line = line_of(options, "HttpTokens")
            yield _finding(resource.path, line, f"{resource.name} allows IMDSv1", "Set HttpTokens: required.")


def _finding(path: str, line: int, message: str, fix: str, also: tuple[tuple[str, int], ...] = ()) -> Finding:
    return Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=line, what=message, fix=fix, also=also)
