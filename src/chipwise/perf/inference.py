"""Time of the two steps of generation: prefill of a prompt and decode of one token for every running sequence.

With t tensor ways, d ways that attention is split by sequence (and experts by expert), p pipeline stages that a step passes
one after the other, B sequences, c tokens of context, n new prompt tokens:
  prefill  projections and feed-forward over n rows, scores over n c / 2 pairs, 2 all-reduces per layer, launches
  decode   every weight the B tokens meet is read once (of E experts, those that B tokens reach), the cache of B c tokens is
           read once, 2 all-reduces of B rows per layer, launches per layer, the engine's own work per step and per sequence;
           without CUDA graphs launches hide behind kernels that take longer, and show where these are short
A plain loop (`plain`: Hugging Face's generate) launches from Python, one expert after the other, and its attention neither
splits a context over the chip nor shares the cache between heads, after it copied the cache to make room for one token more.
Speculation makes a step check several tokens of every sequence: their products and what travels count, the cache is read once.
Experts that are split over chips like other matrices are narrow, and narrow products stay below the peak.
Each is a dictionary of bases: seconds of one kind of work, which fitted factors scale and `serving.py` puts together.
Limits: balanced routing; drafts cost nothing besides the tokens to check; caches that fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from chipwise.perf.arrays import Array, has_nonzero, pick
from chipwise.perf.collective import Group, Network
from chipwise.perf.operators import NARROW, attention, passes, product
from chipwise.perf.transformer import Transformers

BASES = (
    "prefill_matrix",
    "prefill_attention",
    "prefill_element",
    "prefill_link",
    "prefill_host",
    "decode_matrix",
    "decode_cache",
    "decode_link",
    "layer_host",
    "launch_host",
    "step_host",
    "sequence_host",
    "request_host",
    "queue",
    "stretch",
)
RATIOS = ("queue", "stretch")  # bases that are numbers, not seconds
LAYER_HOST_S = 12e-6  # gaps between the kernels of one layer, replayed as a graph
STEP_HOST_S = 600e-6  # scheduling, sampling and bookkeeping of an engine, per step
SEQUENCE_HOST_S = 4e-6  # and for each sequence in it,
SCHEDULED_HOST_S = 18e-6  # of a scheduler in Python
BARE_STEP_S = 60e-6  # a loop without a server: it replays its graph and picks tokens on the chip
# Launches of one layer without a graph, hidden while its kernels are long (`serving` joins them): of compiled or fused layers,
# of an engine's own Python (on our H200 590 us), and of a plain loop, 45 kernels and the modules around them.
FUSED_LAYER_S, EAGER_LAYER_S, PLAIN_LAYER_S = 150e-6, 500e-6, 850e-6
PLAIN_EXPERT_S = 85e-6  # of every expert of a layer in a plain loop: nine kernels
COPIES = 2.0  # the cache is read and written to grow by a token
BLOCKS = 108.0  # pieces of attention that a chip works on at once
MACHINE_CHIPS = 8.0  # of a usual machine
_SCHEDULED, _COUNTED = np.array([SCHEDULED_HOST_S]), np.array([SEQUENCE_HOST_S])
_STEP, _BARE_STEP = np.array([STEP_HOST_S]), np.array([BARE_STEP_S])
_REPLAYED, _NOTHING, _SINGLE = np.array([LAYER_HOST_S]), np.zeros(1), np.ones(1)


@dataclass(frozen=True)
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
    graphs: Array = field(default_factory=lambda: np.ones(1))  # 1: decode steps are replayed as a graph, 0: launched one by one
    fused: Array = field(default_factory=lambda: np.zeros(1))  # 1: layers without a graph are few kernels
    plain: Array = field(default_factory=lambda: np.zeros(1))  # 1: a loop in Python over the layers of a library
    scheduled: Array = field(default_factory=lambda: np.zeros(1))  # 1: a scheduler in Python has every sequence in hand
    bare: Array = field(default_factory=lambda: np.zeros(1))  # 1: a compiled loop with no server around it
    apart: Array = field(default_factory=lambda: np.zeros(1))  # 1: each prompt is a pass of its own
    whole: Array = field(default_factory=lambda: np.ones(1))  # ways of the chips over which whole experts are spread

    @cached_property
    def tensor_group(self) -> Group:
        return self.network.group(self.tp)


def prefill(run: Serving, tokens: Array, length: Array, sequences: Array, cached: Array) -> dict[str, Array]:
    """`tokens` new prompt tokens in all, in `sequences` prompts of `length` of which `cached` were there before."""
    model, layers = run.model, run.model.layers
    rows = tokens / np.minimum(run.dp, np.maximum(sequences, 1.0))  # a prompt is on one of them
    local_rows = rows / run.tp
    pairs = pick(model.is_causal, cached + np.maximum(length - cached, 1.0) / 2, length)
    flop = 2.0 * model.score_width * model.seen(pairs) * local_rows
    moved = local_rows * ((2 * model.query_width + model.kv_width) * 2.0)
    element = passes(rows * (36.0 * model.hidden) + local_rows * (4.0 * model.mlp_columns), run.bandwidth)
    return {
        "prefill_matrix": _products(run, tokens, rows, np.maximum(sequences / run.dp, 1.0)),
        "prefill_attention": layers * attention(flop, moved, run.half_peak, run.bandwidth),
        "prefill_element": layers * element,
        "prefill_link": _links(run, tokens, rows),
        "prefill_host": layers * _launches(run),
    }


def decode(run: Serving, sequences: Array, context: Array, checked: Array = _SINGLE) -> dict[str, Array]:
    """A step of `sequences`, of each of which it computes `checked` tokens."""
    model, layers = run.model, run.model.layers
    rows = np.maximum(sequences / run.dp, 1.0)
    tokens, token_rows = sequences * checked, rows * checked
    split = np.minimum(run.tp, np.maximum(model.kv_heads, 1.0))
    seen = model.seen(context) * rows
    cache = seen * (model.kv_width * run.cache_bytes) / split
    scores = checked * seen * (2.0 / 0.4 * model.score_width) / run.tp
    moved = {
        "decode_matrix": _products(run, tokens, token_rows, token_rows),
        "decode_cache": layers * np.maximum(passes(cache, run.bandwidth) * _reads(run, rows), scores / run.half_peak),
        "decode_link": _links(run, tokens, token_rows),
    }
    return moved | {
        "layer_host": layers * pick(run.graphs > 0, _REPLAYED, _NOTHING),
        "launch_host": layers * pick(run.graphs > 0, _NOTHING, _launches(run)),
        "step_host": pick(run.bare > 0, _BARE_STEP, _STEP),
        "sequence_host": _of_a_sequence(run) * sequences / _servers(run),
    }


def _of_a_sequence(run: Serving) -> Array:
    return pick(run.bare > 0, _NOTHING, pick(run.scheduled > 0, _SCHEDULED, _COUNTED))


def _servers(run: Serving) -> Array:
    """Programs that each answer a share of the sequences: one on every machine if attention is data parallel over several."""
    if not has_nonzero(run.dp > 1):
        return _SINGLE
    return pick(run.dp > 1, np.maximum(run.tp * run.dp / MACHINE_CHIPS, 1.0), _SINGLE)


def _launches(run: Serving) -> Array:
    """Of one layer, kernel by kernel."""
    launches = pick((run.graphs > 0) | (run.fused > 0), np.array([FUSED_LAYER_S]), np.array([EAGER_LAYER_S]))
    if not has_nonzero(run.plain):
        return launches
    experts = pick(run.model.has_experts, PLAIN_EXPERT_S * run.model.experts * run.model.expert_layers, _NOTHING)
    return pick(run.plain > 0, PLAIN_LAYER_S + experts, launches)


def _reads(run: Serving, rows: Array) -> Array:
    """How many times the time of one reading a step spends on the cache."""
    if not has_nonzero(run.plain):
        return np.ones(1)
    model = run.model
    heads = np.maximum(model.query_width * 2.0 * model.kv_heads / np.maximum(model.kv_width, 1.0), 1.0)
    shared = np.maximum(heads / np.maximum(model.kv_heads, 1.0), 1.0)
    idle = np.maximum(BLOCKS * run.tp / (heads * rows), 1.0)
    return pick(run.plain > 0, shared * idle + COPIES, np.ones(1))


def _products(run: Serving, tokens: Array, rows: Array, ends: Array) -> Array:
    """All matrices over `tokens` tokens, of which a chip has `rows`, and the head over `ends` rows of a chip."""
    model = run.model
    projections = product(rows, model.attention_columns / run.tp, model.hidden, run.peak, run.bandwidth, run.weight_bytes)
    head = product(ends, model.head_columns / run.tp, model.hidden, run.peak, run.bandwidth, run.head_bytes)
    return model.layers * (projections + _feed_forward(run, tokens, rows)) + head


def _links(run: Serving, tokens: Array, rows: Array) -> Array:
    """Two all-reduces per layer, tokens that travel to experts, and steps between stages."""
    size = rows * (2.0 * run.model.hidden)
    link = run.model.layers * (2.0 * run.tensor_group.all_reduce(size))
    if run.model.routed and has_nonzero(run.dp != 1):
        link = link + run.model.layers * _exchange(run, tokens)
    if has_nonzero(run.pp != 1):
        link = link + (run.pp - 1.0) * run.network.send(size, run.tp * run.dp)
    return link


def _feed_forward(run: Serving, tokens: Array, rows: Array) -> Array:
    """One layer's feed-forward over `tokens` tokens: dense, or the experts they reach, spread over all chips."""
    model = run.model
    if model.has_experts.all():
        return _experts(run, tokens)
    dense = product(rows, model.mlp_columns / run.tp, model.hidden, run.peak, run.bandwidth, run.weight_bytes)
    return np.where(model.has_experts, _experts(run, tokens), dense) if model.routed else dense


def _experts(run: Serving, tokens: Array) -> Array:
    model, ways = run.model, run.tp * run.dp
    read_weights = (model.weights_met(tokens) - model.attention_weights) / ways
    expert_rows = tokens * model.active / np.maximum(model.experts_met(tokens), 1.0)  # rows per expert that has any
    compute = 2.0 * tokens * model.mlp_weights / ways / (run.peak * 0.8 * np.maximum(expert_rows, 1e-9) / (expert_rows + 48.0))
    columns = np.maximum(model.mlp_width, 1.0) * np.minimum(run.whole, ways) / ways  # of one expert, on one chip
    compute = compute * (1.0 + NARROW / columns)
    return np.maximum(compute, passes(read_weights * run.weight_bytes, run.bandwidth))


def _exchange(run: Serving, tokens: Array) -> Array:
    """Tokens that travel to their experts and back, where experts are spread beyond the tensor group."""
    ways = run.tp * run.dp
    size = tokens / ways * run.model.active * run.model.hidden * 2.0
    return np.where(run.model.has_experts & (run.dp > 1), 2.0 * run.network.all_to_all(size, ways), 0.0)
