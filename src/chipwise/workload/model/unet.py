"""The convolutional halves of latent diffusion: the UNet that removes noise and the autoencoder (VAE) around it.

Rombach et al. 2021 (arXiv:2112.10752), Podell et al. 2023 (arXiv:2307.01952) for SDXL. A network is walked once, piece
by piece; a piece knows its parameters and what it costs at its side of the picture. Symbols: C = channels of a level,
t = width of the time embedding, x = width of the text, n = places (side^2), m = text tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from chipwise.workload.model.layers import convolution, linear

TIME_FEATURES_PER_CHANNEL = 4  # the time embedding is four times as wide as the first level
SHRINK = 8  # three halvings in the autoencoder: 512 pixels become 64 places


@dataclass(frozen=True, slots=True)
class Piece:
    parameters: int
    flop: float


@dataclass(frozen=True, slots=True)
class UNetShape:
    """parameters = time (and added) embedding + in + down levels + middle + up levels + out, residual blocks being

    2*C_in + 9*C_in*C + C + t*C + C + 2*C + 9*C*C + C (+ C_in*C + C where widths differ), and each of `depths` text
    transformers 4*C^2 + C (self) + 2*C^2 + 2*x*C + C (text) + 12*C^2 + 9*C (gated feed-forward) + 6*C (norms).
    """

    kind: ClassVar[str] = "unet"

    widths: tuple[int, ...]  # channels of each level
    depths: tuple[int, ...]  # transformers in each attention block of a level; 0 for none
    middle_depth: int
    text_width: int
    latent_channels: int = 4
    blocks: int = 2  # residual blocks of a level on the way down; one more on the way up
    added_width: int = 0  # SDXL: pooled text and picture sizes beside the time

    @property
    def parameters(self) -> int:
        return sum(piece.parameters for piece in self.pieces(64, 77))

    @property
    def active_parameters(self) -> int:
        return self.parameters

    def forward_flop(self, image_size: int, text_tokens: int = 77) -> float:
        """One step of one picture (guidance runs it twice); norms, activations and sums are left out."""
        return sum(piece.flop for piece in self.pieces(max(1, image_size // SHRINK), text_tokens))

    def pieces(self, side: int, text_tokens: int) -> Iterator[Piece]:
        first, last = self.widths[0], self.widths[-1]
        time = TIME_FEATURES_PER_CHANNEL * first
        yield _dense(first, time)
        yield _dense(time, time)
        if self.added_width:
            yield _dense(self.added_width, time)
            yield _dense(time, time)
        yield _convolve(self.latent_channels, first, 3, side)
        skips, inputs = [first], first
        for level, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            for _ in range(self.blocks):
                yield from _residual(inputs, width, side, time)
                yield from self._attend(width, depth, side, text_tokens)
                inputs = width
                skips.append(width)
            if level < len(self.widths) - 1:
                side = (side + 1) // 2
                yield _convolve(width, width, 3, side)
                skips.append(width)
        yield from _residual(last, last, side, time)
        yield from self._attend(last, self.middle_depth, side, text_tokens)
        yield from _residual(last, last, side, time)
        for level in reversed(range(len(self.widths))):
            width = self.widths[level]
            for _ in range(self.blocks + 1):
                yield from _residual(inputs + skips.pop(), width, side, time)
                yield from self._attend(width, self.depths[level], side, text_tokens)
                inputs = width
            if level > 0:
                side *= 2
                yield _convolve(width, width, 3, side)
        yield Piece(2 * first, 0.0)
        yield _convolve(first, self.latent_channels, 3, side)

    def _attend(self, width: int, depth: int, side: int, text_tokens: int) -> Iterator[Piece]:
        """A group norm, a projection in, `depth` transformers that see the picture and the text, a projection out."""
        if not depth:
            return
        places = side * side
        weights = 4 * width * width + 2 * width * width + 12 * width * width
        text = 2 * self.text_width * width
        small = 2 * width + 9 * width + 6 * width
        scores = 2 * width * places * (places + text_tokens)
        yield Piece(2 * width + 2 * linear(width, width), 2.0 * 2 * width * width * places)
        yield Piece(depth * (weights + text + small), 2.0 * depth * (weights * places + text * text_tokens + scores))


@dataclass(frozen=True, slots=True)
class VaeShape:
    """An autoencoder with a normal latent: levels as in the UNet without time and text, one attention in each middle."""

    kind: ClassVar[str] = "vae"

    latent_channels: int = 4
    widths: tuple[int, ...] = (128, 256, 512, 512)
    blocks: int = 2
    channels: int = 3
    latent_projections: bool = True  # a 1x1 convolution on either side of the latent (not in SD3 and FLUX)

    @property
    def parameters(self) -> int:
        z = self.latent_channels
        joints = convolution(2 * z, 2 * z, 1) + convolution(z, z, 1) if self.latent_projections else 0
        return joints + sum(piece.parameters for half in (self._encoder(512), self._decoder(64)) for piece in half)

    @property
    def active_parameters(self) -> int:
        return self.parameters

    def decode_flop(self, image_size: int) -> float:
        return sum(piece.flop for piece in self._decoder(max(1, image_size // SHRINK)))

    def _encoder(self, side: int) -> Iterator[Piece]:
        inputs = self.widths[0]
        yield _convolve(self.channels, inputs, 3, side)
        for level, width in enumerate(self.widths):
            for _ in range(self.blocks):
                yield from _residual(inputs, width, side)
                inputs = width
            if level < len(self.widths) - 1:
                side = (side + 1) // 2
                yield _convolve(width, width, 3, side)
        yield from self._middle(side)
        yield _convolve(inputs, 2 * self.latent_channels, 3, side)

    def _decoder(self, side: int) -> Iterator[Piece]:
        inputs = self.widths[-1]
        yield _convolve(self.latent_channels, inputs, 3, side)
        yield from self._middle(side)
        for level in reversed(range(len(self.widths))):
            width = self.widths[level]
            for _ in range(self.blocks + 1):
                yield from _residual(inputs, width, side)
                inputs = width
            if level > 0:
                side *= 2
                yield _convolve(width, width, 3, side)
        yield _convolve(inputs, self.channels, 3, side)
        # the two final norms sit before each half's last convolution
        yield Piece(2 * self.widths[-1] + 2 * self.widths[0], 0.0)

    def _middle(self, side: int) -> Iterator[Piece]:
        width, places = self.widths[-1], side * side
        yield from _residual(width, width, side)
        yield Piece(2 * width + 4 * linear(width, width), 2.0 * (4 * width * width * places + 2 * width * places * places))
        yield from _residual(width, width, side)


def _dense(inputs: int, outputs: int) -> Piece:
    return Piece(linear(inputs, outputs), 2.0 * inputs * outputs)


def _convolve(inputs: int, outputs: int, kernel: int, side: int) -> Piece:
    weights = convolution(inputs, outputs, kernel, bias=False)
    return Piece(weights + outputs, 2.0 * weights * side * side)


def _residual(inputs: int, outputs: int, side: int, time: int = 0) -> Iterator[Piece]:
    yield Piece(2 * inputs + 2 * outputs, 0.0)
    yield _convolve(inputs, outputs, 3, side)
    yield _convolve(outputs, outputs, 3, side)
    if time:
        yield _dense(time, outputs)
    if inputs != outputs:
        yield _convolve(inputs, outputs, 1, side)
