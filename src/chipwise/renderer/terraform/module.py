"""What every module has, whichever cloud: its files, the variables that no plan can know, and names that clouds take."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, document, variable
from chipwise.renderer.yaml_text import Noted

TERRAFORM = ">= 1.6.0"
_TITLES = {
    "versions.tf": "Versions that these files were written for. Credentials come from your environment.",
    "variables.tf": "What the plan cannot know. Those without a default must be given.",
    "network.tf": "Who may reach the machines: nobody who is not named here.",
    "access.tf": "What the machines may do: no more than their script does.",
    "storage.tf": "What outlives a machine.",
    "outputs.tf": "",
}


def files(deployment: Deployment, about: str, parts: dict[str, Sequence[Block]], folder: str = "") -> list[File]:
    """One file for each part that has something to say; the plan's words stand in main.tf."""
    written = []
    for name, blocks in parts.items():
        if blocks:
            title = heading(deployment, about) if name == "main.tf" else _TITLES.get(name, "")
            written.append(File(f"{folder}{name}", document(blocks, title)))
    return written


def versions(source: str, version: str, provider: Block, reason: str = "") -> list[Block]:
    name = source.partition("/")[2]
    wanted = Block(
        "terraform",
        (),
        {"required_version": TERRAFORM, "required_providers": Nested({name: {"source": source, "version": version}})},
        reason,
    )
    return [wanted, provider]


def region_variable(deployment: Deployment, name: str = "region") -> Block:
    regions = list(dict.fromkeys([deployment.node.region, *deployment.regions]))
    about = "Where the machines are: the plan's choice."
    if len(regions) > 1:
        about = (
            f"Where the machines are. The plan is in {len(regions)} regions: apply once for each, each in its own workspace."
        )
    return variable(name, "string", about, deployment.node.region)


def image_variable(deployment: Deployment) -> Block:
    software = deployment.software
    if software.built:
        return variable(
            "image",
            "string",
            "Container image with its registry. Build it from the Dockerfile of `chipwise render --to dockerfile` and push it.",
        )
    about = "Container image that the machines run."
    if software.image.endswith(":latest"):
        about += " Pin it by digest after the first pull."
    return variable("image", "string", about, software.image)


def settings(values: dict[str, Value]) -> dict[str, Value]:
    """Locals: the script, and before it what only Terraform knows, each value quoted for the shell."""
    quote = "replace(value, \"'\", \"'\\\\''\")"
    joined = Raw(
        'join("\\n", concat(\n'
        '  ["#!/bin/bash"],\n'
        f"  [for name, value in local.settings : \"${{name}}='${{{quote}}}'\"],\n"
        '  [file("${path.module}/start.sh")],\n'
        "))"
    )
    return {"settings": Noted(dict(values), "What start.sh reads."), "start": joined}


def label_key(text: str) -> str:
    """Small letters, digits, `-` and `_`, with a letter first: the key of a label of Google Cloud."""
    name = label_text(text)
    return name if not name or name[0].isalpha() else label_text(f"x-{name}")


def label_text(text: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower())[:63].strip("-_")
