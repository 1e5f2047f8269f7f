"""Which kinds of chip can do which work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.catalog.chip import Chip
from chipwise.errors import BadInput
from chipwise.perf.part import SERVES_ONLY

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

# Kinds of chip that can do a kind of work; some are left out by name.
ABLE = {
    "train": ("gpu", "tpu", "neuron", "gaudi", "cpu"),
    "serve": ("gpu", "tpu", "neuron", "gaudi", "npu", "cpu", "edge"),
    "hpc": ("gpu", "cpu"),
    "render": ("gpu", "cpu"),
    "hybrid": ("gpu", "cpu"),
    "interactive": ("gpu", "tpu", "gaudi"),  # what PyTorch or JAX runs on line by line; Neuron compiles whole models first
}
_CANNOT = {
    "train": "trains no models",
    "serve": "runs no models",
    "hpc": "does no such numerical work",
    "render": "renders no pictures",
    "hybrid": "does no work between quantum circuits",
    "interactive": "is not for notebooks",
}
_FOR_EXAMPLE = ("H100-SXM", "L4", "MI300X", "TPU-v5e", "Trainium2", "Xeon-Sapphire-Rapids", "Jetson-Orin-Nano-Super")


def able_chip(known: Known, chip_name: str, work: str) -> Chip:
    """The chip of this name, if it can do the work; otherwise BadInput that tells which can."""
    chip = known.names.one_chip(chip_name).chip
    kinds = ABLE[work]
    if chip.kind.value in kinds and not (work in ("train", "hpc") and chip.name.startswith(SERVES_ONLY)):
        return chip
    fitting = [name for name in _FOR_EXAMPLE if name in known.catalog.chips and known.catalog.chips[name].kind.value in kinds]
    raise BadInput(
        f"{chip.name} ({chip.kind.value}) {_CANNOT[work]}.",
        remedy=f"Chips of the kind {', '.join(kinds)} can, such as {', '.join(fitting[:4])}; `chipwise chips` lists them.",
    )
