"""Residual convolutional networks, described by their stages.

He et al. 2015 (arXiv:1512.03385) in the form that is in use ("v1.5": the 3x3 convolution of a bottleneck strides).
Symbols: k = kernel side, s = stride, H = side of the picture at that layer. Convolutions carry no bias; each is
followed by a batch norm with two numbers per channel (running statistics are not parameters).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from chipwise.workload.model.layers import convolution, linear


class Block(StrEnum):
    BASIC = "basic"  # two 3x3 convolutions
    BOTTLENECK = "bottleneck"  # 1x1 down, 3x3, 1x1 up to four times the width

    @property
    def expansion(self) -> int:
        return 4 if self is Block.BOTTLENECK else 1


@dataclass(frozen=True, slots=True)
class Convolution:
    """One layer: k^2 * in / groups * out weights, used once for each of out_side^2 places."""

    inputs: int
    outputs: int
    kernel: int
    out_side: int
    groups: int = 1

    @property
    def parameters(self) -> int:
        return convolution(self.inputs, self.outputs, self.kernel, bias=False, groups=self.groups) + 2 * self.outputs

    @property
    def flop(self) -> float:
        weights = convolution(self.inputs, self.outputs, self.kernel, bias=False, groups=self.groups)
        return 2.0 * weights * self.out_side * self.out_side


@dataclass(frozen=True, slots=True)
class ConvShape:
    """A 7x7 stem of stride 2, a pool of stride 2, stages of residual blocks, and a linear head on the pooled features.

    Stage i has blocks[i] blocks of widths[i]; all but the first halve the side. `groups` and `group_width` widen the
    middle of a bottleneck as in ResNeXt and Wide ResNet: width * group_width / 64 * groups.
    """

    kind: ClassVar[str] = "convnet"

    block: Block
    blocks: tuple[int, ...]
    widths: tuple[int, ...] = (64, 128, 256, 512)
    stem: int = 64
    channels: int = 3
    classes: int = 1000
    image_size: int = 224
    groups: int = 1
    group_width: int = 64

    @property
    def parameters(self) -> int:
        return sum(layer.parameters for layer in self.convolutions(self.image_size)) + linear(self._features, self.classes)

    @property
    def active_parameters(self) -> int:
        return self.parameters

    def forward_flop(self, image_size: int | None = None) -> float:
        """2 FLOP per multiplication, convolutions and head; norms, pools and sums are left out (about 1%)."""
        convolved = sum(layer.flop for layer in self.convolutions(image_size or self.image_size))
        return convolved + 2.0 * self._features * self.classes

    def convolutions(self, image_size: int) -> Iterator[Convolution]:
        """Every convolution in order, for a square picture of `image_size`."""
        side = _halve(image_size)
        yield Convolution(self.channels, self.stem, 7, side)
        side, inputs = _halve(side), self.stem
        for stage, (count, width) in enumerate(zip(self.blocks, self.widths, strict=True)):
            for index in range(count):
                stride = 2 if stage > 0 and index == 0 else 1
                yield from self._block(inputs, width, side, stride)
                inputs, side = width * self.block.expansion, _halve(side) if stride == 2 else side

    def _block(self, inputs: int, width: int, side: int, stride: int) -> Iterator[Convolution]:
        after, outputs = (_halve(side) if stride == 2 else side), width * self.block.expansion
        if self.block is Block.BASIC:
            yield Convolution(inputs, width, 3, after)
            yield Convolution(width, width, 3, after)
        else:
            middle = width * self.group_width // 64 * self.groups
            yield Convolution(inputs, middle, 1, side)
            yield Convolution(inputs=middle, outputs=middle, kernel=3, out_side=after, groups=self.groups)
            yield Convolution(middle, outputs, 1, after)
        if stride != 1 or inputs != outputs:
            yield Convolution(inputs, outputs, 1, after)

    @property
    def _features(self) -> int:
        return self.widths[-1] * self.block.expansion


def _halve(side: int) -> int:
    return (side + 1) // 2
