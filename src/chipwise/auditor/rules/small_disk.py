"""Images of accelerators take tens of GB: on the disk that a machine has by default, nothing fits beside the system."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import accelerated, accelerated_google, pools
from chipwise.auditor.source import Sources, line_of, listed, look
from chipwise.auditor.terraform import inner, text_of

ABOUT = "machines with accelerators have room for their images"
_ENOUGH_GB = 50


def check(sources: Sources) -> Iterator[Finding]:
    wanted = {str(look(spec, "nodeClassRef", "name")) for _, spec in pools(sources)}
    for manifest in sources.manifests:
        plain = manifest.kind == "EC2NodeClass" and look(manifest.body, "spec", "amiFamily") != "Custom"
        if plain and manifest.name in wanted and not listed(look(manifest.body, "spec", "blockDeviceMappings")):
            line = line_of(manifest.body, "spec")
            yield _finding(manifest.path, line, f"{manifest.title} leaves machines with accelerators a disk of 20 GiB")
    for block in sources.blocks:
        kind = block.labels[0] if block.labels and block.type == "resource" else ""
        if kind == "aws_instance" and accelerated(text_of(block.body.get("instance_type"))):
            disks = inner(block.body, "root_block_device")
            if not inner(block.body, "launch_template") and not any(_large(one.get("volume_size")) for one in disks):
                yield _finding(block.path, block.line, f"{block.title} leaves a machine with accelerators a small disk")
        if kind == "google_compute_instance" and accelerated_google(text_of(block.body.get("machine_type"))):
            disks = [one for disk in inner(block.body, "boot_disk") for one in inner(disk, "initialize_params")]
            if not any(_large(one.get("size")) for one in disks):
                yield _finding(block.path, block.line, f"{block.title} leaves a machine with accelerators a small disk")


def _large(size: object) -> bool:
    """A number that is enough; what only Terraform knows is taken for it."""
    text = text_of(size)
    return bool(text) and (not text.isdecimal() or len(text) > 9 or int(text) >= _ENOUGH_GB)


def _finding(path: str, line: int, message: str) -> Finding:
    return Finding(
        rule="small-disk", weight=Weight.MEDIUM, path=path, line=line, what=message, fix="Give the root disk 100 GB or more."
    )
