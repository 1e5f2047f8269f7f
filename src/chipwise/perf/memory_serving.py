"""Bytes per chip while serving a transformer, and how many tokens and sequences fit beside the weights.

Symbols: T tokens of one forward pass, h hidden, k width of keys and values, L layers of a stage, V vocabulary, b_w and b_k
bits of a weight and of a cached value:

    weights     layers * b_w / 8, embedding, head and norms in 16 bits where only the layers are quantised (all but fp32 and
                GGUF); of experts in 4-bit floats only the experts are, and attention stays in 16 bits
    kv cache    L * k / min(tp, kv heads) * b_k / 8 per token; tokens in whole pages, a shared prefix once
    activations T * (3h + the larger of 2w + 1.5k and 2f), 16 bits each: input, residual, norm; q and qkv, or gate and up
    logits      sequences * V * 10 (plain greedy PyTorch: 2)

What an engine reserves differs: vLLM takes a share of the whole chip (0.9) for everything it knows of, SGLang a share for
weights and cache together, TensorRT-LLM a share of what is free once the model is loaded (0.9), llama.cpp and plain PyTorch
what is asked. Defaults of vLLM 0.12, SGLang 0.5 and TensorRT-LLM 1.0 as their documentation states; memory of CUDA graphs is
a rule of thumb from vLLM's logs (0.5 GB for 32 layers).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chipwise.perf.arrays import Array, column
from chipwise.perf.memory import CUBLAS, Memory, context_bytes, in_chunks, shares
from chipwise.perf.setup import KV_BITS, WEIGHT_BITS, ServingSetup
from chipwise.perf.transformer import Transformers
from chipwise.units import MIB

GRAPH_BYTES_PER_LAYER = 16 * MIB
FRAGMENTS = 0.02  # of weights and activations; the cache is one piece
_WHOLE_FILE = ("fp32", "bf16", "fp16", "q8_0", "q6_k", "q5_k_m", "q4_k_m")  # bits hold for embedding and head too
# Checkpoints of AWQ and GPTQ have 16 bits of scale and 4 of zero for a group of 128; plain int4 has 16 of both.
_STORED_BITS = WEIGHT_BITS | dict.fromkeys(("awq", "gptq"), 4.0 + (16 + 4) / 128)
# Of experts: a scale of 8 bits for 32 (MX) or for 16 (NV) of them. Who says only fp4 gets MX, as those published so have it.
_EXPERT_BITS = {"mxfp4": 4.25, "fp4": 4.25, "nvfp4": 4.5}


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """How an engine deals with memory."""

    share: float  # of what `share_of` names
    share_of: str  # "chip": everything; "static": weights and cache; "free": what the model leaves
    page: int  # tokens per page of the cache; 1: none
    batched_tokens: float  # of one forward pass; infinity: all prompts at once
    sequences: float  # it makes room for the logits of so many; infinity: of the batch
    logit_bytes: float  # 2: the 16-bit logits; 10: an fp32 copy and one sorted or scaled copy of that besides
    graphs: bool
    shares_prefix: bool


# Of software that holds the whole batch at once and pages nothing; and of engines that compile for fixed shapes.
_PLAIN = EngineMemory(
    share=1.0,
    share_of="chip",
    page=1,
    batched_tokens=np.inf,
    sequences=np.inf,
    logit_bytes=6,
    graphs=False,
    shares_prefix=False,
)
_COMPILED = replace(_PLAIN, share=0.95, batched_tokens=4096)
_PAGED = EngineMemory(
    share=0.9, share_of="chip", page=16, batched_tokens=8192, sequences=256, logit_bytes=10, graphs=True, shares_prefix=True
)
ENGINE = {
    "vllm": _PAGED,
    "sglang": replace(_PAGED, share=0.88, share_of="static", page=1),
    "tensorrt-llm": replace(_PAGED, share_of="free", page=32),
    "llama.cpp": replace(_PLAIN, batched_tokens=512, sequences=8, logit_bytes=4),
    "transformers": _PLAIN,
    "pytorch": replace(_PLAIN, logit_bytes=2),
    "neuron": _COMPILED,
    "jetstream": _COMPILED,
    "ipex": _PLAIN,
    "openvino": _PLAIN,
    "tgi": _PAGED,
    "other": replace(_PAGED, shares_prefix=False),
}


def _engine(name: str) -> EngineMemory:
    return ENGINE.get(name, ENGINE["other"])


def _habit(setup: ServingSetup, name: str) -> Array:
    return setup.engine.look_up(lambda engine: float(getattr(_engine(engine), name)))


def weight_bytes(model: Transformers, setup: ServingSetup) -> Array:
    """Stored weights per chip of the fullest stage."""
    portion = shares(model, setup.attention_ways, setup.ep * setup.attention_dp, setup.tp)
    fullest = np.ceil(model.experts / setup.tp) * setup.tp / np.maximum(model.experts, 1.0)  # chips hold whole experts
    uneven = np.where((setup.attention_dp > 1) & (model.experts > 0), fullest, 1.0)
    inside = setup.precision_weights.look_up(lambda name: _STORED_BITS.get(name, 16.0)) / 8
    experts = setup.precision_weights.look_up(lambda name: _EXPERT_BITS.get(name, _STORED_BITS.get(name, 16.0))) / 8
    only_experts = setup.precision_weights.look_up(lambda name: float(name in _EXPERT_BITS)) * (model.experts > 0)
    inside = np.where(only_experts > 0, 2.0, inside)
    outside = setup.precision_weights.look_up(lambda name: (WEIGHT_BITS[name] if name in _WHOLE_FILE else 16.0) / 8)
    layers = np.ceil(model.layers / setup.pp)
    tied = np.where(setup.pp > 1, 0.0, portion.tied)  # two stages hold a copy each
    ends = np.where(setup.pp > 1, np.maximum(portion.table, portion.head), portion.table + portion.head * (1.0 - tied))
    return layers * (inside * portion.matrices + experts * portion.experts * uneven) + outside * (layers * portion.norms + ends)


def kv_bytes_per_token(model: Transformers, setup: ServingSetup) -> Array:
    """Cached bytes per token and chip, all layers of a stage, as if no layer had a window."""
    bits = setup.precision_kv.look_up(lambda name: KV_BITS.get(name, 16.0))
    ways = np.minimum(setup.attention_ways, np.maximum(model.kv_heads, 1.0))
    return np.ceil(model.layers / setup.pp) * model.kv_width / ways * bits / 8


def kv_bytes(model: Transformers, setup: ServingSetup) -> Array:
    """Cached bytes per chip when every sequence of the batch has its full context."""
    page = _habit(setup, "page")
    shared = _habit(setup, "shares_prefix") * setup.prefix_len
    once = np.floor(shared / page) * page  # only whole pages are shared
    own = model.seen(np.ceil((setup.context - once) / page) * page + once) - model.seen(once)
    return (setup.local_batch * own + model.seen(once)) * kv_bytes_per_token(model, setup)


def serving_memory(model: Transformers, setup: ServingSetup, kind: str = "gpu") -> Memory:
    """Bytes per chip of the fullest stage with the whole batch in flight."""
    return in_chunks(_serving, model, setup, context_bytes(kind, setup.chips))


def _serving(model: Transformers, setup: ServingSetup, context: Array) -> Memory:
    weights = weight_bytes(model, setup)
    tokens = _tokens(setup)
    c = 2.0
    ways = np.minimum(setup.attention_ways, np.maximum(model.kv_heads, 1.0))
    wide, keys = model.query_width / setup.attention_ways, model.kv_width / ways
    routed = np.where(model.experts > 0, model.active, 1.0) * model.mlp_width / setup.tp
    inner = np.maximum(2.0 * wide + 1.5 * keys, 2.0 * routed + np.where(model.experts > 0, model.active * model.hidden, 0.0))
    activations = c * tokens * (3.0 * model.hidden + inner)
    sequences = _habit(setup, "sequences")
    logits = np.where(np.isinf(sequences), setup.local_batch, sequences) * np.where(model.head > 0, model.vocab, 0.0)
    logits = logits * _habit(setup, "logit_bytes")
    between = np.where(setup.tp > 1, c * tokens * model.hidden, 0.0) + np.where(setup.pp > 1, c * tokens * model.hidden, 0.0)
    graphs = _habit(setup, "graphs") * setup.cuda_graphs
    captured = np.maximum(graphs, setup.batched_tokens <= setup.batch)  # decoding alone is captured; graphs have their own
    workspace = CUBLAS * (1.0 + captured) + graphs * GRAPH_BYTES_PER_LAYER * np.ceil(model.layers / setup.pp)
    nothing = column(0.0)
    return Memory(
        weights=weights,
        weight_copies=nothing,
        gradients=nothing,
        optimizer=nothing,
        activations=activations,
        logits=logits,
        kv_cache=kv_bytes(model, setup),
        communication=between,
        workspace=workspace,
        context=context,
        fragmentation=FRAGMENTS * (weights + activations),
    )


def _tokens(setup: ServingSetup) -> Array:
    """Tokens of the largest forward pass."""
    usual = _habit(setup, "batched_tokens")
    limit = np.where(np.isnan(setup.batched_tokens), usual, setup.batched_tokens)
    return np.maximum(np.minimum(limit, setup.local_batch * setup.input_len), setup.local_batch)


def kv_room(memory: Memory, setup: ServingSetup, capacity: Array) -> Array:
    """Bytes that the engine leaves for its cache on a chip of `capacity` bytes; negative: missing for the rest already."""
    rest = memory.total - memory.kv_cache
    usual = _habit(setup, "share")
    share = np.where(np.isnan(setup.memory_share), usual, setup.memory_share)
    static = setup.engine.look_up(lambda name: float(_engine(name).share_of == "static"))
    free = setup.engine.look_up(lambda name: float(_engine(name).share_of == "free"))
    by_chip = share * capacity - (rest - memory.workspace + CUBLAS)  # graphs are captured outside of the share
    by_static = share * capacity - memory.weights
    by_free = share * (capacity - rest)
    wanted = np.where(static > 0, by_static, np.where(free > 0, by_free, by_chip))
    return np.minimum(wanted, capacity - rest)


def kv_budget_bytes(model: Transformers, setup: ServingSetup, capacity: Array, kind: str = "gpu") -> Array:
    """As `kv_room`, 0 where nothing is left."""
    return np.maximum(kv_room(serving_memory(model, setup, kind), setup, capacity), 0.0)
