"""Transformers as columns: what one layer multiplies, keeps and caches, for many models at once.

Symbols: L layers, h hidden, a heads, g kv heads, d head width, f feed-forward width, E experts of which k are active,
V vocabulary. Counts are averages over the layers where layers differ (dense layers before experts, sliding windows), so
that L times a column is exact.

Encoder-decoders trained on pairs: a sequence is an input and its target, n = s + u tokens. With L_e of L layers in the
encoder, a layer sees on average p n of them, p = (L_e s + L_d u) / (L n); the head sees u. `pair_layer` has the columns such
that L p n times a column is exact: cross attention, whose queries and outputs are of the target and whose keys and values are
of the input, and the squares of scores, s s in the encoder, u u / 2 + u s in the decoder, are in its averages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, Index
from chipwise.workload.model.shape import DecoderShape, EncoderDecoderShape, EncoderShape, VisionShape


@dataclass(frozen=True, slots=True)
class Layer:
    """One model as numbers; `Transformers` has the same names as columns."""

    layers: float
    hidden: float
    vocab: float
    heads: float  # a: over how many chips attention can be split
    query_width: float  # a * d: columns of the query projection
    kv_width: float  # 2 * g * d, or the latent's width: values cached per token and layer
    kv_heads: float  # over how many chips keys and values can be split
    attention_weights: float  # matrix elements a token meets in one layer's attention
    mlp_width: float  # f, of one expert where there are experts
    mlp_weights: float  # matrix elements a token meets in one layer's feed-forward, router included
    mlp_stored: float  # the same over all experts
    experts: float  # 0: dense
    active: float
    expert_layers: float  # share of the layers that have experts
    score_width: float  # multiplications per pair of tokens, heads together
    window: float  # tokens a windowed layer looks back; infinity: all
    windowed: float  # share of layers with a window
    causal: float  # 1: a token sees what is before it only
    parameters: float
    table: float  # embedding parameters that a step does not multiply with (looked up)
    head: float  # matrix elements of the output head
    reading: float = 0.0  # share of the layers that are an encoder's, where a sequence is a pair
    source: float = 0.0  # share of the tokens of a pair that the encoder reads; 0: all layers see all tokens


@dataclass(frozen=True)
class Transformers:
    """Columns of models, with what formulas take from them computed once."""

    layers: Array
    hidden: Array
    vocab: Array
    heads: Array
    query_width: Array
    kv_width: Array
    kv_heads: Array
    attention_weights: Array
    mlp_width: Array
    mlp_weights: Array
    mlp_stored: Array
    experts: Array
    active: Array
    expert_layers: Array
    score_width: Array
    window: Array
    windowed: Array
    causal: Array
    parameters: Array
    table: Array
    head: Array
    reading: Array
    source: Array

    @classmethod
    def of(cls, rows: Sequence[Layer], index: Index | None = None) -> Transformers:
        """Columns of `rows`, or of those that `index` picks, one per candidate."""
        if index is None and len(rows) == 1:
            return _alone(rows[0])
        columns = {name: np.array([getattr(row, name) for row in rows], dtype=np.float64) for name in _NAMES}
        return cls(**{name: values if index is None else values[index] for name, values in columns.items()})

    def rows(self, selection: slice | Index) -> Transformers:
        columns = {name: getattr(self, name) for name in _NAMES}
        if all(len(values) == 1 for values in columns.values()):
            return self
        return Transformers(**{name: values if len(values) == 1 else values[selection] for name, values in columns.items()})

    @cached_property
    def routed(self) -> bool:
        """Whether any has experts."""
        return bool(np.any(self.experts))

    @cached_property
    def has_experts(self) -> NDArray[np.bool_]:
        return np.asarray(self.experts > 0)

    @cached_property
    def is_causal(self) -> NDArray[np.bool_]:
        return np.asarray(self.causal > 0)

    @cached_property
    def paired(self) -> bool:
        """Whether any is an encoder-decoder whose sequences are pairs."""
        return bool(np.any(self.source))

    @cached_property
    def token_share(self) -> Array:
        """Share of a sequence's tokens that a layer sees, averaged over layers."""
        return self.reading * self.source + (1.0 - self.reading) * (1.0 - self.source)

    @cached_property
    def headed(self) -> Array:
        """Share of a sequence's tokens that the head sees."""
        return 1.0 - self.source

    @cached_property
    def fullest(self) -> Array:
        """Share of a sequence's tokens that the layer with most of them sees."""
        return np.maximum(self.source, 1.0 - self.source)

    @cached_property
    def crossing(self) -> Array:
        """Cross attentions for each layer and token that it sees: of the side that asks."""
        return np.where(self.source > 0, (1.0 - self.reading) * (1.0 - self.source) / self.token_share, 0.0)

    @cached_property
    def crossed(self) -> Array:
        """The same of the side that is looked at: keys and values of the input in every layer of the decoder."""
        return (1.0 - self.reading) * self.source / self.token_share

    @cached_property
    def sublayers(self) -> Array:
        """What a layer runs, in layers of one attention and one feed-forward: a decoder's has a second attention."""
        return 1.0 + np.where(self.source > 0, 0.5 * (1.0 - self.reading), 0.0)

    @cached_property
    def attention_columns(self) -> Array:
        """Of all matrices of one layer's attention, side by side."""
        return self.attention_weights / self.hidden

    @cached_property
    def mlp_columns(self) -> Array:
        """Of all matrices that a token meets in one layer's feed-forward."""
        return self.mlp_weights / self.hidden

    @cached_property
    def head_columns(self) -> Array:
        return np.maximum(self.head / self.hidden, 1.0)

    @cached_property
    def _windowed(self) -> bool:
        return bool(np.any(self.windowed))

    def seen(self, context: Array) -> Array:
        """Earlier tokens that a new one attends to at `context`, averaged over layers."""
        if not self._windowed:
            return context
        return (1.0 - self.windowed) * context + self.windowed * np.minimum(context, self.window)

    def experts_met(self, tokens: Array) -> Array:
        """Distinct experts that `tokens` tokens reach in one layer when routing is even: E * (1 - (1 - k/E)^tokens)."""
        share = np.where(self.experts > 0, self.active / np.maximum(self.experts, 1.0), 0.0)
        return self.experts * -np.expm1(tokens * np.log1p(-np.minimum(share, 1.0 - 1e-12)))

    def weights_met(self, tokens: Array) -> Array:
        """Distinct matrix elements of one layer that a step over `tokens` tokens reads."""
        routed = np.where(self.experts > 0, self.mlp_stored - self._always(), 0.0)
        share = np.where(self.experts > 0, self.experts_met(tokens) / np.maximum(self.experts, 1.0), 1.0)
        dense = np.where(self.experts > 0, self._always(), self.mlp_stored)
        return np.asarray(self.attention_weights + dense + routed * share)

    def _always(self) -> Array:
        """Feed-forward elements every token meets whichever expert it takes: router, shared expert, dense layers."""
        idle_experts = np.maximum(self.experts - self.active, 1.0)
        expert = (self.mlp_stored - self.mlp_weights) / idle_experts
        return np.maximum(self.mlp_weights - self.active * expert, 0.0)


