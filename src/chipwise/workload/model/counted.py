"""Networks that are known by what they count: parameters, multiply-accumulates, values that layers give, kind of layers.

For pictures that grow by `a` in area, products and activations grow by `a`; attention over all places (ViT, DiT) by `a` more.
In a transformer of width d and L layers over n tokens the counts say the shape: the table's activations are those of all
products, A = L n d (10 + n / 64) with heads of 64, and P = 12 d^2 L, so d L = A / (n (10 + n / 64)).
Limits: one network is one mean layer; layers of the same network differ, which the fitted factors of its kind carry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

_HEAD = 64.0  # values of an attention head
_OUTPUTS = 10.0  # values per token and width that a layer's products give: q, k, v, sum, projection, four and one of the MLP


class Layers(StrEnum):
    """What a network is mostly made of."""

    CNN = "cnn"
    GROUPED = "grouped-cnn"  # convolutions in many groups of few channels
    DEPTHWISE = "depthwise-cnn"
    VIT = "vit"
    SWIN = "swin"  # attention within windows
    HYBRID = "hybrid"  # convolutions and attention
    MLP = "mlp"
    DIT = "dit"  # a denoiser: one pass per step

    @property
    def attends(self) -> bool:
        return self in (Layers.VIT, Layers.DIT)


# Logarithms of the millions of activations over those of billions of multiply-accumulates and millions of parameters: least
# squares over the networks of each kind whose activations are printed, at 224 pixels; a third of them lie over 35% off.
_ACTIVATIONS = {
    Layers.CNN: (1.85, 0.854, -0.215),
    Layers.GROUPED: (1.85, 0.854, -0.215),
    Layers.DEPTHWISE: (2.006, 0.537, 0.112),
    Layers.VIT: (2.595, 1.145, -0.532),
    Layers.SWIN: (3.673, 1.209, -0.703),
    Layers.HYBRID: (2.893, 1.077, -0.451),
    Layers.MLP: (1.55, 0.795, -0.144),
    Layers.DIT: (2.595, 1.145, -0.532),
}
_USUAL_SIDE = 224.0


def usual_activations(layers: Layers, parameters: int, macs: int, image_size: int) -> int:
    """Where nobody says: as networks of that kind with such counts have."""
    grown = ((image_size or _USUAL_SIDE) / _USUAL_SIDE) ** 2
    constant, by_macs, by_parameters = _ACTIVATIONS[layers]
    logarithm = constant + by_macs * math.log(macs / 1e9 / grown) + by_parameters * math.log(parameters / 1e6)
    return max(round(1e6 * grown * math.exp(logarithm)), 1)


@dataclass(frozen=True, slots=True)
class CountedShape:
    """One pass over one input of `image_size` pixels a side, `seconds` of sound or `sequence` tokens."""

    kind: ClassVar[str] = "network"

    parameters: int
    macs: int  # multiply-accumulates
    activations: int  # values that convolutions and matrix products give
    layers: Layers
    products: int  # convolutions and matrix products, one after the other
    image_size: int = 0  # 0: no picture
    seconds: int = 0  # of a clip; 0: no sound
    sequence: int = 0  # tokens; 0: no text
    tables: int = 0  # of the parameters: those of which a sample takes a few rows

    @property
    def multiplied(self) -> int:
        """Parameters that every sample is multiplied with."""
        return self.parameters - self.tables

    @property
    def reads_text(self) -> bool:
        return self.sequence > 0 and not self.image_size

    @property
    def active_parameters(self) -> int:
        return self.parameters

    @property
    def size(self) -> float:
        """What the counts are for, in the unit that is asked for."""
        return float(self.image_size or self.seconds or self.sequence)

    def grown(self, size: float) -> float:
        """How much larger an input of this size is."""
        if not size or not self.size:
            return 1.0
        return (size / self.size) ** 2 if self.image_size else size / self.size

    @property
    def tokens(self) -> float:
        """That attend to each other, at the stated size: n of M = P n + 2 n^2 d L, with d L as above."""
        if not self.layers.attends:
            return 0.0
        square, slope = self.multiplied / _HEAD, _OUTPUTS * self.multiplied + 2.0 * self.activations - self.macs / _HEAD
        return max((math.sqrt(slope**2 + 4.0 * square * _OUTPUTS * self.macs) - slope) / (2.0 * square), 1.0)

    @property
    def width_layers(self) -> float:
        """d L of a transformer."""
        return self.activations / (self.tokens * (_OUTPUTS + self.tokens / _HEAD)) if self.layers.attends else 0.0

    @property
    def score_macs(self) -> float:
        """Of attention beyond its projections, at the stated size; they are within `macs`."""
        return min(2.0 * self.tokens**2 * self.width_layers, 0.7 * self.macs)

    def product_macs(self, size: float = 0.0) -> float:
        return (self.macs - self.score_macs) * self.grown(size)

    def forward_flop(self, size: float = 0.0) -> float:
        return 2.0 * (self.product_macs(size) + self.score_macs * self.grown(size) ** 2)
