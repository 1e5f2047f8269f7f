"""Time of the two steps of generation: prefill of a prompt and decode of one token for every running sequence.

With t tensor ways, d ways that attention is split by sequence (and experts by expert), p pipeline stages that a step passes
one after the other, B sequences, c tokens of context, n new prompt tokens:
  prefill  projections and feed-forward over n rows, scores over n c / 2 pairs, 2 all-reduces per layer, launches
  decode   every weight the B tokens meet is read once (of E experts, those that B tokens reach), the cache of B c tokens is
           read once, 2 all-reduces of B rows per layer, launches per layer, the engine's own work per step and per sequence
Each is a dictionary of bases: seconds of one kind of work, which fitted factors scale and `serving.py` puts together.
Limits: balanced routing; no speculative decoding; caches that fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.perf.collective import Network
from chipwise.perf.operators import MEMORY_EFFICIENCY, attention, passes, product
from chipwise.perf.transformer import Transformers

BASES = (
    "prefill_matrix", "prefill_attention", "prefill_element", "prefill_link", "prefill_host",
    "decode_matrix", "decode_cache", "decode_link", "layer_host", "step_host", "sequence_host", "request_host", "queue",
)  # fmt: skip
LAYER_HOST_S = 12e-6  # gaps between the kernels of one layer, replayed as a graph
STEP_HOST_S = 600e-6  # scheduling, sampling and bookkeeping of an engine, per step
SEQUENCE_HOST_S = 4e-6  # and for each sequence in it
EAGER_LAYER_S = 150e-6  # launches of one layer without a graph, hidden while its kernels are long


@dataclass(frozen=True, slots=True)
class Serving:
    """Columns that describe one replica of a model on hardware."""

    model: Transformers
    peak: Array  # FLOP/s of the unit that multiplies the weights
    half_peak: Array  # in 16 bits, for attention
    bandwidth: Array
    network: Network
    tp: Array  # chips that share every layer's matrices
    dp: Array  # chips that share the experts but have sequences of their own
    pp: Array
    weight_bytes: Array  # per weight of the layers
    head_bytes: Array  # per weight of the head
    cache_bytes: Array  # per cached value


def prefill(run: Serving, tokens: Array, length: Array, sequences: Array, cached: Array | float = 0.0) -> dict[str, Array]:
    """`tokens` new prompt tokens in all, in `sequences` prompts of `length` of which `cached` were there before."""
    model, width, ways = run.model, run.tp, run.tp * run.dp
    rows = tokens / run.dp
    hidden, layers = model.hidden, model.layers
    projections = product(rows, model.attention_weights / hidden / width, hidden, run.peak, run.bandwidth, run.weight_bytes)
    feed = _feed_forward(run, tokens, ways)
    head = product(
        np.maximum(sequences / run.dp, 1.0), np.maximum(model.head / hidden, 1.0) / width, hidden, run.peak, run.bandwidth,
        run.head_bytes,
    )  # fmt: skip
    fresh = np.maximum(length - cached, 1.0)
    pairs = np.where(model.causal > 0, cached + fresh / 2, length)
    flop = 2.0 * model.score_width * model.seen(pairs) * rows / width
    moved = rows * (2 * model.query_width + model.kv_width) * 2.0 / width
    element = passes(rows * (18.0 * hidden + 2.0 * model.mlp_weights / hidden / width) * 2.0, run.bandwidth)
    link = 2.0 * run.network.all_reduce(rows * hidden * 2.0, width) + _exchange(run, tokens, ways)
    return {
        "prefill_matrix": layers * (projections + feed) + head,
        "prefill_attention": layers * attention(flop, moved, run.half_peak, run.bandwidth),
        "prefill_element": layers * element,
        "prefill_link": layers * link + _hops(run, rows),
        "prefill_host": layers * EAGER_LAYER_S * np.ones_like(rows),
    }


def decode(run: Serving, sequences: Array, context: Array) -> dict[str, Array]:
    model, width, ways = run.model, run.tp, run.tp * run.dp
    rows = sequences / run.dp
    hidden, layers = model.hidden, model.layers
    projections = product(rows, model.attention_weights / hidden / width, hidden, run.peak, run.bandwidth, run.weight_bytes)
    head = product(rows, np.maximum(model.head / hidden, 1.0) / width, hidden, run.peak, run.bandwidth, run.head_bytes)
    split = np.minimum(width, np.maximum(model.kv_heads, 1.0))
    cache = rows * model.seen(context) * model.kv_width * run.cache_bytes / split
    scores = 2.0 * model.score_width * model.seen(context) * rows / width
    read = np.maximum(passes(cache, run.bandwidth), scores / (0.4 * run.half_peak))
    link = 2.0 * run.network.all_reduce(rows * hidden * 2.0, width) + _exchange(run, sequences, ways)
    one = np.ones_like(rows)
    return {
        "decode_matrix": layers * (projections + _feed_forward(run, sequences, ways)) + head,
        "decode_cache": layers * read,
        "decode_link": layers * link + _hops(run, rows),
        "layer_host": layers * LAYER_HOST_S * one,
        "step_host": STEP_HOST_S * one,
        "sequence_host": SEQUENCE_HOST_S * sequences,
    }


def _feed_forward(run: Serving, tokens: Array, ways: Array) -> Array:
    """One layer's feed-forward over `tokens` tokens: dense, or the experts they reach, spread over all chips."""
    model = run.model
    dense = product(
        tokens / run.dp, model.mlp_weights / model.hidden / run.tp, model.hidden, run.peak, run.bandwidth, run.weight_bytes
    )
    if not np.any(model.experts):
        return dense
    met = (model.weights_met(tokens) - model.attention_weights) / ways
    each = tokens * model.active / np.maximum(model.experts_met(tokens), 1.0)  # rows per expert that has any
    compute = 2.0 * tokens * model.mlp_weights / ways / (run.peak * 0.8 * np.maximum(each, 1e-9) / (each + 48.0))
    read = met * run.weight_bytes / (run.bandwidth * MEMORY_EFFICIENCY)
    return np.where(model.experts > 0, np.maximum(compute, read), dense)


def _exchange(run: Serving, tokens: Array, ways: Array) -> Array:
    """Tokens that travel to their experts and back, where experts are spread beyond the tensor group."""
    if not np.any(run.model.experts) or np.all(run.dp == 1):
        return np.zeros(1)
    size = tokens / ways * run.model.active * run.model.hidden * 2.0
    return np.where((run.model.experts > 0) & (run.dp > 1), 2.0 * run.network.all_to_all(size, ways), 0.0)


def _hops(run: Serving, rows: Array) -> Array:
    """Between pipeline stages."""
    if np.all(run.pp == 1):
        return np.zeros(1)
    return (run.pp - 1.0) * run.network.send(rows * run.model.hidden * 2.0, run.tp * run.dp)
