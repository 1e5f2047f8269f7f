"""Decoder-only transformers: dense, grouped-query, mixture of experts and latent attention.

Symbols: L = layers, h = hidden, V = vocab, P = learned positions, e = width of the embedding table (h unless given).
Details that change the count (biases, norms, ties, sinks) are fields, so that the sum is exact and not an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chipwise.workload.model.layers import Attention, Experts, FeedForward, LatentAttention, Norm


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """parameters = V*e + P*h + L*(attention + n*norm) + (L - D)*experts + D*mlp + final norm + head.

    n = norms_per_layer: 2 as a rule, 1 where attention and feed-forward run in parallel behind one norm (GPT-J,
    Falcon-7B, Phi-2), 4 with norms behind both blocks too (Gemma 2 and 3). D = layers without experts: all of them when
    there are none. The head is V*e more unless tied.
    """

    kind: ClassVar[str] = "decoder"

    layers: int
    hidden: int
    vocab: int
    attention: Attention | LatentAttention
    mlp: FeedForward
    experts: Experts | None = None
    dense_layers: int = 0  # of a model with experts: how many layers have `mlp` in their place
    norm: Norm = Norm.RMS
    norms_per_layer: int = 2
    final_norm: bool = True
    embedding_norm: bool = False  # BLOOM
    tied_embeddings: bool = False
    positions: int = 0  # rows of learned positions, with the offset of 2 that OPT has
    embedding_width: int | None = None  # OPT-350M projects from 512 to 1024 and back
    head_bias: bool = False
    window: int | None = None  # tokens that a layer with sliding-window attention looks back
    windowed_layers: int = 0

    @property
    def parameters(self) -> int:
        return self._sum(self.experts.parameters if self.experts else 0)

    @property
    def active_parameters(self) -> int:
        """What one token passes: of the experts only those the router picks. Embeddings are included, as in papers."""
        return self._sum(self.experts.active_parameters if self.experts else 0)

    @property
    def embedding_parameters(self) -> int:
        """Token table, positions, head and the projections between: what is outside the layers."""
        width = self.embedding_width or self.hidden
        tables = self.vocab * width * (1 if self.tied_embeddings else 2) + self.positions * self.hidden
        projections = 2 * width * self.hidden if width != self.hidden else 0
        return tables + projections + (self.vocab if self.head_bias else 0)

    @property
    def expert_layers(self) -> int:
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def heads(self) -> int:
        return self.attention.heads

    @property
    def kv_heads(self) -> int:
        return self.attention.kv_heads

    def kv_bytes_per_token(self, bytes_per_value: float) -> float:
        """L * 2*g*d * bytes (latent attention: L * (d_c + d_r) * bytes), as long as no sliding window is full."""
        return self.layers * self.attention.cached_values * bytes_per_value

    def kv_bytes(self, tokens: int, bytes_per_value: float) -> float:
        """The cache of one sequence of `tokens`; windowed layers keep no more than their window."""
        cached_tokens = (self.layers - self.windowed_layers) * tokens
        cached_tokens += self.windowed_layers * (tokens if self.window is None else min(tokens, self.window))
        return cached_tokens * self.attention.cached_values * bytes_per_value

    def matrix_flop_per_token(self, head: bool = True) -> float:
        """2 FLOP for each matrix element a token meets in a forward pass: layers, and the head unless told otherwise.

        Looking up an embedding costs nothing here; a tied head is still a multiplication. Prefill needs the head for
        the last token only.
        """
        weights = self.layers * self.attention.weights
        weights += (self.layers - self.expert_layers) * self.mlp.weights
        weights += self.expert_layers * (self.experts.weights if self.experts else 0)
        width = self.embedding_width or self.hidden
        projections = 2 * width * self.hidden if width != self.hidden else 0
        return 2.0 * (weights + projections + (self.vocab * width if head else 0))

    def _sum(self, experts: int) -> int:
        norm = self.norm.parameters(self.hidden)
        layer_parameters = self.layers * (self.attention.parameters + self.norms_per_layer * norm)
        blocks = (self.layers - self.expert_layers) * self.mlp.parameters + self.expert_layers * experts
        ends = (norm if self.final_norm else 0) + (norm if self.embedding_norm else 0)
        return self.embedding_parameters + layer_parameters + blocks + ends
