"""What SkyPilot calls a chip."""

from __future__ import annotations

from chipwise.renderer.deployment import Node

# SkyPilot's names, where they are not ours; a chip that is not here has its name in both.
CHIP_NAMES = {
    "V100-16": "V100",
    "V100-32": "V100-32GB",
    "V100-PCIe": "V100",
    "P100-SXM2": "P100",
    "A100-40": "A100",
    "A100-40-PCIe": "A100",
    "A100-80": "A100-80GB",
    "A100-80-PCIe": "A100-80GB",
    "H100-SXM": "H100",
    "H100-PCIe": "H100",
    "H100-NVL": "H100NVL",
    "H200-NVL": "H200NVL",
    "H200-SXM": "H200",
    "RTX-3090": "RTX3090",
    "RTX-4090": "RTX4090",
    "RTX-5090": "RTX5090",
    "RTX-A4000": "RTXA4000",
    "RTX-A5000": "RTXA5000",
    "RTX-A6000": "RTXA6000",
    "RTX-4000-Ada": "RTX4000-Ada",
    "RTX-6000-Ada": "RTX6000-Ada",
    "Quadro-RTX-6000": "RTX6000",
    "RTX-PRO-6000-SE": "RTXPRO6000",
    "RTX-PRO-6000-WS": "RTXPRO6000",
    "Radeon-Pro-V520": "Radeon Pro V520",
    "Inferentia1": "Inferentia",
    "Trainium1": "Trainium",
}

# Slices of TPUs: the first part of their names, and what the number after it counts in one chip: chips, or cores.
SLICES = {"TPU-v4": ("tpu-v4", 2), "TPU-v5e": ("tpu-v5litepod", 1), "TPU-v5p": ("tpu-v5p", 2), "TPU-v6e": ("tpu-v6e", 1)}


def accelerator(node: Node, count: int) -> str | None:
    """As SkyPilot names it; None: the machine has none that it knows, and is asked for by its type."""
    if not node.accelerated or node.kind in ("fpga", "gaudi", "npu"):
        return None
    if node.kind == "tpu":
        name = node.machine.lower()
        if node.chip in SLICES:  # GKE's types of machines are slices of one host there
            generation, counted = SLICES[node.chip]
            name = f"{generation}-{node.chips * counted}"
        return f"{name}:1" if name.startswith("tpu-") else None
    return f"{CHIP_NAMES.get(node.chip, node.chip)}:{count if node.share == 1 else f'{node.share:g}'}"
