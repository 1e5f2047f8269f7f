"""The first version of the metadata service hands a machine's credentials to any program that is tricked into asking."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Sources, line_of, listed, look
from chipwise.auditor.terraform import inner, text_of

ABOUT = "machines answer metadata requests with tokens only (IMDSv2)"
_RULE = "metadata-v1"


def check(sources: Sources) -> Iterator[Finding]:
    for block in sources.blocks:
        if block.type == "resource" and block.labels[:1] in (("aws_instance",), ("aws_launch_template",)):
            options = inner(block.body, "metadata_options")
            if inner(block.body, "launch_template"):  # the template is looked at where it stands
                continue
            if not any(text_of(one.get("http_tokens")) == "required" for one in options):
                yield _finding(
                    block.path, block.line, f"{block.title} allows IMDSv1", 'Add metadata_options { http_tokens = "required" }.'
                )
    for manifest in sources.manifests:
        if manifest.kind == "EC2NodeClass" and look(manifest.body, "spec", "metadataOptions", "httpTokens") not in (
            None,
            "required",
        ):
            line = line_of(manifest.body, "spec", "metadataOptions", "httpTokens")
            yield _finding(manifest.path, line, f"{manifest.title} allows IMDSv1", "Set httpTokens: required.")
        if manifest.kind == "ClusterConfig":
            for group in listed(manifest.body.get("nodeGroups")):
                if look(group, "disableIMDSv1") is False:
                    yield _finding(
                        manifest.path,
                        line_of(group, "disableIMDSv1"),
                        f"node group {look(group, 'name')} allows IMDSv1",
                        "Set disableIMDSv1: true.",
                    )


def _finding(path: str, line: int, message: str, fix: str) -> Finding:
    return Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)
