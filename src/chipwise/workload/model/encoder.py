"""Transformers that read: encoders (BERT), encoder-decoders (T5, BART, Whisper), image encoders (ViT), pairs (CLIP).

Symbols: h = hidden, V = vocab, P = learned positions, p = patch side, c = image channels. All tokens of an input see
each other, so attention grows with the square of the length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chipwise.workload.model.layers import Stack, linear


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """parameters = (V + P + types)*h + stack + [embedding norm] + [pooler h*h + h] + [projection h*projection].

    Devlin et al. 2018 (arXiv:1810.04805) for BERT; text towers of CLIP and the encoder half of T5 have this shape too.
    """

    kind: ClassVar[str] = "encoder"

    stack: Stack
    vocab: int
    positions: int = 0
    token_types: int = 0
    embedding_norm: bool = False
    pooler: bool = False
    projection: int = 0  # width of a final projection without bias; 0 for none

    @property
    def layers(self) -> int:
        return self.stack.layers

    @property
    def hidden(self) -> int:
        return self.stack.hidden

    @property
    def parameters(self) -> int:
        tables = (self.vocab + self.positions + self.token_types) * self.hidden
        norm = self.stack.norm.parameters(self.hidden) if self.embedding_norm else 0
        pooler = linear(self.hidden, self.hidden) if self.pooler else 0
        return tables + norm + self.stack.parameters + pooler + self.hidden * self.projection

    @property
    def active_parameters(self) -> int:
        return self.parameters

    def kv_bytes_per_token(self, bytes_per_value: float) -> float:
        """An encoder reads everything at once and keeps nothing between calls."""
        return 0.0 * bytes_per_value

    def matrix_flop_per_token(self) -> float:
        """2 FLOP per matrix element of the layers; pooler and projection see one token in the whole input."""
        return 2.0 * self.stack.weights

    def forward_flop(self, tokens: int) -> float:
        once = (self.hidden if self.pooler else 0) + self.projection
        return tokens * self.matrix_flop_per_token() + self.stack.score_flop(tokens) + 2.0 * self.hidden * once


@dataclass(frozen=True, slots=True)
class EncoderDecoderShape:
    """parameters = V*h (twice unless tied) + positions of both + encoder + decoder + [norms] + [convolution stem].

    Raffel et al. 2019 (arXiv:1910.10683) for T5; Radford et al. 2022 (arXiv:2212.04356) for Whisper, whose stem is two
    convolutions of width 3 over `mels` channels, the second halving the number of frames.
    """

    kind: ClassVar[str] = "encoder-decoder"

    encoder: Stack
    decoder: Stack
    vocab: int
    tied_embeddings: bool = True
    encoder_positions: int = 0
    decoder_positions: int = 0
    embedding_norm: bool = False  # one for each half (BART)
    mels: int = 0  # audio channels of the stem; 0 for text

    @property
    def layers(self) -> int:
        return self.encoder.layers + self.decoder.layers

    @property
    def hidden(self) -> int:
        return self.encoder.hidden

    @property
    def parameters(self) -> int:
        tables = self.vocab * (1 if self.tied_embeddings else 2) + self.encoder_positions + self.decoder_positions
        norms = 2 * self.encoder.norm.parameters(self.hidden) if self.embedding_norm else 0
        stem = linear(3 * self.mels, self.hidden) + linear(3 * self.hidden, self.hidden) if self.mels else 0
        return tables * self.hidden + norms + stem + self.encoder.parameters + self.decoder.parameters

    @property
    def active_parameters(self) -> int:
        return self.parameters

    def kv_bytes_per_token(self, bytes_per_value: float) -> float:
        """Per generated token: the decoder's own keys and values."""
        return self.decoder.layers * self.decoder.attention.cached_values * bytes_per_value

    def encoder_flop_per_token(self) -> float:
        """2 FLOP per matrix element an input token meets, the decoder's keys and values of it and the stem included."""
        stem = 2 * 3 * self.mels * self.hidden + 3 * self.hidden * self.hidden if self.mels else 0
        return 2.0 * (self.encoder.weights + self.decoder.cross_weights + stem)

    def matrix_flop_per_token(self) -> float:
        """Per generated token: the decoder and the head."""
        return 2.0 * (self.decoder.weights + self.vocab * self.hidden)

    def forward_flop(self, tokens: int, generated: int) -> float:
        """An input of `tokens` (for Whisper: 1500 per 30 s of sound) and `generated` tokens of output."""
        crossed = 2.0 * self.decoder.layers * self.decoder.attention.score_width * tokens * generated
        scores = self.encoder.score_flop(tokens) + crossed + self.decoder.score_flop(generated) / 2
        return tokens * self.encoder_flop_per_token() + generated * self.matrix_flop_per_token() + scores


@dataclass(frozen=True, slots=True)
class VisionShape:
    """parameters = c*p^2*h (+ h) + (tokens + class token)*h + stack + [norm before] + [classes head] + [projection].

    Dosovitskiy et al. 2020 (arXiv:2010.11929); CLIP's image tower has no patch bias, a norm before the layers and a
    projection in place of the class head.
    """

    kind: ClassVar[str] = "vision"

    stack: Stack
    image_size: int
    patch: int
    channels: int = 3
    class_token: bool = True
    patch_bias: bool = True
    norm_before: bool = False
    classes: int = 0
    projection: int = 0

    @property
    def layers(self) -> int:
        return self.stack.layers

    @property
    def hidden(self) -> int:
        return self.stack.hidden

    def tokens(self, image_size: int | None = None) -> int:
        side = (image_size or self.image_size) // self.patch
        return side * side + (1 if self.class_token else 0)

    @property
    def parameters(self) -> int:
        patches = linear(self.channels * self.patch * self.patch, self.hidden, self.patch_bias)
        tables = (self.tokens() + (1 if self.class_token else 0)) * self.hidden
        before = self.stack.norm.parameters(self.hidden) if self.norm_before else 0
        head = linear(self.hidden, self.classes) if self.classes else 0
        return patches + tables + before + self.stack.parameters + head + self.hidden * self.projection

    @property
    def active_parameters(self) -> int:
        return self.parameters

    def kv_bytes_per_token(self, bytes_per_value: float) -> float:
        """An encoder reads everything at once and keeps nothing between calls."""
        return 0.0 * bytes_per_value

    def matrix_flop_per_token(self) -> float:
        return 2.0 * (self.stack.weights + self.channels * self.patch * self.patch * self.hidden)

    def forward_flop(self, image_size: int | None = None) -> float:
        """One image; another size than the model's own means more or fewer patches."""
        tokens = self.tokens(image_size)
        ends = 2.0 * self.hidden * (self.classes + self.projection)
        return tokens * self.matrix_flop_per_token() + self.stack.score_flop(tokens) + ends


@dataclass(frozen=True, slots=True)
class TwoTowerShape:
    """Two encoders trained against each other (CLIP, Radford et al. 2021, arXiv:2103.00020): their sum and one scale."""

    kind: ClassVar[str] = "two-tower"

    text: EncoderShape
    image: VisionShape

    @property
    def parameters(self) -> int:
        return self.text.parameters + self.image.parameters + 1

    @property
    def active_parameters(self) -> int:
        return self.parameters

    def forward_flop(self, image_size: int | None = None, text_tokens: int | None = None) -> float:
        """One image and one text; the text fills its positions unless told otherwise."""
        tokens = self.text.positions if text_tokens is None else text_tokens
        return self.image.forward_flop(image_size) + self.text.forward_flop(tokens)
