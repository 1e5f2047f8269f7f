"""Time of one optimiser step of a transformer, as a sum of named terms.

  step = matrix + attention + elementwise + optimizer + communication + bubble + host

With b sequences of s tokens per micro-batch, m micro-batches, t tensor, p pipeline, c context ways, n = b s / c tokens:
  matrix       m L/p passes x (projections, feed-forward, head) over n rows, each matrix 1/t wide; passes = 3 forward
               equivalents, 4 with full recomputation, 2 + r with frozen weights (LoRA: no gradient of the base)
  attention    forward scores x (1 + 2.5 for the backward pass) (Dao 2023, arXiv:2307.08691)
  elementwise  norms, activations, residuals: bytes over bandwidth
  communication  tensor: 4 all-reduces of n h values per layer and micro-batch; data: gradients once, or FSDP gathers per
               micro-batch, less what hides behind computation; experts: 4 all-to-alls; context: ring of keys and values
  bubble       (p - 1) / (m v) of the work of the micro-batches, v = interleaving (Narayanan 2021, arXiv:2104.04473)
  host         launches the chip waits for when its kernels are short
Limits: stages are even, routing is balanced, nothing is offloaded unless the stack's factor has learnt it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.perf.collective import Network
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
    "unpack",
    "host",
)  # what a fit can scale
_BACKWARD_ATTENTION = 2.5
EXPOSED_TENSOR, EXPOSED_NEAR, EXPOSED_FAR = 0.25, 0.2, 0.5  # what tuned stacks leave visible of these exchanges
_SCORE_PASSES = 5.0  # scores, mask, softmax, dropout and back, where each is a kernel
_LAUNCHES = 60.0  # kernels of one layer's forward pass, uncompiled
_LAUNCH_S = 9e-6
HOST_BYTES_PER_S = 15e9  # per chip, optimiser on the processor


@dataclass(frozen=True, slots=True)
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
    recompute: Array
    frozen: Array  # 1: weights have no gradient (LoRA)
    weight_bytes: Array  # per stored weight element read in a pass
    unfused: Array  # 1: scores are written to memory and read again, as before fused attention
    packed: Array  # 1: frozen weights are stored in 4 bits and unpacked at each use
    filled: Array  # share of positions that hold tokens
    offload: Array  # 1: optimiser state in host memory

    @property
    def dp(self) -> Array:
        return np.maximum(self.chips / (self.tp * self.pp * self.cp), 0.5)

    @property
    def micro_batches(self) -> Array:
        return np.maximum(self.global_batch / (self.dp * self.micro_batch), 1.0)

    @property
    def tokens(self) -> Array:
        """Per optimiser step, over all chips."""
        return self.global_batch * self.seq


def bases(run: Steps) -> dict[str, Array]:
    """Seconds per micro-batch and stage of each kind of work, before overlap: what `compose` joins into a step."""
    model = run.model
    rows = run.micro_batch * run.seq * run.filled / run.cp
    width = np.maximum(run.tp, 0.5)
    layers = model.layers / run.pp
    passes_made = 3.0 - run.frozen + run.recompute
    hidden = model.hidden

    def gemm(m: Array, n: Array, k: Array) -> Array:
        return product(m, n, k, run.peak, run.bandwidth, run.weight_bytes)

    projections = gemm(rows, model.attention_weights / hidden / width, hidden)
    spread = np.where((model.experts > 0) & (run.ep > 1), 1.0, width)
    per_expert = rows * np.where(
        model.experts > 0, model.active * np.maximum(run.ep, 1.0) / np.maximum(model.experts, 1.0), 1.0
    )
    local = np.where(model.experts > 0, np.maximum(model.experts / np.maximum(run.ep, 1.0), 1.0), 1.0)
    columns = model.mlp_weights / hidden / np.where(model.experts > 0, np.maximum(model.active, 1.0), 1.0)
    share = np.where((model.experts > 0) & (run.ep > 1), 1.0 / width, 1.0)  # tokens are spread over the tensor group
    feed = local * gemm(np.maximum(per_expert * share, 1e-3), columns / spread, hidden)
    head = gemm(rows, np.maximum(model.head / hidden, 1.0) / width, hidden) / model.layers
    matrix = layers * passes_made * (projections + feed + head)
    seen = model.seen(np.where(model.causal > 0, run.seq / 2, run.seq))
    score = 2.0 * model.score_width * seen * rows / width
    again = np.minimum(run.recompute * 3.0, 1.0)
    pairs = layers * (1.0 + _BACKWARD_ATTENTION + again)
    cache = rows * (2 * model.query_width + model.kv_width) * 2.0 / width
    attend = pairs * attention(score, cache, run.half_peak, run.bandwidth)
    heads = model.query_width / np.maximum(model.kv_width / (2.0 * np.maximum(model.kv_heads, 1.0)), 1.0)
    scores = run.unfused * _SCORE_PASSES * heads / width * model.seen(run.seq) * 2.0
    touched = rows * scores + rows * (18.0 * hidden + 6.0 * model.mlp_weights / hidden / 3.0 / width) * 2.0
    logits = rows * model.vocab * 10.0 / width / model.layers
    element = layers * passes_made * passes(touched + logits, run.bandwidth)
    held = model.parameters / (width * run.pp * np.where(model.experts > 0, np.maximum(run.ep, 1.0), 1.0))
    trained = np.where(run.frozen > 0, 0.01 * held, held)
    sharded = np.where(run.shard >= 1, np.maximum(run.dp, 1.0), 1.0)
    optimizer = passes(trained * 28.0 / sharded, np.where(run.offload > 0, HOST_BYTES_PER_S, run.bandwidth))
    activations = rows * hidden * 2.0
    tensor = EXPOSED_TENSOR * layers * (4.0 + 2.0 * run.recompute) * run.network.all_reduce(activations, np.maximum(width, 1.0))
    ring: Array = np.zeros(1)
    if np.any(run.cp > 1):
        ring = layers * 3.0 * run.network.gather(rows * model.kv_width * 2.0 / width * run.cp, run.cp, width)
    expert: Array = np.zeros(1)
    if np.any(model.experts):
        sent = activations * model.active / np.maximum(width, 1.0)
        near, far = run.network.all_to_all_parts(sent, np.maximum(run.ep, 1.0))
        exchanged = EXPOSED_NEAR * near + EXPOSED_FAR * far
        expert = np.where(model.experts > 0, layers * (4.0 + 2.0 * run.recompute) * exchanged, 0.0)
    stride = np.maximum(width, 1.0) * run.cp
    gradients = np.where(run.frozen > 0, 0.0, run.network.all_reduce(trained * 2.0, np.maximum(run.dp, 1.0), stride))
    gathered = run.network.gather(held * run.weight_bytes, np.maximum(run.dp, 1.0), stride)
    scattered = run.network.gather(trained * 2.0, np.maximum(run.dp, 1.0), stride)
    full = 2.0 * gathered + scattered
    data = np.where(run.shard >= 3, full * run.micro_batches, gradients)
    unpack = np.where(run.packed > 0, passes_made * passes(held * 4.6, run.bandwidth), 0.0)
    host = layers * passes_made * _LAUNCHES * _LAUNCH_S * np.ones_like(matrix)
    return {
        "matrix": matrix, "attention": attend, "elementwise": element, "optimizer": optimizer, "tensor": tensor + ring,
        "data": data, "expert": expert, "unpack": unpack, "host": host,
    }  # fmt: skip


def compose(run: Steps, base: dict[str, Array]) -> dict[str, Array]:
    """Terms of one step from scaled bases: overlap, bubble, and waiting for the host."""
    many = run.micro_batches
    chip = base["matrix"] + base["attention"] + base["elementwise"] + base["unpack"]
    busy = chip + base["tensor"] + base["expert"]
    ratio = base["host"] / np.maximum(busy, 1e-12)
    waiting = busy * ((1.0 + ratio**4) ** 0.25 - 1.0)
    elapsed = busy + waiting
    hides = np.where(run.shard >= 3, many * elapsed, 0.6 * elapsed * np.minimum(many, run.pp))
    data = exposed(base["data"], hides, 0.8)
    communication = many * (base["tensor"] + base["expert"]) + data
    bubble = (run.pp - 1.0) / np.maximum(run.interleave, 1.0) * elapsed
    return {
        "matrix": many * base["matrix"],
        "attention": many * base["attention"],
        "elementwise": many * base["elementwise"],
        "unpack": many * base["unpack"],
        "optimizer": base["optimizer"],
        "communication": communication,
        "bubble": bubble,
        "host": many * waiting,
    }


def flop_per_token(model: Transformers, seq: Array, frozen: Array, full_attention: Array) -> Array:
    """Model FLOP of training one token: 6 per active weight (4 with frozen weights) and 6 or 3 times the scores."""
    weights = model.layers * (model.attention_weights + model.mlp_weights) + model.head
    pairs = model.seen(np.where((model.causal > 0) & (full_attention < 0.5), seq / 2, seq))
    return (6.0 - 2.0 * frozen) * weights + 3.0 * 2.0 * model.score_width * pairs * model.layers
