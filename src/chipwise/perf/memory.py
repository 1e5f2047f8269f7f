"""How many bytes a chip must hold, as named lines; `memory_training` and `memory_serving` fill them in.

A peak is one moment: the lines are what is held at that moment, so gradients can be absent (before the first backward
pass of a step) and logits can be gone (after it). `allocated` is what PyTorch's allocator reports as its maximum;
`context` (driver, compiled kernels, communicators) and `fragmentation` come on top of it, outside the allocator's count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import NamedTuple, TypeVar

import numpy as np

from chipwise.perf.arrays import Array, column
from chipwise.perf.setup import ServingSetup, TrainingSetup
from chipwise.perf.transformer import Transformers
from chipwise.units import GB, MIB

CHUNK = 1 << 13  # rows computed at once: columns of this length stay in the processor's cache
# Outside the allocator, per chip. A CUDA context with PyTorch's kernels is 0.5 to 0.6 GB on A100 and H100; other kinds
# are rules of thumb. Communicators of NCCL hold channel buffers as soon as there is a second chip (0.3 to 1.8 GB seen).
CONTEXT = {"gpu": 0.55 * GB, "gaudi": 1.0 * GB, "neuron": 0.6 * GB, "tpu": 0.3 * GB, "npu": 0.6 * GB, "edge": 0.35 * GB}
OTHER_CONTEXT = 0.2 * GB
COMMUNICATORS = 0.8 * GB
CUBLAS = 32 * MIB  # PyTorch's workspace for cuBLAS on Hopper and newer; smaller before

Setup = TypeVar("Setup", TrainingSetup, ServingSetup)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes per chip by line, one row per candidate."""

    weights: Array
    weight_copies: Array  # in the format of the matrix products, where weights are kept in another
    gradients: Array
    optimizer: Array
    activations: Array
    logits: Array
    kv_cache: Array
    communication: Array
    workspace: Array
    context: Array
    fragmentation: Array

    @property
    def allocated(self) -> Array:
        """The allocator's peak (`torch.cuda.max_memory_allocated`)."""
        return reduce(np.add, (values for name, values in self.lines().items() if name not in ("context", "fragmentation")))

    @property
    def total(self) -> Array:
        return self.allocated + self.context + self.fragmentation

    def lines(self) -> dict[str, Array]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __len__(self) -> int:
        return max(len(values) for values in self.lines().values())

    def largest(self) -> list[str]:
        """The name of every row's largest line."""
        names = [one.name for one in fields(self)]
        return [names[i] for i in np.argmax(np.vstack(np.broadcast_arrays(*self.lines().values())), axis=0)]


class Moment(NamedTuple):
    """What comes and goes during a step; the rest stays."""

    gradients: Array
    copies: Array
    activations: Array
    logits: Array
    communication: Array
    workspace: Array

    @property
    def total(self) -> Array:
        return reduce(np.add, self)


def peak(moments: Sequence[Moment]) -> Moment:
    """Of every row the moment that holds most."""
    best, largest = moments[0], moments[0].total
    for moment in moments[1:]:
        total = moment.total
        larger = total > largest
        best = Moment(*(np.where(larger, new, old) for new, old in zip(moment, best, strict=True)))
        largest = np.maximum(total, largest)
    return best


class Shares(NamedTuple):
    """Parameters that one chip holds, before any sharding over replicas: of one layer, and of both ends of the model."""

    matrices: Array  # attention and whatever of the feed-forward every token meets
    experts: Array  # routed experts
    norms: Array
    table: Array  # input embedding; of tied ones the same matrix as `head`
    head: Array
    tied: Array  # 1: table and head are one
    expert_ways: Array  # over how many chips one layer's routed experts are spread


def shares(model: Transformers, tp: Array, ep: Array, group: Array) -> Shares:
    """Matrices are split over tp; keys and values over no more chips than there are kv heads; experts over ep x tp."""
    keys = model.hidden * model.kv_width
    ways = np.minimum(tp, np.maximum(model.kv_heads, 1.0))
    expert = (model.mlp_stored - model.mlp_weights) / np.maximum(model.experts - model.active, 1.0)
    always = np.where(model.experts > 0, np.maximum(model.mlp_weights - model.active * expert, 0.0), model.mlp_stored)
    spread = np.where(model.experts > 0, np.minimum(ep * tp, group), 1.0)
    inside = model.layers * (model.attention_weights + model.mlp_stored)
    tied = np.where((model.table == 0) & (model.head > 0), 1.0, 0.0)
    keys = np.minimum(keys, model.attention_weights)
    return Shares(
        matrices=(model.attention_weights - keys + always) / tp + keys / ways,
        experts=(model.mlp_stored - always) / spread,
        norms=np.maximum(model.parameters - inside - model.table - model.head, 0.0) / model.layers,
        table=np.where(tied > 0, model.head, model.table) / tp,
        head=model.head / tp,
        tied=tied,
        expert_ways=spread,
    )


def is_latent(model: Transformers) -> Array:
    """1 for multi-head latent attention: one shared latent, whose projections do not add up like those of heads."""
    plain = model.hidden * (2.0 * model.query_width + model.kv_width)
    return np.where((model.kv_heads <= 1) & (np.abs(model.attention_weights - plain) > 0.01 * plain), 1.0, 0.0)


def heads_of(model: Transformers) -> Array:
    """Query heads; 128 wide where keys do not tell."""
    stated = (model.kv_width > 0) & (is_latent(model) == 0)
    width = np.where(stated, model.kv_width / (2.0 * np.maximum(model.kv_heads, 1.0)), 128.0)
    return model.query_width / np.maximum(width, 1.0)


def context_bytes(kind: str, chips: Array) -> Array:
    """Driver, kernels and, with more than one chip, communicators."""
    return column(CONTEXT.get(kind, OTHER_CONTEXT)) + np.where(chips > 1, COMMUNICATORS, 0.0)


def in_chunks(
    compute: Callable[[Transformers, Setup, Array], Memory], model: Transformers, setup: Setup, extra: Array
) -> Memory:
    """`compute` over pieces of the rows, joined: many short columns are quicker than few long ones."""
    count = max(len(setup), len(model.layers), len(extra))
    if count <= CHUNK:
        return _filled(compute(model, setup, extra), count)
    parts = []
    for start in range(0, count, CHUNK):
        selection = slice(start, start + CHUNK)
        part = compute(model.rows(selection), setup.rows(selection), extra if len(extra) == 1 else extra[selection])
        parts.append(_filled(part, min(CHUNK, count - start)))
    return Memory(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Memory)))


def _filled(memory: Memory, count: int) -> Memory:
    lines = memory.lines().values()
    if all(len(values) == count for values in lines):
        return memory
    return Memory(*(np.broadcast_to(values, (count,)) for values in lines))