_NAMES = tuple(one.name for one in fields(Transformers))


@cache
def _alone(layer: Layer) -> Transformers:
    """One model, made once; nobody may write into what all share."""
    columns = {name: np.array([getattr(layer, name)], dtype=np.float64) for name in _NAMES}
    for values in columns.values():
        values.flags.writeable = False
    return Transformers(**columns)


@cache
def layer_of(shape: DecoderShape | EncoderShape | EncoderDecoderShape | VisionShape) -> Layer:
    if isinstance(shape, DecoderShape):
        return _decoder(shape)
    if isinstance(shape, EncoderDecoderShape):
        return _encoder_decoder(shape)
    stack = shape.stack
    attention, mlp = stack.attention, stack.mlp
    vocab = getattr(shape, "vocab", 0)
    return Layer(
        layers=stack.layers,
        hidden=stack.hidden,
        vocab=vocab,
        heads=attention.heads,
        query_width=attention.heads * attention.head_dim,
        kv_width=attention.cached_values,
        kv_heads=attention.kv_heads,
        attention_weights=attention.weights,
        mlp_width=mlp.width,
        mlp_weights=mlp.weights,
        mlp_stored=mlp.weights,
        experts=0,
        active=0,
        expert_layers=0,
        score_width=attention.score_width,
        window=np.inf,
        windowed=0,
        causal=0,
        parameters=shape.parameters,
        table=max(shape.parameters - stack.parameters, 0),
        head=0,
    )


