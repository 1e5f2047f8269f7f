"""Bytes per chip while training a transformer, at the moment of a step when most is held.

Symbols: t tokens of a micro-batch on one chip, h hidden, w width of all query heads, k width of keys and values, f what the
feed-forward keeps (3 widths when gated, 2 when not), V vocabulary, L layers of a stage. c bytes of a computed value (2; 4 in
fp32), r bytes of the residual stream (4 where weights are fp32: autocast does not cast the embedding, and additions follow it;
c under FSDP, which casts all parameters of a block).

What a block keeps for its backward pass, bytes per token and layer, was read from the graphs that torch.compile 2.11 splits
for a Llama block (fused qkv, fused attention):

    compiled    r*h + c*(3h + 4w + 1.5k + f) + 4 per head   input; two normed inputs, attention's output; q, the heads'
                                                            output in two layouts (cuDNN), all of qkv, of which v is a
                                                            view, and k once more; gate, up and their product
    adapters    r*h + c*(3h + 3w + k + f) + 4 per head      compiled; q, k and v are sums of two products, no view of qkv;
                + c*rank per adapter                        what each adapter's first matrix gives
    fp32        r*h + c*(3h + 3w + 1.5k + f) + 4 per head   compiled; its attention gives one layout, and takes no shared heads:
                                                            4w in place of 3w + 1.5k where heads share keys
    eager       (8 + 2r)*h + c*(5h + 2w + k + f) + c*f/3    as Transformers has it: what norms take, in fp32, and give; a copy
                                                            of that for each matrix; silu(gate) besides
    eager PEFT  8*h + c*(5h + 3w + k + f) + c*f/3           likewise; norms are frozen, the heads' output has a copy
    selective   r*h + c*(h + 2w + k + f*2/3)                matrix outputs only: norms and activation are computed again
    full        r*h                                         and one block's worth while it is computed again
    not fused   + 5 * heads * s                             Korthikanti et al. 2022, arXiv:2205.05198, eq. 2

Under autocast a compiled block also keeps the 16-bit copies of its matrices, 2 bytes per parameter. The loss holds 8 + c bytes
per logit at its worst (12 without autocast): log-softmax and its gradient in fp32, and the gradient of the logits; eager models
return the logits, which stay. 107 runs
on an H200 (0.1 to 8 billion parameters, without and with full recomputation), whose residuals showed some of these terms, are
met within 0.2%; what torchtitan published for FSDP and pipelines on 8 to 512 chips (reserved, not allocated) within 25%.
See `docs/models/memory.md`.

Adapters leave the embedding and the head frozen, so the first block keeps no input and the last norm no output (LoRA on an
H200, 23 runs, six of them not looked at before). The two gradients of a tied matrix are added into a third where autocast does
not copy one of them (fp32).

Encoder-decoders over pairs (`transformer.pair_layer`): t is what an average layer sees, the loss has the target's tokens, and
what is there for one layer at a time has the longer side's. A decoder's second attention keeps, of each target token,
r*h + c*(h + 3w) + 4 per head, and the keys and values of each input token, c*k (selective: r*h + 2c*w, and c*k). That follows
from the table above; no run was measured.

Assumes even layers, even routing, gradients as views of communication buckets, a fused optimiser step, 1F1B pipelines.
Left out: offloading, dropout masks, chunked or fused losses (they need far less for logits).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from chipwise.perf.arrays import Array, column
from chipwise.perf.memory import (
    CUBLAS,
    Memory,
    Moment,
    Shares,
    context_bytes,
    heads_of,
    in_chunks,
    is_latent,
    peak,
    shares,
)
from chipwise.perf.setup import FULL, SELECTIVE, WEIGHT_BITS, TrainingSetup
from chipwise.perf.transformer import Transformers
from chipwise.units import MIB

LOSS_BYTES = 8.0  # per logit, beside the gradient of the logit itself
BUCKETS = 50 * MIB  # two buckets of DistributedDataParallel's usual 25 MiB
SORTED_TOKENS = 3072  # above it PyTorch sums an embedding's gradient by way of an fp32 copy
FRAGMENTS = 0.03  # of what comes and goes; with expandable segments
_MOMENTS = {"adafactor": 0.0, "lion": 1.0, "muon": 1.0, "sgd": 1.0}  # values per parameter, 2 of others
_MOMENT_BYTES = {"adamw-8bit": 1.0, "adamw-16bit": 2.0}  # where they are not kept as states are
_NARROW = ("fp8", "mxfp8", "fp4")


class Formats(NamedTuple):
    """Bytes per value or per parameter."""

    compute: Array
    matrix_input: Array  # as kept for the gradient of a matrix; 1 where matrix products are in 8 bits
    residual: Array
    matrices: Array  # stored weights of layers
    ends: Array  # stored weights of embedding, head, norms
    logit: Array  # at the worst of the loss; without autocast logits are cast to fp32 before it
    copies: Array  # of the matrices, while a micro-batch is in flight
    adapter_copies: Array  # of adapters, likewise
    kept_copies: Array  # of the matrices, always
    gradient: Array
    state: Array  # master copy and moments, per trainable parameter
    trainable_all: Array  # 0: adapters only
    wide: Array  # 1: fp32 and tf32


def _equals(wanted: str, name: str) -> float:
    return float(name == wanted)


def formats(setup: TrainingSetup, hidden: Array) -> Formats:
    wide = setup.precision.look_up(lambda name: float(name in ("fp32", "tf32")))
    narrow = setup.precision.look_up(lambda name: float(name in _NARROW))
    full = setup.method.look_up(lambda name: float(name == "full"))
    quantised = setup.method.look_up(lambda name: float(name == "qlora"))
    autocast, master, pure = (setup.states.look_up(partial(_equals, name)) for name in ("autocast", "master", "pure"))
    compute = 2.0 + 2.0 * wide
    trained = np.where((wide > 0) | (autocast > 0), 4.0, 2.0)
    stored = np.where(full > 0, trained, compute)
    sharded = np.where(setup.shard >= 3, 1.0, 0.0)
    value = np.where((pure > 0) & (wide == 0), 2.0, 4.0)
    kept = setup.optimizer.look_up(lambda name: _MOMENT_BYTES.get(name, 0.0))
    factored = setup.optimizer.look_up(lambda name: float(name == "adafactor"))
    moments = setup.optimizer.look_up(lambda name: _MOMENTS.get(name, 2.0)) * np.where(kept > 0, kept, value)
    return Formats(
        compute=compute,
        matrix_input=np.where(narrow > 0, 1.0, compute),
        residual=np.where((trained == 4.0) & (full > 0) & (setup.shard < 3), 4.0, compute),
        matrices=np.where(quantised > 0, WEIGHT_BITS["nf4"] / 8, stored),
        ends=stored,
        logit=LOSS_BYTES + np.where((autocast > 0) & (setup.shard < 3), compute, 4.0) + (1.0 - setup.compiled) * compute,
        copies=2.0 * full * autocast * (1.0 - wide) * (1.0 - narrow) * (1.0 - sharded),
        adapter_copies=2.0 * (1.0 - full) * autocast * (1.0 - wide) * (1.0 - sharded),
        kept_copies=2.0 * full * narrow * (1.0 - sharded),
        gradient=trained,
        state=np.where((master > 0) & (wide == 0), 4.0, 0.0) + moments + factored * 8.0 / hidden,
        trainable_all=full,
        wide=wide,
    )


class ActivationBytes(NamedTuple):
    """Bytes per token that one layer keeps, and what it needs beside that while it is computed again.

    Of pairs `forward` is per token that an average layer sees; the others are of the layer that keeps most, per token of both
    sides."""

    forward: Array
    block: Array  # as `forward`, of one layer
    again: Array


def activation_bytes(model: Transformers, setup: TrainingSetup, use: Formats) -> ActivationBytes:
    h, w, tp = model.hidden, model.query_width, setup.tp
    c, c_in, r = use.compute, use.matrix_input, use.residual
    latent = is_latent(model)
    k = np.where(latent > 0, 2.0 * w, model.kv_width) / np.where(
        latent > 0, tp, np.minimum(tp, np.maximum(model.kv_heads, 1.0))
    )
    heads = heads_of(model) / tp
    f = model.mlp_weights / h / tp
    sequence_ways = np.where(setup.sequence_parallel > 0, tp, 1.0)
    routed = np.where(model.experts > 0, (c + c_in) * model.active * h / tp, 0.0)
    scores = np.where(setup.flash > 0, 0.0, 5.0 * heads * setup.seq)
    core = (c + c_in) * w / tp + c * k + 4.0 * heads  # q, o, k and v once, the log-sum of each row
    adapted = 1.0 - use.trainable_all
    extra = np.where(adapted > 0, c * w / tp, c * (2.0 * w / tp + 0.5 * k))
    single = np.where((adapted > 0) | (k < 2.0 * w / tp), c * (2.0 * w / tp - k), c * (w / tp + 0.5 * k))
    extra = np.where(use.wide > 0, single, extra)
    compiled = (r + c + 2.0 * c_in) * h / sequence_ways + core + extra + (2.0 * c + c_in) / 3.0 * f
    norms = (
        8.0 + 2.0 * r * use.trainable_all
    )  # inputs in fp32 and, where their weights are trained, what they give before these
    eager = (norms + 5.0 * c_in) * h / sequence_ways + core + adapted * c * w / tp + (3.0 * c + c_in) / 3.0 * f
    narrow = adapted * c * setup.rank * np.where(model.experts > 0, 4.0, 4.0 + model.mlp_weights / (h * model.mlp_width))
    everything = np.where(setup.compiled > 0, compiled, eager) + routed + scores + narrow
    selective = (r + c) * h / sequence_ways + core + 2.0 / 3.0 * c * f + routed
    inputs = r * h / sequence_ways
    forward = np.where(
        setup.recompute == FULL, inputs, np.where(setup.recompute == SELECTIVE, np.minimum(selective, everything), everything)
    )
    if not model.paired:
        return ActivationBytes(forward, forward, everything - forward)
    asks, selective_cross = (
        (r + c) * h / sequence_ways + 3.0 * c * w / tp + 4.0 * heads,
        r * h / sequence_ways + 2.0 * c * w / tp,
    )
    cross_queries = np.where(setup.recompute == FULL, 0.0, np.where(setup.recompute == SELECTIVE, selective_cross, asks))
    cross_keys = np.where(setup.recompute == FULL, 0.0, c * k)
    average = forward + model.crossing * cross_queries + model.crossed * cross_keys
    writes = model.headed * (everything + asks) + model.source * c * k > model.source * everything  # the decoder keeps more
    block = np.where(writes, model.headed * (forward + cross_queries) + model.source * cross_keys, model.source * forward)
    full_block = np.where(writes, model.headed * (everything + asks) + model.source * c * k, model.source * everything)
    return ActivationBytes(average, block, full_block - block)


def training_memory(model: Transformers, setup: TrainingSetup, kind: str = "gpu") -> Memory:
    """Bytes per chip of the fullest stage; `kind` is the kind of chip, for what its driver holds."""
    return in_chunks(_training, model, setup, context_bytes(kind, setup.chips))


class Run(NamedTuple):
    """What both ends of a pipeline have in common."""

    model: Transformers
    setup: TrainingSetup
    portion: Shares
    use: Formats
    activation_bytes: ActivationBytes
    layers: Array  # of one stage
    dense_ways: tuple[Array, Array, Array]  # chips that optimiser state, gradients, weights are sharded over
    expert_ways: tuple[Array, Array, Array]
    sequence_ways: Array  # chips that norms and residuals are split over
    again: Array  # 1: blocks are computed again in full
    traffic: Array  # communication buffers but for those of both ends of the model
    quiet: Array  # workspace outside a backward pass
    backward: Array  # workspace within one


class Stage(NamedTuple):
    weights: Array
    optimizer: Array
    copies: Array
    moment: Moment


def _training(model: Transformers, setup: TrainingSetup, context: Array) -> Memory:
    run = _run(model, setup)
    fullest = _stage(run, last=False)
    if np.any(setup.pp > 1):
        fullest = _fuller(fullest, _stage(run, last=True))
    moment = fullest.moment
    return Memory(
        weights=fullest.weights,
        weight_copies=fullest.copies + moment.copies,
        gradients=moment.gradients,
        optimizer=fullest.optimizer,
        activations=moment.activations,
        logits=moment.logits,
        kv_cache=column(0.0),
        communication=moment.communication,
        workspace=moment.workspace,
        context=context,
        fragmentation=FRAGMENTS * moment.total,
    )


def _fuller(first: Stage, last: Stage) -> Stage:
    fuller = last.moment.total + last.weights + last.optimizer > first.moment.total + first.weights + first.optimizer
    moment = Moment(*(np.where(fuller, b, a) for a, b in zip(first.moment, last.moment, strict=True)))
    weights, optimizer, copies = (np.where(fuller, b, a) for a, b in zip(first[:3], last[:3], strict=True))
    return Stage(weights, optimizer, copies, moment)


def _run(model: Transformers, setup: TrainingSetup) -> Run:
    tp, replicas, t, h = setup.tp, setup.dp * setup.cp, setup.tokens * model.fullest, model.hidden
    portion = shares(model, tp, setup.ep, tp * replicas)
    use = formats(setup, h)
    copied = np.maximum(tp * replicas / portion.expert_ways, 1.0)
    sharded = [(setup.shard >= stage) * 1.0 for stage in (1, 2, 3)]
    sequence_ways = 1.0 + setup.sequence_parallel * (tp - 1.0)
    c = use.compute
    quiet = (
        2.0 * CUBLAS + setup.method.look_up(lambda name: float(name == "qlora")) * c * h * model.mlp_width / tp
    )  # one unpacked
    return Run(
        model=model,
        setup=setup,
        portion=portion,
        use=use,
        activation_bytes=activation_bytes(model, setup, use),
        layers=np.ceil(model.layers / setup.pp),
        dense_ways=(
            1.0 + sharded[0] * (replicas - 1.0),
            1.0 + sharded[1] * (replicas - 1.0),
            1.0 + sharded[2] * (replicas - 1.0),
        ),
        expert_ways=(1.0 + sharded[0] * (copied - 1.0), 1.0 + sharded[1] * (copied - 1.0), 1.0 + sharded[2] * (copied - 1.0)),
        sequence_ways=sequence_ways,
        again=(setup.recompute == FULL) * 1.0,
        traffic=_communication(model, setup, portion, use, sequence_ways),
        quiet=quiet,
        backward=t * ((use.residual + c) * h / sequence_ways + 2.0 * c * model.mlp_width / tp) + quiet,
    )


def _stage(run: Run, last: bool) -> Stage:
    """The first or the last stage of a pipeline, at its fullest; both are one where there is no pipeline."""
    setup, portion, use, layers = run.setup, run.portion, run.use, run.layers
    alone = (setup.pp == 1) * 1.0
    table = (alone if last else 1.0) * portion.table * (1.0 - alone * portion.tied)
    head = (1.0 if last else alone) * portion.head
    matrices, experts = layers * portion.matrices, layers * portion.experts
    ends = layers * portion.norms + table + head
    weights = (use.matrices * matrices + use.ends * ends) / run.dense_ways[2] + use.matrices * experts / run.expert_ways[2]
    trainable = use.trainable_all
    adapters = (1.0 - trainable) * layers * _adapters(run.model, setup)
    dense, routed = trainable * (matrices + ends) + adapters, trainable * experts
    weights = weights + use.gradient * adapters / run.dense_ways[2]
    optimizer = use.state * (dense / run.dense_ways[0] + routed / run.expert_ways[0])
    gradients = use.gradient * (dense / run.dense_ways[1] + routed / run.expert_ways[1])
    flying = _in_flight(setup, last)
    first = (alone if last else 1.0) * (1.0 - trainable) * (1.0 - run.again)  # its input needs no gradient, so it is not kept
    unkept = first * flying * setup.tokens * run.model.fullest * use.residual * run.model.hidden / run.sequence_ways
    moments = _moments(run, table, head, gradients, flying * layers, unkept)
    return Stage(weights, optimizer, use.kept_copies * (matrices + experts), peak(moments))


def _adapters(model: Transformers, setup: TrainingSetup) -> Array:
    """Parameters of low-rank pairs beside every matrix of a layer, rank x (inputs + outputs) each; not beside experts."""
    attention = 4.0 * model.hidden + 2.0 * model.query_width + model.kv_width
    mlp = model.mlp_weights / np.maximum(model.mlp_width, 1.0) + model.mlp_weights / model.hidden
    attentions = 2.0 * model.sublayers - 1.0  # of a layer
    return setup.rank * (attention * attentions + np.where(model.experts > 0, 0.0, mlp)) / setup.tp


def _in_flight(setup: TrainingSetup, last: bool) -> Array:
    """Micro-batches whose activations a stage holds (1F1B: pp on the first, 1 on the last; interleaved: Narayanan et al.
    2021, arXiv:2104.04473: warm-up of 2(pp-1) + (v-1)pp pieces on the first stage)."""
    v, pp = setup.interleave, setup.pp
    woven = (v - 1.0) * pp + 1.0 + (0.0 if last else 2.0 * (pp - 1.0))
    pieces = np.where(v > 1, woven, 1.0 if last else pp)
    return np.minimum(pieces / v, setup.micro_batches)


def _moments(run: Run, table: Array, head: Array, gradients: Array, flying: Array, unkept: Array) -> list[Moment]:
    """The loss; the head's gradient; the backward pass of the last block, of the first block; the end of it."""
    model, setup, portion, use = run.model, run.setup, run.portion, run.use
    h, c, trainable = model.hidden, use.compute, use.trainable_all
    t, last = setup.tokens * model.token_share, setup.tokens * model.headed
    block = portion.matrices + portion.experts
    stored, again = t * run.activation_bytes.forward * flying - unkept, setup.tokens * run.activation_bytes.again
    copy = use.copies * block + use.adapter_copies * _adapters(model, setup)
    copies = copy * flying * (1.0 - run.again)
    logit = last * model.vocab / setup.tp * (head > 0)
    after_blocks = (
        stored + (head > 0) * last * (use.residual + trainable * c) * h / run.sequence_ways
    )  # the last block's output and its norm
    with_head = copies + use.copies * head
    earlier = (setup.micro_batches > 1) * gradients  # of the micro-batches before this one
    gradient_bytes = trainable * use.gradient
    head_gradient = gradient_bytes * head / run.dense_ways[1]
    own = gradient_bytes * ((portion.matrices + table) / run.dense_ways[1] + portion.experts / run.expert_ways[1])
    before = gradients - own  # without those of the first block and of the embedding, which come last
    sorting = trainable * 4.0 * (setup.tokens > SORTED_TOKENS)
    traffic = run.traffic + (setup.shard >= 3) * c * (table + head)
    nothing = column(0.0)
    one_block = setup.tokens * run.activation_bytes.block + again
    late = gradients + portion.tied * head_gradient * (1.0 + use.wide)  # both gradients of a tied matrix, before they are added
    return [
        Moment(
            gradients=earlier,
            copies=with_head,
            activations=after_blocks,
            logits=use.logit * logit,
            communication=traffic,
            workspace=run.quiet,
        ),
        Moment(
            gradients=np.maximum(earlier, head_gradient),
            copies=copies,
            activations=after_blocks,
            logits=nothing,
            communication=traffic,
            workspace=run.quiet + trainable * c * head,
        ),
        Moment(
            gradients=np.maximum(earlier, head_gradient),
            copies=copies + run.again * copy,
            activations=stored + again,
            logits=nothing,
            communication=traffic,
            workspace=run.backward,
        ),
        Moment(
            gradients=np.maximum(earlier, before),
            copies=copy,
            activations=one_block,
            logits=nothing,
            communication=traffic,
            workspace=run.backward,
        ),
        Moment(
            gradients=late,
            copies=nothing,
            activations=setup.tokens * h * (2.0 * use.residual + sorting) / run.sequence_ways,
            logits=nothing,
            communication=traffic,
            workspace=run.quiet,
        ),
    ]


