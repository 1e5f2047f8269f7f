"""All ways to spread training over a number of chips: tensor, pipeline, context, expert and data parallel, sharding,
recomputation and micro-batch, with their memory; of every split only micro-batches that may be the fastest are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.memory_training import training_memory
from chipwise.perf.model import Model
from chipwise.perf.setup import FULL, NONE, SELECTIVE, TrainingSetup
from chipwise.perf.transformer import Layer, Transformers
from chipwise.planner.defaults import FULL_MEMORY
from chipwise.planner.fleet import Index
from chipwise.planner.training import recipe
from chipwise.planner.values.split import TrainingSplit

WIDEST_TENSOR, DEEPEST_PIPELINE = 8, 16
MICRO_BATCHES = (1, 2, 4, 8, 16, 32, 64)
STATES = 1  # the ZeRO stage that shards the optimiser's state alone
LONG = 32768  # tokens of a sequence from which splitting it is worth a try


@dataclass(frozen=True, slots=True)
class LearningJob:
    model: str  # as measurements are pooled
    layer: Layer
    tokens: float  # in all, epochs included
    seq: int
    batch: int  # sequences per optimiser step
    method: str
    rank: int
    targets: int  # matrices with adapters
    optimizer: str
    precisions: tuple[str, ...]
    recompute: tuple[int, ...] = (NONE, SELECTIVE, FULL)
    by_recipe: bool = False  # run by the program that comes with our images, on GPUs (`training/recipe.py`)


COLUMNS = tuple(column.name for column in fields(TrainingSplit))
TP, PP, CP, EP, DP, SHARD, RECOMPUTE, MICRO = range(len(COLUMNS))


class Chosen(Sequence[TrainingSplit | None]):
    """Rows of a table of splits by place, made when they are asked for; -1 is none."""

    def __init__(self, table: Array, at: Index) -> None:
        self._table, self._at = table, at

    def __len__(self) -> int:
        return len(self._at)

    @overload
    def __getitem__(self, row: int) -> TrainingSplit | None: ...
    @overload
    def __getitem__(self, row: slice) -> Chosen: ...
    def __getitem__(self, row: int | slice) -> TrainingSplit | Chosen | None:
        if isinstance(row, slice):
            return Chosen(self._table, self._at[row])
        place = int(self._at[row])
        return None if place < 0 else TrainingSplit(*map(int, self._table[place]))


class SplitSummary(NamedTuple):
    """Of a number of chips in machines of some size: how many splits there are, which may be the fastest, what is missing."""

    splits: int
    rows: Index  # rows of `Splits.table`
    short: float


class Splits:
    """All ways to spread a job over each number of chips; their memory per chip."""

    def __init__(self, job: LearningJob, precision: str, sizes: Sequence[int], model: Model) -> None:
        self._job = job
        blocks = list(_blocks(job, sizes))
        lengths = np.array([len(inner) for _, inner in blocks], dtype=np.intp)
        outer = np.array([fixed for fixed, _ in blocks], dtype=np.float64).reshape(-1, 5)
        inner = np.concatenate([inner for _, inner in blocks]) if blocks else np.zeros((0, 4))
        spread = np.repeat(outer, lengths, axis=0)
        # size | tp pp cp ep dp shard recompute micro
        self.table: Array = np.column_stack([spread[:, 1:4], inner[:, :1], spread[:, 4:], inner[:, 1:]])
        size = spread[:, 0]
        first, last = (np.searchsorted(size, sizes, side).tolist() for side in ("left", "right"))
        self._bounds = dict(zip(sizes, zip(first, last, strict=True), strict=True))
        if not len(self.table):
            self.memory, self._last = np.zeros(0), np.zeros(0, dtype=bool)
            return
        self.memory = training_memory(Transformers.of([job.layer]), setup_of(job, self.table, precision)).total
        # Rows of one split come together, micro-batches rising; with a pipeline each row stands for itself.
        fixed = self.table[:, :MICRO]
        fresh = np.any(fixed[1:] != fixed[:-1], axis=1) | (self.table[1:, PP] > 1) | (size[1:] != size[:-1])
        self._last = np.append(fresh, True) if larger_is_no_slower(model) else np.ones(len(self.table), dtype=bool)
        self._worth: dict[float, NDArray[np.bool_]] = {}
        self._found: dict[tuple[int, int, str, float], SplitSummary] = {}

    def of(self, size: int, node: int, kind: str, capacity: float) -> SplitSummary:
        """Of chips of a kind. Nobody cuts layers into stages on TPUs: their stacks shard instead. Neuron's shards the state of
        the optimiser alone and computes scores of attention again. What fills a chip's memory to the brim counts only where
        nothing else fits, and what our own program cannot run only where it could run nothing."""
        first, last = self._bounds[size]
        if first == last:
            return SplitSummary(0, np.zeros(0, dtype=np.intp), 0.0)
        key = (size, min(node, WIDEST_TENSOR), kind, capacity)
        entry = self._found.get(key)
        if entry is None:
            table = self.table[first:last]
            possible = table[:, TP] <= node
            if kind == "tpu":
                possible &= table[:, PP] == 1
            elif kind == "neuron":
                possible &= (table[:, SHARD] <= STATES) & (table[:, RECOMPUTE] >= min(SELECTIVE, max(self._job.recompute)))
            preferred = [possible & self._runs_as_it_is(table, capacity)] if self._job.by_recipe and kind == "gpu" else []
            fitting = np.zeros(0, dtype=np.intp)
            for rows, room in product([*preferred, possible], (FULL_MEMORY * capacity, capacity)):
                if not len(fitting):
                    fitting = first + np.flatnonzero(rows & self._fitting(room)[first:last])
            short = 0.0 if len(fitting) or not possible.any() else float(self.memory[first:last][possible].min()) - capacity
            entry = self._found[key] = SplitSummary(int(np.count_nonzero(possible)), fitting, short)
        return entry

    def _runs_as_it_is(self, table: Array, capacity: float) -> NDArray[np.bool_]:
        """Rows that our own program can run."""
        uncut: NDArray[np.bool_] = (table[:, [TP, PP, CP, EP]] == 1).all(axis=1)
        if not recipe.loads(self._job.method, 2.0 * self._job.layer.parameters, capacity):
            uncut &= table[:, SHARD] < 2
        return uncut

    def _fitting(self, capacity: float) -> NDArray[np.bool_]:
        """Rows that fit while the next micro-batch of the same split does not."""
        if capacity not in self._worth:
            fits = self.memory <= capacity
            self._worth[capacity] = fits & (self._last | ~np.append(fits[1:], False))
        return self._worth[capacity]


def _blocks(job: LearningJob, sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """(chips, tp, pp, cp, dp) with all (ep, shard, recompute, micro-batch) that go with them, the last changing fastest."""
    layer = job.layer
    powers = [2**at for at in range(13)]
    tensor = [t for t in powers if t <= WIDEST_TENSOR and layer.heads % t == 0 and layer.hidden % t == 0]
    context = [c for c in (1, 2, 4, 8) if c == 1 or job.seq >= LONG]
    # Stages are taken to be even; those of a pair's two stacks, of other lengths, are not.
    depths = [1] if layer.source else [p for p in powers if p <= min(DEEPEST_PIPELINE, layer.layers)]
    blocks: dict[tuple[tuple[int, ...], ...], Array] = {}
    for chips, pp, tp, cp in product(sizes, depths, tensor, context):
        dp, rest = divmod(chips, tp * pp * cp)
        if rest or not dp or dp > job.batch:
            continue
        experts = [1]
        if layer.experts:
            experts += [e for e in (2, 4, 8, 16, 32, 64) if layer.experts % e == 0 and (tp * cp * dp) % e == 0]
        shards = (0,) if dp * cp == 1 else (1, 3) if pp == 1 else (1,)
        micros = tuple(micro for micro in MICRO_BATCHES if micro * dp <= job.batch)
        key = (tuple(experts), shards, job.recompute, micros)
        if key not in blocks:
            blocks[key] = np.array(list(product(*key)), dtype=np.float64).reshape(-1, 4)
        yield (chips, tp, pp, cp, dp), blocks[key]


def setup_of(job: LearningJob, table: Array, precision: str | Coded) -> TrainingSetup:
    columns = dict(zip(COLUMNS, table.T, strict=True))
    setup = TrainingSetup.of(
        seq=float(job.seq),
        global_batch=float(job.batch),
        method=job.method,
        rank=float(job.rank),
        targets=float(job.targets),
        precision=precision,
        optimizer=job.optimizer,
        sequence_parallel=(columns["tp"] > 1).astype(float),
        **columns,
    )
    return setup.change(states=Coded(("autocast", "master"), setup.by_megatron.astype(np.intp)))


def slopes(model: Model, *pairs: tuple[str, str]) -> tuple[float, float]:
    """The least and the most that the fitted factors of some kinds of work can lean on a feature, over all names."""
    factors = model.factors["training"]
    low = high = 0.0
    for block in factors.blocks:
        if (block.base, block.feature) in pairs:
            values = [value for value, _ in factors.values.get(block.key, {}).values()]
            if block.level != "all" or not values:
                values.append(0.0)  # a name never seen
            low, high = low + min(values), high + max(values)
    return low, high


def larger_is_no_slower(model: Model) -> bool:
    leaning = {
        (block.base, block.feature) for block in model.factors["training"].blocks if block.feature in ("tokens", "grain")
    }
    return all(slopes(model, one)[1] <= 0 for one in leaning)