def _decoder(shape: DecoderShape) -> Layer:
    experts = shape.experts
    share = shape.expert_layers / shape.layers
    mlp = (1 - share) * shape.mlp.weights + share * (experts.weights if experts else 0)
    stored = (1 - share) * shape.mlp.weights
    if experts:
        shared = experts.shared.weights if experts.shared else 0
        stored += share * (experts.count * experts.expert.weights + shared + experts.expert.hidden * experts.count)
    width = shape.embedding_width or shape.hidden
    return Layer(
        layers=shape.layers,
        hidden=shape.hidden,
        vocab=shape.vocab,
        heads=shape.attention.heads,
        query_width=shape.attention.score_width / 2,
        kv_width=shape.attention.cached_values,
        kv_heads=shape.kv_heads,
        attention_weights=shape.attention.weights,
        mlp_width=experts.expert.width if experts else shape.mlp.width,
        mlp_weights=mlp,
        mlp_stored=stored,
        experts=experts.count if experts else 0,
        active=experts.active if experts else 0,
        expert_layers=share if experts else 0,
        score_width=shape.attention.score_width,
        window=shape.window or np.inf,
        windowed=shape.windowed_layers / shape.layers,
        causal=1,
        parameters=shape.parameters,
        table=0 if shape.tied_embeddings else shape.vocab * width,
        head=shape.vocab * width,
    )


def _encoder_decoder(shape: EncoderDecoderShape) -> Layer:
    """Both stacks as one of all their layers; a decoder's second attention adds to the average layer."""
    encoder, decoder = shape.encoder, shape.decoder
    layers = encoder.layers + decoder.layers
    attention = (encoder.layers + 2 * decoder.layers) * encoder.attention.weights / layers
    mlp = (encoder.layers * encoder.mlp.weights + decoder.layers * decoder.mlp.weights) / layers
    head = shape.vocab * encoder.hidden
    return Layer(
        layers=layers,
        hidden=encoder.hidden,
        vocab=shape.vocab,
        heads=encoder.attention.heads,
        query_width=encoder.attention.heads * encoder.attention.head_dim,
        kv_width=encoder.attention.cached_values,
        kv_heads=encoder.attention.kv_heads,
        attention_weights=attention,
        mlp_width=encoder.mlp.width,
        mlp_weights=mlp,
        mlp_stored=mlp,
        experts=0,
        active=0,
        expert_layers=0,
        score_width=encoder.attention.score_width,
        window=np.inf,
        windowed=0,
        causal=0,
        parameters=shape.parameters,
        table=max(shape.parameters - layers * (attention + mlp) - head, 0),
        head=head,
    )


@cache
def pair_layer(shape: EncoderDecoderShape, inputs: float, targets: float) -> Layer:
    """An encoder-decoder over pairs of `inputs` and `targets` tokens; a sequence of the setup has both.

    What is stored stays what it is: where a token meets more or less of the second attention than is stored for an average
    layer, the feed-forward's `mlp_stored` takes up the difference. A convolution stem counts with the layers.
    """
    layer, encoder, decoder = _encoder_decoder(shape), shape.encoder, shape.decoder
    attention = decoder.attention
    seen = encoder.layers * inputs + decoder.layers * targets  # tokens of all layers
    own = encoder.layers * inputs * encoder.attention.weights + decoder.layers * targets * attention.weights
    cross = decoder.layers * (targets * attention.query_weights + inputs * attention.key_value_weights) * decoder.cross
    mlp = encoder.layers * inputs * encoder.mlp.weights + decoder.layers * targets * decoder.mlp.weights
    stem = shape.encoder_flop_per_token() / 2.0 - encoder.weights - decoder.cross_weights
    pairs = encoder.layers * inputs * inputs + decoder.layers * (targets * targets / 2.0 + targets * inputs * decoder.cross)
    attention_weights = (own + cross) / seen
    return replace(
        layer,
        attention_weights=attention_weights,
        mlp_weights=(mlp + inputs * stem) / seen,
        mlp_stored=layer.mlp_stored + layer.attention_weights - attention_weights,
        score_width=layer.score_width * pairs / (seen * (inputs + targets)),
        reading=encoder.layers / layer.layers,
        source=inputs / (inputs + targets),
    )
