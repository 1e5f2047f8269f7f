"""The best way to train on every shape and number of machines: all splits, micro-batches and ways to recompute at once.

Memory depends on the split and not on the chip, so it is reckoned once per number of chips and held against every chip's own.
What is provably no better is left out before time is predicted:
- of two micro-batches of one split without pipeline the larger one that fits is never slower: fewer passes over the same
  weights, fewer gathers. That holds while no fitted factor grows with the tokens of one (`splits.larger_is_no_slower`).
  More recomputation is more work, yet a fitted factor may fall with it: all ways to recompute are kept.
- a step takes at least its micro-batches and its bubble, (many + pp - 1) / pp times what one micro-batch takes on a replica of
  tp x cp chips: exchanges between replicas and the optimiser only add. That time depends on the part, tp, cp, ep, micro-batch
  and recomputation alone, so a few thousand replicas bound all candidates (`_Candidates.lower_bounds`). Those with the least
  bound are predicted first, then all whose bound is no more than what these took.
The rest is predicted in array calls. For a given machine every cost grows with time, so of every shape, count and precision the
fastest is kept, or the simplest of those that take at most `SIMPLER` longer: nobody cuts layers or products for so little.
Those that are simpler than the fastest are predicted too, unless their bound is beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from chipwise.perf import predict_training
from chipwise.perf.arrays import Array, Coded, combinations
from chipwise.perf.hardware import Hardware
from chipwise.perf.model import Model
from chipwise.perf.part import Part
from chipwise.perf.predict_training import Training, TrainingEstimate, usual_framework
from chipwise.perf.transformer import Transformers
from chipwise.planner.counts import LARGEST_CHIPS, machine_counts
from chipwise.planner.defaults import SIMPLER
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.training.splits import (
    CP,
    DP,
    EP,
    MICRO,
    PP,
    RECOMPUTE,
    SHARD,
    TP,
    Chosen,
    LearningJob,
    Splits,
    SplitSummary,
    setup_of,
    slopes,
)
from chipwise.planner.values.split import TrainingSplit

_MANY_BATCHES = 2.0**30  # micro-batches beside which an optimiser step is nothing
_MARGIN = 1e-6  # by which a bound must be passed: more than rounding and that optimiser step


@dataclass(frozen=True)
class Ways:
    """One row per shape, number of machines and precision: the split that is taken, or that none fits."""

    shape: Index
    machines: Array
    precision: Coded
    split: Sequence[TrainingSplit | None]
    seconds: Array  # of the whole job; infinite where nothing fits
    low: Array
    high: Array
    power_w: Array  # of all chips and their hosts, without cooling
    memory: Array  # bytes per chip
    short: Array  # bytes per chip that the smallest split lacks; 0 where one fits
    provenance: Sequence[str]
    splits: Index  # how many there are, whether they fit or not
    predicted: Index  # how many of them had their time predicted

    @property
    def considered(self) -> int:
        return int(self.splits.sum())

    @property
    def estimated(self) -> int:
        return int(self.predicted.sum())


def search(job: LearningJob, fleet: Fleet, model: Model, shapes: Sequence[int], chip_limits: tuple[int, int]) -> Ways:
    """`chip_limits` are the fewest and most chips at one time."""
    tables = {precision: Splits(job, precision, _sizes(fleet, shapes, chip_limits), model) for precision in job.precisions}
    reach = fleet.shape_reach()
    rows = []
    for index in shapes:
        part, chips = fleet.part(index), fleet.shapes[index].chips
        counts = [count for count in machine_counts(chips, chip_limits) if count <= reach[index]]
        for count, precision in product(counts, job.precisions):
            if has(part, precision, job.method):
                fitting = tables[precision].of(count * chips, chips, part.kind, fleet.shapes[index].memory_bytes)
                if fitting.splits:
                    rows.append((index, count, precision, fitting))
    return _fastest(job, fleet, model, tables, rows)


def _sizes(fleet: Fleet, shapes: Sequence[int], chip_limits: tuple[int, int]) -> list[int]:
    each = {fleet.shapes[at].chips for at in shapes}
    return sorted({chips * count for chips in each for count in machine_counts(chips, chip_limits)})


def has(part: Part, precision: str, method: str = "full") -> bool:
    """Software that trains, the arithmetic, and for 4-bit weights their kernels, which GPUs alone have."""
    if not part.trains or (method == "qlora" and part.kind != "gpu"):
        return False
    return precision == "fp32" or part.has("fp8" if precision == "mxfp8" else precision)


def _fastest(
    job: LearningJob, fleet: Fleet, model: Model, tables: dict[str, Splits], rows: list[tuple[int, int, str, SplitSummary]]
) -> Ways:
    shape = np.array([row[0] for row in rows], dtype=np.intp)
    precision = Coded.of([row[2] for row in rows])
    table, memory, starts = _joined(tables)
    sizes = np.array([len(row[3].rows) for row in rows], dtype=np.intp)
    places = [row[3].rows + starts[row[2]] for row in rows]
    candidates = _Candidates(
        job=job,
        fleet=fleet,
        model=model,
        table=table,
        place=np.concatenate(places) if places else np.zeros(0, dtype=np.intp),
        row=np.repeat(np.arange(len(rows)), sizes),
        shape=shape,
        precision=precision,
    )
    chosen, predicted = _choose(candidates, len(rows))
    place = np.where(chosen >= 0, candidates.place[chosen] if len(candidates.place) else -1, -1)
    step, power = _estimates(candidates, chosen)
    steps = job.tokens / (job.batch * job.seq)
    return Ways(
        shape=shape,
        machines=np.array([row[1] for row in rows], dtype=np.float64),
        precision=precision,
        split=Chosen(table, place),
        seconds=step["value"] * steps,
        low=step["low"] * steps,
        high=step["high"] * steps,
        power_w=power,
        memory=np.where(place >= 0, memory[place] if len(memory) else 0.0, 0.0),
        short=np.array([row[3].short for row in rows]),
        provenance=step["provenance"].tolist(),
        splits=np.array([row[3].splits for row in rows], dtype=np.intp),
        predicted=predicted,
    )


def _choose(candidates: _Candidates, rows: int) -> tuple[Index, Index]:
    """Of every row the candidate that is taken, -1 where none fits, and how many had their time predicted."""
    if not len(candidates.place):
        return np.full(rows, -1, dtype=np.intp), np.zeros(rows, dtype=np.intp)
    steps, bounds, row, cut = _Predicted(candidates, rows), candidates.lower_bounds(), candidates.row, candidates.parts_cut
    left = np.arange(len(bounds))
    for ways in (PP, EP):  # the most promising of each depth, of each spread of experts, and then all that may be faster
        steps.take(tested := candidates.promising(left, bounds, ways))
        left = np.setdiff1d(left, tested, assume_unique=True)
        left = left[bounds[left] <= (1.0 + _MARGIN) * steps.limit[row[left]]]
    faster = bounds[left] <= (1.0 + _MARGIN) * steps.fastest[row[left]]
    steps.take(left[faster])
    left, simplest = left[~faster], steps.simplest()
    rival = simplest[row[left]]
    limit = np.where(cut[left] == cut[rival], steps.seconds[rival], steps.limit[row[left]])
    steps.take(left[(cut[left] <= cut[rival]) & (bounds[left] <= (1.0 + _MARGIN) * limit)])
    return steps.simplest(), np.bincount(row[np.isfinite(steps.seconds)], minlength=rows).astype(np.intp)


def _joined(tables: dict[str, Splits]) -> tuple[Array, Array, dict[str, int]]:
    """The tables of all precisions as one, their memory, and where each begins."""
    lengths = [len(one.table) for one in tables.values()]
    starts = dict(zip(tables, np.concatenate([[0], np.cumsum(lengths)]).tolist(), strict=False))
    return (
        np.concatenate([one.table for one in tables.values()]),
        np.concatenate([one.memory for one in tables.values()]),
        starts,
    )


def _first_least(values: Array, groups: Index) -> Index:
    """Of every run of equal groups the first place that has the run's least value."""
    fresh = np.diff(groups, prepend=-1) != 0
    lowest = np.minimum.reduceat(values, np.flatnonzero(fresh))
    run = np.cumsum(fresh) - 1
    hits = np.flatnonzero(values == lowest[run])
    first: Index = hits[np.diff(run[hits], prepend=-1) != 0]
    return first


