"""Time of one optimiser step of a transformer, as a sum of named terms.

  step = matrix + attention + elementwise + optimizer + communication + bubble + host

With b sequences of s tokens per micro-batch, m micro-batches, t tensor, p pipeline, c context ways, n = b s / c tokens:
  matrix       m L/p passes x (projections, feed-forward, head) over n rows, each matrix 1/t wide; passes = 3 forward
               equivalents, 4 with full recomputation, 2 + r with frozen weights (LoRA: no gradient of the base);
               selective recomputation repeats norms and activation functions only, as the memory model keeps the rest
  attention    forward scores x (1 + 2.5 for the backward pass) (Dao 2023, arXiv:2307.08691)
  elementwise  norms, activations, residuals, sorting token copies by expert, and what adapters read and write beside their
               matrices (`_adapters`): bytes over bandwidth
  communication  tensor: 4 all-reduces of n h values per layer and micro-batch; data: gradients once, or FSDP gathers per
               micro-batch, over all chips that hold the same weights, less what hides behind computation; experts: 4
               all-to-alls; context: ring of keys and values, mostly hidden
  bubble       (p - 1) / (m v) of the work of the micro-batches, v = interleaving (Narayanan 2021, arXiv:2104.04473)
  host         launches the chip waits for when its kernels are short
Of an encoder-decoder s is an input and its target together; a layer has p n rows, the head those of the target, and cross
attention half as many norms, all-reduces and launches again as a layer has (`transformer.pair_layer`).
Limits: stages are even, routing is balanced, nothing is offloaded unless the stack's factor has learnt it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, has_nonzero, pick, soft_one
from chipwise.perf.collective import Group, Network
from chipwise.perf.operators import attention, exposed, passes, product
from chipwise.perf.transformer import Transformers

TERMS = ("matrix", "attention", "elementwise", "unpack", "optimizer", "communication", "bubble", "host")
BASES = (
    "matrix",
    "attention",
    "elementwise",
    "optimizer",
    "tensor",
    "data",
    "expert",
    "dispatch",
    "unpack",
    "adapters",
    "host",
)  # what a fit can scale
_BACKWARD_ATTENTION = 2.5
EXPOSED_TENSOR, EXPOSED_NEAR, EXPOSED_FAR = 0.25, 0.2, 0.5  # what tuned stacks leave visible of these exchanges
EXPOSED_TENSOR_FAR = 0.75  # of all-reduces between machines: every layer waits for them
_SCORE_PASSES = 5.0  # scores, mask, softmax, dropout and back, where each is a kernel
_DISPATCH_BYTES = 48.0  # per value of a token copy sent to an expert: sorted, joined and back, forward and backward
# Bytes per value that goes into a matrix with an adapter and comes out of it, forward and backward. Into: read by the small
# product (2); its two gradients and the sum of both paths (10). Out: the small product's result and the sum (8); its two
# gradients (4). Kernel by kernel also two casts of 6 bytes in between (adapters have 32 bits, products 16) either way, and the
# scaling (4) either way. Dropout reads, writes and keeps a mask.
_INTO, _OUT_OF, _CASTS, _SCALES = (2.0, 10.0), (8.0, 4.0), 12.0, 4.0
_DROPOUT, _DROPOUT_CAST = 5.0, 4.0  # of 16 bits, and what 32 bits add
_ADAPTER_LAUNCHES, _CAST_LAUNCHES = 2.0, 4.0  # kernels beside a matrix, forward; and where nothing is fused
_LAUNCHES = 60.0  # kernels of one layer's forward pass, uncompiled
_LAUNCH_S = 9e-6
HOST_BYTES_PER_S = 15e9  # per chip, optimiser on the processor
_HOST, _UNIT = np.array([HOST_BYTES_PER_S]), np.ones(1)
_CLOSE, _FAR = np.array([EXPOSED_TENSOR]), np.array([EXPOSED_TENSOR_FAR])


@dataclass(frozen=True)
class Steps:
    """Columns that describe training runs on hardware."""

    model: Transformers
    peak: Array  # FLOP/s of the matrix unit in the precision of the products
    half_peak: Array  # the same in 16 bits, for attention
    bandwidth: Array
    network: Network
    chips: Array
    seq: Array
    micro_batch: Array
    global_batch: Array
    tp: Array
    pp: Array
    cp: Array
    ep: Array
    shard: Array
    interleave: Array
    recompute: Array  # share of the forward products, attention and exchanges that is done again
    norms_again: Array  # share of the forward element-wise work that is
    frozen: Array  # 1: weights have no gradient (LoRA)
    adapted: Array  # adapters beside no matrices (0), those of attention (1), all (2)
    loose: Array  # 1: kernel by kernel, so that casts and sums of adapters are passes of their own
    dropout: Array  # 1: adapters drop some of their inputs
    weight_bytes: Array  # per stored weight element read in a pass
    unfused: Array  # 1: scores are written to memory and read again, as before fused attention
    packed: Array  # 1: frozen weights are stored in 4 bits and unpacked at each use
    filled: Array  # share of positions that hold tokens
    offload: Array  # 1: optimiser state in host memory

    @cached_property
    def dp(self) -> Array:
        return np.maximum(self.chips / (self.tp * self.pp * self.cp), 0.5)

    @cached_property
    def micro_batches(self) -> Array:
        return np.maximum(self.global_batch / (self.dp * self.micro_batch), 1.0)

    @cached_property
    def gathers(self) -> NDArray[np.bool_]:
        """Weights are sharded too, and gathered for every micro-batch."""
        return np.asarray(self.shard >= 3)

    @property
    def tokens(self) -> Array:
        """Per optimiser step, over all chips."""
        return self.global_batch * self.seq


def bases(run: Steps) -> dict[str, Array]:
    """Seconds per micro-batch and stage of each kind of work, before overlap: what `compose` joins into a step."""
    model, hidden = run.model, run.model.hidden
    tokens = run.micro_batch * run.seq * run.filled / run.cp
    rows = tokens * model.token_share
    width = np.maximum(run.tp, 0.5)
    group = np.maximum(width, 1.0)
    layers = model.layers / run.pp
    worked = layers * (3.0 - run.frozen + run.recompute)  # layers times passes
    touched = layers * (3.0 - run.frozen + run.norms_again)
    trained_again = 4.0 + 2.0 * run.recompute
    activations = rows * (2.0 * hidden)
    stored = model.parameters / (width * run.pp)
    expert: Array = np.zeros(1)
    dispatch: Array = np.zeros(1)
    if model.routed:
        stored = stored / pick(model.has_experts, np.maximum(run.ep, 1.0), _UNIT)
        routed = model.expert_layers * layers
        expert = routed * trained_again * _exchange(run, activations / group)
        moved = activations * (_DISPATCH_BYTES / 2.0) * model.active / group
        dispatch = routed * worked / layers / 3.0 * passes(moved, run.bandwidth)
    trained = pick(run.frozen > 0, 0.01 * stored, stored)
    replicas = np.maximum(run.dp, 1.0) * run.cp  # chips of a context group hold the same weights
    sharded = np.where(run.shard >= 1, replicas, 1.0)
    speed = pick(run.offload > 0, _HOST, run.bandwidth)
    visible = pick(group > run.network.domain, _FAR, _CLOSE)
    tensor = visible * layers * trained_again * run.network.group(group).all_reduce(activations)
    if model.paired:
        tensor = tensor * (1.0 + model.crossing / 2.0)
    if has_nonzero(run.cp > 1):
        ring = run.network.gather(rows * model.kv_width * 2.0 / width * run.cp, run.cp, width)
        tensor = tensor + EXPOSED_TENSOR * 3.0 * layers * ring
    unpack: Array = np.zeros(1)
    if has_nonzero(run.packed):
        unpack = pick(run.packed > 0, worked / layers * passes(stored * 4.6, run.bandwidth), unpack)
    adapters, launches = np.zeros(1), np.array([_LAUNCHES])
    if has_nonzero(run.adapted):
        adapters, more = _adapters(run, rows, layers)
        launches = launches + more
    return {
        "matrix": worked * _products(run, rows, tokens * model.headed, width),
        "attention": layers * _attention(run, rows, width),
        "elementwise": touched * passes(_touched(run, rows, width), run.bandwidth),
        "optimizer": passes(trained * 28.0 / sharded, speed),
        "tensor": tensor,
        "data": _shared(run, stored, trained, run.network.group(replicas, group)),
        "expert": expert,
        "dispatch": dispatch,
        "unpack": unpack,
        "adapters": adapters,
        "host": worked * (launches * _LAUNCH_S) * model.sublayers,
    }


def _adapters(run: Steps, rows: Array, layers: Array) -> tuple[Array, Array]:
    """Seconds that adapters add beside their matrices, whose small products wait for memory, and kernels of a layer's pass."""
    model = run.model
    everywhere = (run.adapted > 1) & ~model.has_experts
    matrices = np.where(everywhere, model.mlp_weights / np.maximum(model.hidden * model.mlp_width, 1.0), 0.0)
    mlp = matrices > 0
    into = 3.0 * model.hidden + model.query_width + mlp * ((matrices - 1.0) * model.hidden + model.mlp_width)
    out_of = model.query_width + model.kv_width + model.hidden + mlp * ((matrices - 1.0) * model.mlp_width + model.hidden)
    fixed = _CASTS * run.loose + run.dropout * (_DROPOUT + _DROPOUT_CAST * run.loose)
    scaled = _SCALES * run.loose
    forward, backward = (into * (_INTO[at] + fixed) + out_of * (_OUT_OF[at] + scaled) for at in (0, 1))
    moved = rows * (forward * (1.0 + run.recompute) + backward) / np.maximum(run.tp, 1.0)
    some = run.adapted > 0
    launches = (4.0 + matrices) * (_ADAPTER_LAUNCHES + _CAST_LAUNCHES * run.loose)
    return some * layers * model.sublayers * passes(moved, run.bandwidth), some * launches


