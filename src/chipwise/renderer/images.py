"""Which image of the catalog's table `images` runs something on a machine, and how its tag is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chipwise.catalog.tables import ImageRow
from chipwise.renderer.deployment import Node

UNVERIFIED = {
    "release": "the tag follows a release that exists",
    "naming": "the tag follows the naming of earlier ones",
    "recalled": "the tag is remembered and was not looked up",
}
_DEVICES = {"neuron": "neuron", "tpu": "tpu", "cpu": "cpu", "fpga": "cpu"}


def device_of(node: Node) -> str:
    """What drives the machine: the column `device` of the image table."""
    if not node.accelerated:
        return "cpu"
    if node.kind == "gpu":
        return "amd" if node.vendor == "AMD" else "nvidia"
    return _DEVICES.get(node.kind, "cpu")


def image_row(rows: Sequence[ImageRow], purpose: str, node: Node) -> ImageRow | None:
    """The first row for the device, the host's processor and the chip's capability."""
    device = device_of(node)
    for row in rows:
        if row.purpose != purpose or row.device != device or node.arch not in row.arch.split():
            continue
        if row.chips and node.chip not in row.chips.split():
            continue
        capability = node.capability
        low, high = row.capability_low or 0.0, row.capability_high or math.inf
        if capability is None or low <= capability <= high + 0.05:
            return row
    return None


def images_for(rows: Sequence[ImageRow], node: Node) -> dict[str, str]:
    """Every image that runs on a node, by what it is for: targets that bring an engine of their own take it from here."""
    image_rows = {purpose: image_row(rows, purpose, node) for purpose in dict.fromkeys(row.purpose for row in rows)}
    return {purpose: f"{row.image}:{row.tag}" for purpose, row in image_rows.items() if row is not None}


def unverified_for(rows: Sequence[ImageRow], node: Node) -> dict[str, str]:
    """Of those, by image: how the tag is known, where nobody saw it published."""
    image_rows = [image_row(rows, purpose, node) for purpose in dict.fromkeys(row.purpose for row in rows)]
    return {
        f"{row.image}:{row.tag}": UNVERIFIED[row.known] for row in image_rows if row is not None and row.known in UNVERIFIED
    }