def _alike(columns: Sequence[Index]) -> tuple[Index, Index]:
    """The distinct rows of some columns of small numbers, one column each, and which of them every row is."""
    codes = [Coded(tuple(map(str, range(int(one.max()) + 1))), one) for one in columns]
    distinct, inverse = combinations(codes)
    return np.array([np.broadcast_to(one.index, (len(distinct[0].index),)) for one in distinct]), inverse


@dataclass(frozen=True)
class _Candidates:
    """Splits that fit, of all shapes, counts and precisions."""

    job: LearningJob
    fleet: Fleet
    model: Model
    table: Array
    place: Index  # row of `table`
    row: Index  # which shape, count and precision; never falls
    shape: Index  # of each row
    precision: Coded

    @cached_property
    def parts_cut(self) -> Index:
        """What is simpler has the smaller number: no pipeline, then no tensor, context and expert parallelism."""
        powers = [_power(self.table[:, ways]) for ways in (PP, TP, CP, EP)]
        code: Index = ((powers[0] * 16 + powers[1]) * 16 + powers[2]) * 16 + powers[3]
        return code[self.place]

    def predict(self, chosen: Index) -> TrainingEstimate:
        row = self.row[chosen]
        precision = Coded(self.precision.names, self.precision.index[row])
        return _predict(
            self.job, self.model, hardware_of(self.fleet, self.shape[row]), self.table[self.place[chosen]], precision
        )

    def promising(self, chosen: Index, bounds: Array, ways: int) -> Index:
        """Of every row and every value of a column of the table the candidate with the least bound."""
        key = self.row[chosen] * 64 + _power(self.table[:, ways])[self.place[chosen]]
        order = np.argsort(key, kind="stable")  # by rows and stages they are in order already
        picked: Index = np.sort(chosen[order[_first_least(bounds[chosen[order]], key[order])]])
        return picked

    def lower_bounds(self) -> Array:
        """Seconds that no step of a candidate can be shorter than; 0 where nothing is known before it is predicted."""
        if slopes(self.model, ("*", "nodes"))[0] < 0:  # more machines would be faster than one
            return np.zeros(len(self.place))
        table = self.table
        tp, pp, cp, ep, dp, micro = (table[:, at] for at in (TP, PP, CP, EP, DP, MICRO))
        layered = (tp * pp * ep > 1) | (table[:, SHARD] == 1)
        stack = np.where(layered, 2, np.where(dp * cp > 1, 1, 0))  # what `usual_framework` tells apart
        kinds, kind = _alike([stack, _power(tp), _power(cp), _power(ep), table[:, RECOMPUTE].astype(np.intp), _power(micro)])
        parts = Coded.of([one.part for one in self.fleet.shapes])
        domain = hardware_of(self.fleet, np.arange(len(self.fleet.shapes))).domain[self.shape]
        inside = np.maximum(ep, tp * cp)[self.place] <= domain[self.row]  # then it does not matter what joins machines
        spot = np.where(inside, parts.index[self.shape][self.row], len(parts.names) + self.shape[self.row])
        codes, code = _alike([self.precision.index[self.row], spot, kind[self.place]])
        seconds, bubbles = self._replicas(parts, codes[0], codes[1], *kinds[:, codes[2]])
        micro_batches = np.maximum(self.job.batch / (dp * micro), 1.0)
        bounds: Array = seconds[code] * np.where(
            bubbles[code], ((micro_batches + pp - 1.0) / pp)[self.place], (micro_batches / pp)[self.place]
        )
        return bounds

    def _replicas(
        self,
        parts: Coded,
        precision: Index,
        place: Index,
        stack: Index,
        tp: Index,
        cp: Index,
        ep: Index,
        recompute: Index,
        micro: Index,
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Seconds of one micro-batch on one replica; whether a bubble comes on top (not where the hardware's floor is all)."""
        unit = np.ones(len(place))
        table = np.column_stack([2.0**tp, unit, 2.0**cp, 2.0**ep, unit, 0.0 * unit, recompute.astype(float), 2.0**micro])
        is_part = place < len(parts.names)  # a part in one machine that is large enough, or a shape
        shape = np.where(is_part, 0, place - len(parts.names))
        node = np.array([float(one.chips) for one in self.fleet.shapes])[shape]
        fabric = np.array([one.fabric for one in self.fleet.shapes])[shape]
        hardware = Hardware.of(
            Coded(parts.names, np.where(is_part, place, parts.index[shape])),
            self.fleet.parts.by_name,
            np.where(is_part, 2.0 * LARGEST_CHIPS, node),
            np.where(is_part, 0.0, fabric),
        )
        formats = Coded(self.precision.names, precision)
        like = table.copy()  # a job of that kind, to see which software it would run on
        like[:, PP], like[:, DP] = np.where(stack == 2, 2.0, 1.0), np.where(stack == 1, 2.0, 1.0)
        model, name = Transformers.of([self.job.layer]), Coded.of(self.job.model)
        software = usual_framework(Training(model, name, hardware, setup_of(self.job, like, formats)))
        setup = setup_of(self.job, table, formats).change(global_batch=_MANY_BATCHES * table[:, MICRO])
        step = predict_training.predict(
            Training(model=model, name=name, hardware=hardware, setup=setup, framework=software), self.model, memory=False
        ).step
        return step.value / _MANY_BATCHES, step.terms["attention"] > 0


def _power(values: Array) -> Index:
    return np.log2(values).astype(np.intp)


class _Predicted:
    """Seconds of a step of the candidates that were predicted; infinite of the others."""

    def __init__(self, candidates: _Candidates, rows: int) -> None:
        self.candidates = candidates
        self.seconds = np.full(len(candidates.place), np.inf)
        self.fastest = np.full(rows, np.inf)  # of every row

    @property
    def limit(self) -> Array:
        """Of every row: what takes no longer is as fast."""
        return (1.0 + SIMPLER) * self.fastest

    def take(self, chosen: Index) -> None:
        if len(chosen):
            seconds = np.broadcast_to(self.candidates.predict(chosen).step.value, chosen.shape)
            self.seconds[chosen] = seconds
            np.minimum.at(self.fastest, self.candidates.row[chosen], seconds)

    def simplest(self) -> Index:
        """Of every row the candidate that is as fast as any and cuts the model least, then the fastest of these."""
        row, cut = self.candidates.row, self.candidates.parts_cut
        near = np.flatnonzero(self.seconds <= self.limit[row])
        ranked = near[np.lexsort((near, self.seconds[near], cut[near], row[near]))]
        first = np.full(len(self.fastest), -1, dtype=np.intp)
        heads = ranked[np.diff(row[ranked], prepend=-1) != 0]
        first[row[heads]] = heads
        return first


def _estimates(candidates: _Candidates, chosen: Index) -> tuple[dict[str, Array], Array]:
    """The step of every row's candidate and the watts of all its chips; infinite and none where there is no candidate."""
    rows = np.flatnonzero(chosen >= 0)
    step: dict[str, Array] = {name: np.full(len(chosen), np.inf) for name in ("value", "low", "high")}
    step["provenance"] = np.full(len(chosen), "", dtype=object)
    power = np.zeros(len(chosen))
    if len(rows):
        estimate = candidates.predict(chosen[rows])
        for name in ("value", "low", "high"):
            step[name][rows] = getattr(estimate.step, name)
        names = np.array(estimate.step.provenance.names, dtype=object)
        step["provenance"][rows] = names[estimate.step.provenance.index]
        chips = np.prod(candidates.table[candidates.place[chosen[rows]]][:, [TP, PP, CP, DP]], axis=1)
        power[rows] = (estimate.power.chip + estimate.power.host) * chips
    return step, power


def hardware_of(fleet: Fleet, shape: Index) -> Hardware:
    parts = Coded.of([one.part for one in fleet.shapes])
    node = np.array([float(one.chips) for one in fleet.shapes])
    fabric = np.array([one.fabric for one in fleet.shapes])
    return Hardware.of(Coded(parts.names, parts.index[shape]), fleet.parts.by_name, node[shape], fabric[shape])


def _predict(job: LearningJob, model: Model, hardware: Hardware, table: Array, precision: Coded) -> TrainingEstimate:
    ask = Training(Transformers.of([job.layer]), Coded.of(job.model), hardware, setup_of(job, table, precision))
    return predict_training.predict(ask, model, memory=False)