def _products(run: Steps, rows: Array, headed: Array, width: Array) -> Array:
    """One layer's matrices in one pass, with its share of the head, which `headed` rows meet."""
    model, hidden = run.model, run.model.hidden

    def gemm(m: Array, n: Array) -> Array:
        return product(m, n, hidden, run.peak, run.bandwidth, run.weight_bytes)

    seconds = gemm(rows, model.attention_columns / width) + gemm(headed, model.head_columns / width) / model.layers
    if not model.routed:
        return seconds + gemm(rows, model.mlp_columns / width)
    ways = np.maximum(run.ep, 1.0)
    apart = model.has_experts & (run.ep > 1)  # tokens are spread over the tensor group, experts are not cut
    share = np.where(model.has_experts, model.active * ways / np.maximum(model.experts, 1.0), 1.0)
    local = np.where(model.has_experts, np.maximum(model.experts / ways, 1.0), 1.0)
    columns = model.mlp_columns / np.where(model.has_experts, np.maximum(model.active, 1.0), 1.0)
    expert_rows = np.maximum(rows * share * np.where(apart, 1.0 / width, 1.0), 1e-3)
    return seconds + local * gemm(expert_rows, columns / np.where(apart, 1.0, width))


def _attention(run: Steps, rows: Array, width: Array) -> Array:
    """One layer forward, backward, and once more where it is recomputed."""
    model = run.model
    seen = model.seen(pick(model.is_causal, run.seq / 2, run.seq))
    local_rows = rows / width
    score = 2.0 * model.score_width * seen * local_rows
    cache = local_rows * ((2 * model.query_width + model.kv_width) * 2.0)
    if model.paired:
        cache = cache + local_rows * ((2 * model.query_width * model.crossing + model.kv_width * model.crossed) * 2.0)
    again = np.minimum(run.recompute * 3.0, 1.0)
    return (1.0 + _BACKWARD_ATTENTION + again) * attention(score, cache, run.half_peak, run.bandwidth)


