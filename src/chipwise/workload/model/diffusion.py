"""Text-to-image diffusion: a denoiser that runs once per step, text encoders that run once, and an autoencoder.

The denoiser is a UNet (see `unetshape`) or a joint transformer over picture and text: MMDiT of Stable Diffusion 3
(Esser et al. 2024, arXiv:2403.03206) and FLUX.1. Symbols: h = hidden, f = feed-forward width, B = blocks with separate
weights for picture and text, S = blocks with one set for both, n = picture tokens, m = text tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chipwise.workload.model.encoder import EncoderShape
from chipwise.workload.model.layers import linear
from chipwise.workload.model.unet import SHRINK, UNetShape, VaeShape

TIME_FEATURES = 256  # sinusoids that the time (and guidance) embedding starts from


@dataclass(frozen=True, slots=True)
class JointTransformerShape:
    """A stream of a block: modulation 6*h*h, attention 4*h*h, feed-forward 2*h*f, all with biases.

    parameters = 2*B streams + S * [3*h*h + h*(3*h + f) + (h + f)*h] + embeddings + last layer. `short_last_text`: the
    text stream of the last block only feeds the attention (SD3), so it has neither output nor feed-forward and its
    modulation is 2*h*h.
    """

    kind: ClassVar[str] = "joint-transformer"

    hidden: int
    heads: int
    joint_layers: int
    text_width: int
    pooled_width: int
    single_layers: int = 0
    ffn: int | None = None  # four times hidden unless given
    latent_channels: int = 16
    patch: int = 2
    qk_norm: bool = False  # a vector of head_dim for queries and keys of each stream
    guidance: bool = False  # embeds the guidance strength (FLUX.1-dev)
    short_last_text: bool = False

    @property
    def width(self) -> int:
        return self.ffn or 4 * self.hidden

    @property
    def parameters(self) -> int:
        h, f = self.hidden, self.width
        norms = 2 * (h // self.heads) if self.qk_norm else 0
        output, mlp = linear(h, h), linear(h, f) + linear(f, h)
        stream = linear(h, 6 * h) + linear(h, 3 * h) + norms + output + mlp
        missing = output + mlp + linear(h, 6 * h) - linear(h, 2 * h) if self.short_last_text else 0
        single = linear(h, 3 * h) + linear(h, 3 * h + f) + linear(h + f, h) + norms
        places = self.patch * self.patch * self.latent_channels
        embeddings = linear(places, h) + linear(self.text_width, h)
        embeddings += self._two_layers(TIME_FEATURES) * (2 if self.guidance else 1) + self._two_layers(self.pooled_width)
        last = linear(h, 2 * h) + linear(h, places)
        return 2 * self.joint_layers * stream - missing + self.single_layers * single + embeddings + last

    @property
    def active_parameters(self) -> int:
        return self.parameters

    def tokens(self, image_size: int) -> int:
        side = max(1, image_size // (SHRINK * self.patch))
        return side * side

    def forward_flop(self, image_size: int, text_tokens: int = 512) -> float:
        """One step of one picture: every token through its stream, and all of them attending to each other.

        Modulation is computed once a step, not per token, and is left out together with the embeddings (below 1%).
        """
        h, f, picture = self.hidden, self.width, self.tokens(image_size)
        all_tokens = picture + text_tokens
        stream = 4 * h * h + 2 * h * f
        unused = (h * h + 2 * h * f) * text_tokens if self.short_last_text else 0
        single = h * (3 * h + f) + (h + f) * h
        scores = 2 * h * all_tokens * all_tokens
        joint = self.joint_layers * (stream * all_tokens + scores) - unused
        return 2.0 * (joint + self.single_layers * (single * all_tokens + scores))

    def _two_layers(self, inputs: int) -> int:
        return linear(inputs, self.hidden) + linear(self.hidden, self.hidden)


@dataclass(frozen=True, slots=True)
class DiffusionShape:
    """The whole pipeline; `parameters` is the sum of denoiser, text encoders and autoencoder."""

    kind: ClassVar[str] = "diffusion"

    denoiser: UNetShape | JointTransformerShape
    text_encoders: tuple[EncoderShape, ...]
    vae: VaeShape
    image_size: int
    text_tokens: int = 77
    guided: bool = True  # guidance by a second, unconditioned pass in every step

    @property
    def parameters(self) -> int:
        return self.denoiser.parameters + sum(encoder.parameters for encoder in self.text_encoders) + self.vae.parameters

    @property
    def active_parameters(self) -> int:
        return self.parameters

    def step_flop(self, image_size: int | None = None) -> float:
        """One denoising step of one picture, both passes where guidance needs two."""
        passes = 2 if self.guided else 1
        return passes * self.denoiser.forward_flop(image_size or self.image_size, self.text_tokens)

    def forward_flop(self, image_size: int | None = None, steps: int = 30) -> float:
        """One picture: read the text, `steps` denoising steps, decode."""
        texts = (2 if self.guided else 1) * sum(encoder.forward_flop(self.text_tokens) for encoder in self.text_encoders)
        return texts + steps * self.step_flop(image_size) + self.vae.decode_flop(image_size or self.image_size)