def _communication(model: Transformers, setup: TrainingSetup, portion: Shares, use: Formats, sequence_ways: Array) -> Array:
    t, h, c, tp = setup.tokens * model.fullest, model.hidden, use.compute, setup.tp
    replicated = (setup.dp * setup.cp > 1) * 1.0
    gathered = (setup.shard >= 3) * 1.0
    block = portion.matrices + portion.experts
    blocks = c * (2.0 * (block + portion.norms) + use.trainable_all * block)  # two blocks, and one's gradients
    stage = np.ceil(model.layers / setup.pp) * block * (c + use.trainable_all * use.gradient)  # in a pipeline: all the time
    blocks = np.where(setup.pp > 1, np.maximum(stage, blocks), blocks)
    keys = np.where(is_latent(model) > 0, 2.0 * model.query_width, model.kv_width)
    tokens = (setup.sequence_parallel * (tp > 1)) * 2.0 * c * h + (setup.cp > 1) * 2.0 * c * keys
    tokens = tokens + (setup.pp > 1) * 2.0 * use.residual * h / sequence_ways
    tokens = tokens + ((setup.ep > 1) & (model.experts > 0)) * 2.0 * c * model.active * h / tp
    return replicated * (gathered * blocks + (1.0 - gathered) * BUCKETS) + t * tokens
