"""The best way to train on every shape and number of machines: all splits, micro-batches and ways to recompute at once.

Memory depends on the split and not on the chip, so it is reckoned once per number of chips and held against every chip's own.
What is provably no better is left out before time is predicted:
- of two micro-batches of one split without pipeline the larger one that fits is never slower (fewer passes over the same work);
- of two ways to recompute the lesser that fits is never slower at the same micro-batch.
The rest is predicted in one array call, and of every shape, count and precision the fastest is kept: for a given machine every
cost grows with time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from chipwise.perf import predict_training
from chipwise.perf.arrays import Array, Coded
from chipwise.perf.hardware import Hardware
from chipwise.perf.memory_training import training_memory
from chipwise.perf.model import Model
from chipwise.perf.part import Part
from chipwise.perf.predict_training import Training, TrainingEstimate
from chipwise.perf.setup import FULL, NONE, SELECTIVE, TrainingSetup
from chipwise.perf.transformer import Layer, Transformers
from chipwise.plan.fleet import Fleet, Index

WIDEST_TENSOR, DEEPEST_PIPELINE = 8, 16
MICRO_BATCHES = (1, 2, 4, 8, 16, 32, 64)
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
LONG = 32768  # tokens of a sequence from which splitting it is worth a try
MOST_CHIPS = 4096


@dataclass(frozen=True, slots=True)
class LearningJob:
    model: str  # as measurements are pooled
    layer: Layer
    tokens: float  # in all, epochs included
    seq: int
    batch: int  # sequences per optimiser step
    method: str
    rank: int
    optimizer: str
    precisions: tuple[str, ...]
    recompute: tuple[int, ...] = (NONE, SELECTIVE, FULL)


class Split(NamedTuple):
    tp: int
    pp: int
    cp: int
    ep: int
    dp: int
    shard: int
    recompute: int
    micro_batch: int


COLUMNS = Split._fields
_MICRO = COLUMNS.index("micro_batch")
_WAYS = [COLUMNS.index(name) for name in ("tp", "pp", "cp", "dp")]


@dataclass(frozen=True)
class Ways:
    """One row per shape, number of machines and precision: the fastest split, or that none fits."""

    shape: Index
    machines: Array
    precision: Coded
    split: tuple[Split | None, ...]
    seconds: Array  # of the whole job; infinite where nothing fits
    low: Array
    high: Array
    power_w: Array  # of all chips and their hosts, without cooling
    memory: Array  # bytes per chip
    short: Array  # bytes per chip that the smallest split lacks; 0 where one fits
    provenance: tuple[str, ...]
    considered: int
    estimated: int


def search(job: LearningJob, fleet: Fleet, model: Model, shapes: Sequence[int], chip_limits: tuple[int, int]) -> Ways:
    """`chip_limits` are the fewest and most chips at one time."""
    made = _Table()
    for chips_per, count in sorted({(fleet.shapes[at].chips, count) for at in shapes for count in COUNTS}):
        chips = chips_per * count
        if not chip_limits[0] <= chips <= min(chip_limits[1], MOST_CHIPS):
            continue
        alike = [at for at in shapes if fleet.shapes[at].chips == chips_per]
        for precision in job.precisions:
            able = [at for at in alike if _has(fleet.part(at), precision, job.method)]
            for piped in (False, True):  # nobody cuts layers into stages on TPUs: their stacks shard instead
                some = [at for at in able if (fleet.part(at).kind != "tpu") == piped]
                if some:
                    made.add(job, fleet, some, chips, count, precision, piped)
    return made.predict(job, fleet, model)


def _has(part: Part, precision: str, method: str) -> bool:
    """The arithmetic, and for 4-bit weights their kernels, which GPUs alone have."""
    if method == "qlora" and part.kind != "gpu":
        return False
    return precision == "fp32" or part.has("fp8" if precision == "mxfp8" else precision)


@dataclass(frozen=True, slots=True)
class _Row:
    """A shape, count and precision, and where its candidates are in the table."""

    shape: int
    count: int
    precision: str
    first: int
    last: int
    short: float


class Splits:
    """All ways to spread a job over a number of chips of which `node` share a machine; their memory per chip."""

    def __init__(self, job: LearningJob, chips: int, node: int, precision: str, piped: bool) -> None:
        self.table = np.array(list(_splits(job, chips, node, piped)), dtype=np.float64).reshape(-1, len(COLUMNS))
        if not len(self.table):
            self.memory = np.zeros(0)
            return
        setup = setup_of(job, self.table, precision)
        self.memory = training_memory(Transformers.of([job.layer]), setup).total
        # Rows of one split come together, micro-batches rising; with a pipeline each row stands for itself.
        fixed = self.table[:, :_MICRO]
        fresh = np.any(fixed[1:] != fixed[:-1], axis=1) | (self.table[1:, COLUMNS.index("pp")] > 1)
        self.group = np.concatenate([[0], np.cumsum(fresh)])

    def __len__(self) -> int:
        return len(self.table)

    def worth(self, capacity: float) -> Index:
        """Those that fit and are not provably slower than another that fits: of every group the last."""
        fits = np.flatnonzero(self.memory <= capacity)
        if not len(fits):
            return fits
        groups = self.group[fits]
        last: Index = fits[np.append(groups[1:] != groups[:-1], True)]
        return last


def _splits(job: LearningJob, chips: int, node: int, piped: bool) -> Iterator[tuple[int, ...]]:
    layer = job.layer
    powers = [2**at for at in range(13)]
    tensor = [t for t in powers if t <= min(WIDEST_TENSOR, node) and layer.heads % t == 0 and layer.hidden % t == 0]
    context = [c for c in (1, 2, 4, 8) if c == 1 or job.seq >= LONG]
    depths = [p for p in powers if p <= min(DEEPEST_PIPELINE, layer.layers)] if piped else [1]
    for tp, pp, cp in product(tensor, depths, context):
        dp, rest = divmod(chips, tp * pp * cp)
        if rest or not dp or dp > job.batch:
            continue
        experts = [1]
        if layer.experts:
            experts += [e for e in (2, 4, 8, 16, 32, 64) if layer.experts % e == 0 and (tp * cp * dp) % e == 0]
        shards = (0,) if dp * cp == 1 else (1, 3) if pp == 1 else (1,)
        micros = [micro for micro in MICRO_BATCHES if micro * dp <= job.batch]
        for ep, shard, recompute, micro in product(experts, shards, job.recompute, micros):
            yield tp, pp, cp, ep, dp, shard, recompute, micro


def setup_of(job: LearningJob, table: Array, precision: str | Coded) -> TrainingSetup:
    each = dict(zip(COLUMNS, table.T, strict=True))
    layered = (each["tp"] * each["pp"] * each["ep"]) > 1
    return TrainingSetup.of(
        seq=float(job.seq), global_batch=float(job.batch), method=job.method, rank=float(job.rank), precision=precision,
        optimizer=job.optimizer, states=Coded(("autocast", "master"), layered.astype(np.intp)),
        sequence_parallel=(each["tp"] > 1).astype(float), **each,
    )  # fmt: skip


class _Table:
    """Candidates of all shapes, gathered before they are predicted together."""

    def __init__(self) -> None:
        self.splits: dict[tuple[int, int, str, bool], Splits] = {}
        self.pieces: list[Array] = []
        self.memory: list[Array] = []
        self.rows: list[_Row] = []
        self.count = self.considered = 0

    def add(
        self, job: LearningJob, fleet: Fleet, shapes: Sequence[int], chips: int, count: int, precision: str, piped: bool
    ) -> None:
        key = (chips, fleet.shapes[shapes[0]].chips, precision, piped)
        splits = self.splits.get(key) or self.splits.setdefault(key, Splits(job, *key))
        if not len(splits):
            return
        worth: dict[float, Index] = {}
        for shape in shapes:
            self.considered += len(splits)
            capacity = fleet.shapes[shape].memory_bytes
            if capacity not in worth:
                worth[capacity] = splits.worth(capacity)
            kept = worth[capacity]
            short = 0.0 if len(kept) else float(splits.memory.min()) - capacity
            self.rows.append(_Row(shape, count, precision, self.count, self.count + len(kept), short))
            if len(kept):
                self.pieces.append(splits.table[kept])
                self.memory.append(splits.memory[kept])
                self.count += len(kept)

    def predict(self, job: LearningJob, fleet: Fleet, model: Model) -> Ways:
        rows = self.rows
        table = np.concatenate(self.pieces) if self.pieces else np.zeros((0, len(COLUMNS)))
        memory = np.concatenate(self.memory) if self.memory else np.zeros(0)
        found = self._times(job, fleet, model, table)
        seconds = found.step.value if found else np.zeros(0)
        best = [row.first + int(np.argmin(seconds[row.first : row.last])) if row.last > row.first else -1 for row in rows]
        at = np.array(best, dtype=np.intp)
        steps = job.tokens / (job.batch * job.seq)

        def taken(values: Array, none: float) -> Array:
            return (
                np.where(at < 0, none, np.broadcast_to(values, (self.count,))[at]) if self.count else np.full(len(rows), none)
            )

        nothing = np.zeros(0)
        step = (found.step.value, found.step.low, found.step.high) if found else (nothing, nothing, nothing)
        drawn = (found.power.chip + found.power.host) * np.prod(table[:, _WAYS], axis=1) if found else nothing
        return Ways(
            shape=np.array([row.shape for row in rows], dtype=np.intp),
            machines=np.array([row.count for row in rows], dtype=np.float64),
            precision=Coded.of([row.precision for row in rows]),
            split=tuple(Split(*map(int, table[one])) if one >= 0 else None for one in best),
            seconds=taken(step[0] * steps, np.inf), low=taken(step[1] * steps, np.inf), high=taken(step[2] * steps, np.inf),
            power_w=taken(drawn, 0.0), memory=taken(memory, 0.0), short=np.array([row.short for row in rows]),
            provenance=tuple(found.step.provenance.at(one) if found and one >= 0 else "" for one in best),
            considered=self.considered, estimated=self.count,
        )  # fmt: skip

    def _times(self, job: LearningJob, fleet: Fleet, model: Model, table: Array) -> TrainingEstimate | None:
        if not self.count:
            return None
        sizes = np.array([row.last - row.first for row in self.rows])
        shape = np.repeat(np.array([row.shape for row in self.rows], dtype=np.intp), sizes)
        parts = Coded.of([one.part for one in fleet.shapes])
        node = np.array([float(one.chips) for one in fleet.shapes])
        fabric = np.array([one.fabric for one in fleet.shapes])
        hardware = Hardware.of(Coded(parts.names, parts.index[shape]), fleet.parts.by_name, node[shape], fabric[shape])
        precision = Coded.of([row.precision for row in self.rows])
        setup = setup_of(job, table, Coded(precision.names, np.repeat(precision.index, sizes)))
        ask = Training(Transformers.of([job.layer]), Coded.of(job.model), hardware, setup)
        return predict_training.predict(ask, model, memory=False)
