"""Whether it fits, by how much, and the smallest change that would make it fit.

Changes are tried in order of disruption, each alone, then together with the gentle ones before it; the first that fits is
named, and all are kept with the bytes they lead to. Training: smaller micro-batch, recomputation, ZeRO stage, 8-bit
optimiser, more chips, LoRA, QLoRA. Serving: fewer sequences, 8-bit cache, narrower weights where the chip has them, more
chips, shorter context, another chip. Nothing here judges speed or quality.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import numpy as np

from chipwise.perf.arrays import Array, Coded, Index, column, cut
from chipwise.perf.memory import Memory
from chipwise.perf.memory_serving import kv_room, serving_memory
from chipwise.perf.memory_training import training_memory
from chipwise.perf.part import Part
from chipwise.perf.setup import FULL, SELECTIVE, WEIGHT_BITS, ServingSetup, TrainingSetup
from chipwise.perf.setup_rules import Rows
from chipwise.perf.transformer import Transformers

NO_CHANGE, NO_HELP = "none needed", "nothing tried helps"
LARGEST = 2.0**24  # of a batch or a context that is looked for
Setup = TypeVar("Setup", TrainingSetup, ServingSetup)


@dataclass(frozen=True, slots=True)
class Change(Generic[Setup]):
    """A setup that differs, on `part` where another chip is meant."""

    name: str
    apply: Callable[[Setup], Setup]
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class FitAttempt:
    """What a change leads to; NaN bytes where the row fits as it is."""

    name: str
    bytes_per_chip: Array
    fits: Rows


@dataclass(frozen=True, slots=True)
class Fit:
    memory: Memory
    capacity: float  # bytes of the chip
    spare: Array  # bytes left; negative: missing
    attempts: tuple[FitAttempt, ...]

    @property
    def fits(self) -> Rows:
        return np.asarray(self.spare >= 0)

    @property
    def headroom(self) -> Array:
        """Spare share of the chip."""
        return self.spare / self.capacity

    @property
    def change(self) -> Coded:
        """Of every row the first change that makes it fit."""
        names = (NO_CHANGE, NO_HELP, *(one.name for one in self.attempts))
        codes = np.where(self.fits, 0, 1).astype(np.intp)
        for position, attempt in reversed(list(enumerate(self.attempts, start=2))):
            codes = np.where(attempt.fits & ~self.fits, position, codes)
        return Coded(names, codes)

    @property
    def changed_bytes(self) -> Array:
        """Bytes per chip after that change; the present ones where none is needed or none helps."""
        after = np.vstack([self.memory.total, self.memory.total, *(one.bytes_per_chip for one in self.attempts)])
        return np.asarray(after[self.change.index, np.arange(after.shape[1])])


def fits(
    model: Transformers,
    part: Part,
    setup: TrainingSetup | ServingSetup,
    larger: Sequence[Part] = (),
    changes: bool = True,
) -> Fit:
    """`larger` are chips to try when nothing else helps; without `changes` only the question itself is answered."""
    upgrades = larger if changes else None
    if isinstance(setup, TrainingSetup):
        return _answer(_train, training_changes, model, part, setup, upgrades)
    return _answer(_serve, serving_changes, model, part, setup, upgrades)


def largest_micro_batch(model: Transformers, part: Part, setup: TrainingSetup) -> Array:
    """Sequences per micro-batch that fit, everything else as it is; 0: not even one."""

    def enough(micro: Array) -> Rows:
        bigger = setup.change(micro_batch=micro, global_batch=np.maximum(setup.global_batch, micro * setup.dp))
        return _train(model, part, bigger)[1] >= 0

    return largest_whole(enough, max(len(setup), len(model.layers)))


def largest_batch(model: Transformers, part: Part, setup: ServingSetup) -> Array:
    """Sequences in flight that fit, everything else as it is; 0: not even one."""
    return largest_whole(lambda b: _serve(model, part, setup.change(batch=b))[1] >= 0, max(len(setup), len(model.layers)))


def largest_context(model: Transformers, part: Part, setup: TrainingSetup | ServingSetup) -> Array:
    """Tokens per sequence that fit, everything else as it is; of a served one the answer keeps its length."""
    count = max(len(setup), len(model.layers))
    if isinstance(setup, TrainingSetup):
        return largest_whole(lambda s: _train(model, part, setup.change(seq=s))[1] >= 0, count)
    served = setup

    def enough(tokens: Array) -> Rows:
        prompt = np.maximum(tokens - served.output_len, 1.0)
        shorter = served.change(input_len=prompt, prefix_len=np.minimum(served.prefix_len, prompt))
        return (_serve(model, part, shorter)[1] >= 0) & (tokens > served.output_len)

    return _largest_above(enough, served.output_len, count)


def largest_whole(enough: Callable[[Array], Rows], count: int) -> Array:
    """The largest whole number up to `LARGEST` for which `enough` holds in every row, 0 where it holds for none.

    Halving; `enough` must not turn true again once it was false.
    """
    low, high = np.zeros(count), np.full(count, LARGEST)
    while np.any(high - low > 0):
        middle = np.ceil((low + high) / 2)
        good = enough(np.maximum(middle, 1.0)) & (middle > 0)
        low, high = np.where(good, middle, low), np.where(good, high, middle - 1)
    return low


def _largest_above(enough: Callable[[Array], Rows], least: Array, count: int) -> Array:
    found = largest_whole(lambda more: enough(more + least), count)
    return np.where(found > 0, found + least, 0.0)


def training_changes(model: Transformers, part: Part, larger: Sequence[Part] = ()) -> list[Change[TrainingSetup]]:
    def micro(setup: TrainingSetup) -> TrainingSetup:
        most = largest_micro_batch(model, part, setup)
        return setup.change(micro_batch=np.maximum(np.minimum(most, setup.micro_batch), 1.0))

    def stage(number: int) -> Callable[[TrainingSetup], TrainingSetup]:
        return lambda setup: setup.change(shard=np.maximum(setup.shard, number))

    def gentle(setup: TrainingSetup) -> TrainingSetup:
        return setup.change(recompute=FULL, micro_batch=1.0)

    def eight(setup: TrainingSetup) -> TrainingSetup:
        return setup.change(optimizer="adamw-8bit")

    def adapt(method: str) -> Callable[[TrainingSetup], TrainingSetup]:
        return lambda setup: setup.change(method=method)

    def spread(ways: int) -> Callable[[TrainingSetup], TrainingSetup]:
        return lambda setup: setup.change(
            shard=3, dp=setup.dp * ways, global_batch=np.maximum(setup.global_batch, setup.micro_batch * setup.dp * ways)
        )

    def split(ways: int) -> Callable[[TrainingSetup], TrainingSetup]:
        return lambda setup: setup.change(tp=np.maximum(setup.tp, ways), sequence_parallel=1)

    options: list[Change[TrainingSetup]] = [
        Change("smaller micro-batch", micro),
        Change("selective recomputation", lambda s: s.change(recompute=np.maximum(s.recompute, SELECTIVE))),
        Change("full recomputation", lambda s: s.change(recompute=FULL)),
        Change("full recomputation and micro-batch 1", gentle),
        *(Change(f"ZeRO stage {number}", stage(number)) for number in (1, 2, 3)),
        Change("8-bit optimiser", eight),
        Change("ZeRO stage 3, full recomputation, micro-batch 1", _then(stage(3), gentle)),
        Change("8-bit optimiser, full recomputation, micro-batch 1", _then(eight, gentle)),
        *(Change(f"{ways} x the chips with FSDP", spread(ways)) for ways in (2, 4, 8)),
        *(Change(f"tensor parallel over {ways}", split(ways)) for ways in (2, 4, 8) if ways <= part.domain),
        Change("8 x the chips with FSDP, full recomputation, micro-batch 1", _then(spread(8), gentle)),
        Change("64 x the chips with FSDP, full recomputation, micro-batch 1", _then(spread(64), gentle)),
        Change("LoRA", adapt("lora")),
        Change("LoRA, full recomputation, micro-batch 1", _then(adapt("lora"), gentle)),
        Change("QLoRA", adapt("qlora")),
        Change("QLoRA, full recomputation, micro-batch 1", _then(adapt("qlora"), gentle)),
    ]
    return options + [Change(other.name, lambda s: s, other) for other in larger]


def serving_changes(model: Transformers, part: Part, larger: Sequence[Part] = ()) -> list[Change[ServingSetup]]:
    narrow_cache = "fp8" if part.has("fp8") else "int8"
    weights = [name for name in ("fp8", "int8", "int4") if part.has(name)]
    wider = [ways for ways in (2, 4, 8) if ways <= part.domain]

    def fewer(setup: ServingSetup) -> ServingSetup:
        most = largest_batch(model, part, setup)
        return setup.change(batch=np.maximum(np.minimum(most, setup.batch), 1.0))

    def shorter(setup: ServingSetup) -> ServingSetup:
        longest = largest_context(model, part, setup)
        prompt = np.maximum(np.minimum(longest, setup.context) - setup.output_len, 1.0)
        return setup.change(input_len=prompt, prefix_len=np.minimum(setup.prefix_len, prompt))

    def stored(name: str) -> Callable[[ServingSetup], ServingSetup]:
        return lambda setup: setup.change(precision_weights=_narrower(setup.precision_weights, name))

    def cached(setup: ServingSetup) -> ServingSetup:
        return setup.change(precision_kv=_narrower(setup.precision_kv, narrow_cache))

    def split(ways: int) -> Callable[[ServingSetup], ServingSetup]:
        return lambda setup: setup.change(tp=setup.tp * ways)

    options: list[Change[ServingSetup]] = [
        Change("fewer sequences", fewer),
        Change(f"{narrow_cache} cache", cached),
        *(Change(f"{name} weights", stored(name)) for name in weights),
        *(Change(f"{name} weights and {narrow_cache} cache", _then(stored(name), cached)) for name in weights),
        *(Change(f"{ways} x the chips, tensor parallel", split(ways)) for ways in wider),
        Change("shorter context", shorter),
        *(Change(f"{ways} x the chips and fewer sequences", _then(split(ways), fewer)) for ways in wider),
    ]
    return options + [Change(other.name, lambda s: s, other) for other in larger]


def _then(first: Callable[[Setup], Setup], second: Callable[[Setup], Setup]) -> Callable[[Setup], Setup]:
    return lambda setup: second(first(setup))


def _narrower(present: Coded, wanted: str) -> Coded:
    """`wanted` in every row that is not as narrow already."""
    bits = WEIGHT_BITS[wanted]
    return present.map(lambda name: wanted if WEIGHT_BITS.get(name, 16.0) > bits else name)


def _train(model: Transformers, part: Part, setup: TrainingSetup) -> tuple[Memory, Array]:
    memory = training_memory(model, setup, part.kind)
    return memory, part.memory_bytes - memory.total


def _serve(model: Transformers, part: Part, setup: ServingSetup) -> tuple[Memory, Array]:
    """Spare is what is left of the room that the engine has for its cache."""
    memory = serving_memory(model, setup, part.kind)
    return memory, kv_room(memory, setup, column(part.memory_bytes)) - memory.kv_cache


def _answer(
    measure: Callable[[Transformers, Part, Setup], tuple[Memory, Array]],
    changes: Callable[[Transformers, Part, Sequence[Part]], list[Change[Setup]]],
    model: Transformers,
    part: Part,
    setup: Setup,
    larger: Sequence[Part] | None,
) -> Fit:
    memory, spare = measure(model, part, setup)
    lacking: Index = np.flatnonzero(spare < 0)
    attempts = []
    if len(lacking) and larger is not None:
        some_model, some_setup = _picked(model, lacking), setup.rows(lacking)
        for change in changes(some_model, part, larger):
            changed = change.apply(some_setup)
            after, left = measure(some_model, change.part or part, changed)
            total, good = np.full(len(spare), np.nan), np.zeros(len(spare), dtype=np.bool_)
            total[lacking], good[lacking] = after.total, (left >= 0) & changed.valid(some_model)
            attempts.append(FitAttempt(change.name, total, good))
    return Fit(memory, part.memory_bytes, spare, tuple(attempts))


def _picked(model: Transformers, rows: Index) -> Transformers:
    columns = {one.name: getattr(model, one.name) for one in fields(model)}
    return Transformers(**{name: cut(values, rows) for name, values in columns.items()})