def _touched(run: Steps, rows: Array, width: Array) -> Array:
    """Bytes that one layer's element-wise work reads and writes in one pass, with its share of the logits."""
    model = run.model
    norms = 36.0 * model.hidden / np.maximum(width, 1.0)  # split over the sequence too, as Megatron does
    logits = 10.0 * model.vocab / model.layers
    if model.paired:
        norms, logits = norms * (1.0 + model.crossing / 2.0), logits * model.headed / model.token_share
    row_bytes = norms + (4.0 * model.mlp_columns + logits) / width
    if has_nonzero(run.unfused):
        heads = model.query_width / np.maximum(model.kv_width / (2.0 * np.maximum(model.kv_heads, 1.0)), 1.0)
        pairs = model.seen(run.seq)
        if model.paired:
            pairs = pairs * model.score_width / (2.0 * model.query_width)
        row_bytes = row_bytes + run.unfused * _SCORE_PASSES * heads / width * pairs * 2.0
    return rows * row_bytes


def _exchange(run: Steps, sent: Array) -> Array:
    """What is seen of one all-to-all between experts; nothing where there are none."""
    near, far = run.network.group(np.maximum(run.ep, 1.0)).all_to_all(sent * run.model.active)
    return pick(run.model.has_experts, EXPOSED_NEAR * near + EXPOSED_FAR * far, np.zeros(1))


