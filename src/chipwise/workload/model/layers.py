"""The blocks every model is made of, with their parameter counts: projections, attention, feed-forward, experts, norms.

`weights` counts the matrix elements one token is multiplied with (2 FLOP each), `parameters` adds biases and norms.
Symbols: h = hidden, a = heads, g = kv_heads, d = head_dim, f = feed-forward width, E = experts, k = active experts.
Assumes one hidden width throughout a stack; rotary and ALiBi positions hold no parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


def linear(inputs: int, outputs: int, bias: bool = True) -> int:
    """A dense layer: inputs * outputs (+ outputs with a bias)."""
    return inputs * outputs + (outputs if bias else 0)


def convolution(inputs: int, outputs: int, kernel: int, bias: bool = True, groups: int = 1) -> int:
    """A square two-dimensional convolution: kernel^2 * inputs / groups * outputs (+ outputs with a bias)."""
    return kernel * kernel * (inputs // groups) * outputs + (outputs if bias else 0)


class Norm(StrEnum):
    NONE = "none"
    RMS = "rmsnorm"
    LAYER = "layernorm"
    LAYER_WITHOUT_BIAS = "layernorm-without-bias"

    def parameters(self, width: int) -> int:
        if self is Norm.NONE:
            return 0
        return 2 * width if self is Norm.LAYER else width


class QkNorm(StrEnum):
    """How queries and keys are normalised before they meet."""

    NONE = "none"
    HEAD = "head"  # one vector of head_dim for all queries and one for all keys (Qwen3, Gemma 3)
    FULL = "full"  # a vector over all heads at once (OLMo 2)


@dataclass(frozen=True, slots=True)
class Attention:
    """Multi-head, grouped-query (g < a) or multi-query (g = 1) attention (Ainslie et al. 2023, arXiv:2305.13245).

    weights = h*a*d + 2*c*g*d + a*d*h, where c is the width of what is attended to: h itself unless `context_width`.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    bias: str = ""  # which of the projections q, k, v, o carry a bias: "qkv" in Qwen2, "qvo" in Whisper
    qk_norm: QkNorm = QkNorm.NONE
    sinks: bool = False  # one learned logit per head (gpt-oss)
    context_width: int | None = None

    @property
    def query_weights(self) -> int:
        """The part every token of the own sequence passes: queries and output."""
        return 2 * self.hidden * self.heads * self.head_dim

    @property
    def key_value_weights(self) -> int:
        return 2 * (self.context_width or self.hidden) * self.kv_heads * self.head_dim

    @property
    def weights(self) -> int:
        return self.query_weights + self.key_value_weights

    @property
    def ends(self) -> int:
        """Inputs and outputs of all matrices: what an adapter beside each has per rank."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return 2 * (self.hidden + queries) + 2 * ((self.context_width or self.hidden) + keys)

    @property
    def parameters(self) -> int:
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        biases = {"q": queries, "k": keys, "v": keys, "o": self.hidden}
        norms = {QkNorm.NONE: 0, QkNorm.HEAD: 2 * self.head_dim, QkNorm.FULL: queries + keys}[self.qk_norm]
        return self.weights + sum(biases[letter] for letter in self.bias) + norms + (self.heads if self.sinks else 0)

    @property
    def cached_values(self) -> int:
        """Numbers one layer keeps per token: 2*g*d."""
        return 2 * self.kv_heads * self.head_dim

    @property
    def score_width(self) -> int:
        """Multiplications per pair of tokens: a*d for the scores and a*d for the weighted sum."""
        return 2 * self.heads * self.head_dim


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention of DeepSeek-V2 (arXiv:2405.04434, section 2.1); symbols as there.

    With d_c = kv_lora, d_c' = q_lora, d_h = nope_dim, d_r = rope_dim, d_v = v_head_dim:
    weights = [h*d_c' + d_c'*a*(d_h + d_r), or h*a*(d_h + d_r) without q_lora]
            + h*(d_c + d_r) + d_c*a*(d_h + d_v) + a*d_v*h; norms of d_c and d_c'. The cache holds d_c + d_r per token.
    """

    hidden: int
    heads: int
    kv_lora: int
    nope_dim: int
    rope_dim: int
    v_head_dim: int
    q_lora: int | None = None

    @property
    def weights(self) -> int:
        queries = self.heads * (self.nope_dim + self.rope_dim)
        query = self.hidden * queries if self.q_lora is None else self.q_lora * (self.hidden + queries)
        down = self.hidden * (self.kv_lora + self.rope_dim)
        up = self.kv_lora * self.heads * (self.nope_dim + self.v_head_dim)
        return query + down + up + self.heads * self.v_head_dim * self.hidden

    @property
    def ends(self) -> int:
        queries, values = self.heads * (self.nope_dim + self.rope_dim), self.heads * self.v_head_dim
        query = self.hidden + queries + (2 * self.q_lora if self.q_lora is not None else 0)
        down = self.hidden + self.kv_lora + self.rope_dim
        return query + down + self.kv_lora + self.heads * self.nope_dim + values + values + self.hidden

    @property
    def parameters(self) -> int:
        return self.weights + self.kv_lora + (self.q_lora or 0)

    @property
    def cached_values(self) -> int:
        return self.kv_lora + self.rope_dim

    @property
    def score_width(self) -> int:
        return self.heads * (self.nope_dim + self.rope_dim + self.v_head_dim)

    @property
    def kv_heads(self) -> int:
        """The latent is shared by all heads, so it cannot be split by head."""
        return 1


