"""Pairs: what encoder-decoders learn from, an input and its target, whose lengths count apart.

`sequence_length` (`--seq`) is the input's, `target_length` (`--target`) the target's. Where nobody says: text is as long as the
model is stated for, at most 2048 tokens, and its target a quarter of that (512 and 128 in the published runs of T5); sound is
30 s in 1500 places, and its target as long as the decoder can write. Tokens of a job count both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf.arrays import Array, column
from chipwise.perf.transformer import Transformers, pair_layer
from chipwise.workload.model.shape import EncoderDecoderShape, Shape

if TYPE_CHECKING:
    from chipwise.workload.model.registry import Model

LONGEST_INPUT = 2048.0
PLACES_OF_SOUND = 1500.0  # after the stem of Whisper, in 30 s
TARGET_SHARE = 0.25  # of the input
UNMEASURED = "Training on pairs is by formula alone, with a wide interval: no measured run is fitted in this form."


@dataclass(frozen=True, slots=True)
class Pairs:
    """Columns of lengths, with what was assumed of them."""

    shape: EncoderDecoderShape
    inputs: Array
    targets: Array
    assumed: tuple[str, ...]

    @property
    def tokens(self) -> Array:
        """Of a pair."""
        return np.asarray(self.inputs + self.targets)

    @property
    def model(self) -> Transformers:
        inputs, targets = np.broadcast_arrays(self.inputs, self.targets)
        return Transformers.of([pair_layer(self.shape, float(s), float(u)) for s, u in zip(inputs, targets, strict=True)])

    @property
    def longest(self) -> Array:
        """What a model's stated context is held against: of models of sound what they write."""
        return self.targets if self.shape.mels else np.maximum(self.inputs, self.targets)

    @property
    def notes(self) -> tuple[str, ...]:
        if len(self.tokens) > 1:
            return (*self.assumed, UNMEASURED)
        text = f"A pair is {self.inputs[0]:,.0f} {_places(self.shape)} of input and {self.targets[0]:,.0f} tokens of target"
        return (f"{text}: {self.tokens[0]:,.0f} tokens in all.", *self.assumed, UNMEASURED)


def pairs_of(model: Model, inputs: Array | float | None, targets: Array | float | None) -> Pairs | None:
    """None for models that learn from plain sequences, which have no target of their own."""
    shape: Shape = model.shape
    if not isinstance(shape, EncoderDecoderShape):
        if targets is not None:
            raise BadInput(
                f"target_length: {model.name} is no encoder-decoder, its sequences are their own targets.",
                remedy="Leave out target_length (--target), and give sequence_length.",
            )
        return None
    assumed = []
    if inputs is None:
        usual = PLACES_OF_SOUND if shape.mels else min(LONGEST_INPUT, float(model.context or 512))
        inputs = float(shape.encoder_positions) or usual if shape.mels else usual
        assumed.append(f"sequence_length is not given: {inputs:g} {_places(shape)} of input are assumed.")
    source = column(inputs)
    if targets is None:
        written = float(shape.decoder_positions or model.context or 448)
        targets = column(written) if shape.mels else np.maximum(np.round(TARGET_SHARE * source), 1.0)
        amount = f"{targets[0]:g} tokens" if len(targets) == 1 else "a quarter of the input"
        assumed.append(f"target_length is not given: {amount} of target are assumed.")
    return Pairs(shape, source, column(targets), tuple(assumed))


def _places(shape: EncoderDecoderShape) -> str:
    return "places (20 ms of sound each)" if shape.mels else "tokens"