def _shared(run: Steps, stored: Array, trained: Array, group: Group) -> Array:
    """Gradients once per step or, where weights are sharded too, two gathers and a scatter per micro-batch."""
    reduced = pick(run.frozen > 0, np.zeros(1), group.all_reduce(trained * 2.0))
    if not has_nonzero(run.gathers):
        return reduced
    mean = (stored * run.weight_bytes + trained) * (2.0 / 3.0)  # of the three: time is a straight line over size
    return pick(run.gathers, 3.0 * group.gather(mean) * run.micro_batches, reduced)


def compose(run: Steps, base: dict[str, Array]) -> dict[str, Array]:
    """Terms of one step from scaled bases: overlap, bubble, and waiting for the host."""
    micro_batches = run.micro_batches
    element = base["elementwise"] + base["dispatch"] + base["adapters"]
    chip = base["unpack"] + base["matrix"] + base["attention"] + element
    sent = base["tensor"] + base["expert"]
    busy = chip + sent
    waiting = busy * (soft_one(base["host"] / np.maximum(busy, 1e-12)) - 1.0)
    elapsed = busy + waiting
    hides = elapsed * pick(run.gathers, micro_batches, 0.6 * np.minimum(micro_batches, run.pp))
    return {
        "matrix": micro_batches * base["matrix"],
        "attention": micro_batches * base["attention"],
        "elementwise": micro_batches * element,
        "unpack": micro_batches * base["unpack"] if has_nonzero(base["unpack"]) else base["unpack"],
        "optimizer": base["optimizer"],
        "communication": micro_batches * sent + exposed(base["data"], hides, 0.8),
        "bubble": (run.pp - 1.0) / np.maximum(run.interleave, 1.0) * elapsed,
        "host": micro_batches * waiting,
    }


def flop_per_token(model: Transformers, seq: Array, frozen: Array, full_attention: Array) -> Array:
    """Model FLOP of training one token: 6 per active weight (4 with frozen weights) and 6 or 3 times the scores."""
    weights = model.layers * (model.attention_weights + model.mlp_weights) * model.token_share + model.head * model.headed
    pairs = model.seen(pick(model.is_causal & (full_attention < 0.5), seq / 2, seq))
    return (6.0 - 2.0 * frozen) * weights + 6.0 * model.score_width * model.layers * pairs * model.token_share