@dataclass(frozen=True, slots=True)
class FeedForward:
    """Two matrices (2*h*f), or three when gated (3*h*f; Shazeer 2020, arXiv:2002.05202)."""

    hidden: int
    width: int
    gated: bool = True
    bias: bool = False

    @property
    def weights(self) -> int:
        return (3 if self.gated else 2) * self.hidden * self.width

    @property
    def ends(self) -> int:
        return (3 if self.gated else 2) * (self.hidden + self.width)

    @property
    def parameters(self) -> int:
        biases = (2 if self.gated else 1) * self.width + self.hidden
        return self.weights + (biases if self.bias else 0)


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts in place of one feed-forward: a router, E experts of which k work on a token, a shared one.

    Several shared experts are one of their summed width, as they are stored.
    """

    expert: FeedForward
    count: int
    active: int
    shared: FeedForward | None = None
    shared_gate: bool = False  # a learned scalar on the shared expert (Qwen2-MoE)
    router_bias: bool = False

    @property
    def weights(self) -> int:
        """Matrix elements that one token meets: k experts, the shared one and the router."""
        gate = self.expert.hidden if self.shared_gate else 0
        shared = self.shared.weights if self.shared else 0
        return self.active * self.expert.weights + shared + self.expert.hidden * self.count + gate

    @property
    def parameters(self) -> int:
        return self._parameters_with(self.count)

    @property
    def active_parameters(self) -> int:
        return self._parameters_with(self.active)

    def _parameters_with(self, experts: int) -> int:
        gate = self.expert.hidden if self.shared_gate else 0
        shared = self.shared.parameters if self.shared else 0
        router = linear(self.expert.hidden, self.count, self.router_bias)
        return experts * self.expert.parameters + shared + router + gate


@dataclass(frozen=True, slots=True)
class Stack:
    """`layers` equal transformer layers with one norm per block, as in BERT, T5, Whisper, ViT and CLIP.

    One layer: attention (twice with `cross`), feed-forward, and a norm for each of these. T5 keeps one table of
    `relative_buckets` * a position biases for the whole stack.
    """

    layers: int
    attention: Attention
    mlp: FeedForward
    norm: Norm = Norm.LAYER
    cross: bool = False
    final_norm: bool = True
    relative_buckets: int = 0

    @property
    def hidden(self) -> int:
        return self.attention.hidden

    @property
    def parameters(self) -> int:
        attentions = 2 if self.cross else 1
        norm = self.norm.parameters(self.hidden)
        layer = attentions * self.attention.parameters + self.mlp.parameters + (attentions + 1) * norm
        return self.layers * layer + (norm if self.final_norm else 0) + self.relative_buckets * self.attention.heads

    def adapted(self, attention_only: bool) -> int:
        """Parameters of adapters beside its matrices, per rank."""
        attention = (2 if self.cross else 1) * self.attention.ends
        return self.layers * (attention + (0 if attention_only else self.mlp.ends))

    @property
    def weights(self) -> int:
        """Per token of the own sequence; the keys and values of another sequence are in `cross_weights`."""
        cross = self.attention.query_weights if self.cross else 0
        return self.layers * (self.attention.weights + cross + self.mlp.weights)

    @property
    def cross_weights(self) -> int:
        """Per token of the sequence that is attended to."""
        return self.layers * self.attention.key_value_weights if self.cross else 0

    def score_flop(self, tokens: int) -> float:
        """Scores and weighted sums of `tokens` tokens that all see each other: 2 * 2*a*d * tokens^2 per layer."""
        return 2.0 * self.layers * self.attention.score_width * tokens * tokens
