"""The best way to serve on every shape: splits and precisions, each at the highest rate that keeps the goals.

One row per shape and precision. A replica of tp x pp chips answers so many requests a second while every latency goal holds;
the number of replicas follows from the asked rate, the number of machines from how many replicas one machine holds. Of a
shape's splits the one that needs the fewest machines is kept, of those the one that leaves most room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.hardware import Hardware
from chipwise.perf.memory_serving import kv_budget_bytes, kv_bytes
from chipwise.perf.model import Model
from chipwise.perf.part import Part
from chipwise.perf.predict_serving import Generation, highest_rate, predict, usual_engines
from chipwise.perf.setup import ServingSetup
from chipwise.perf.transformer import Layer, Transformers
from chipwise.plan.fleet import Fleet, Index

WIDEST_TENSOR = 8
BUSY = 0.8  # of what a replica can answer at most, where no latency goal says when it is full


@dataclass(frozen=True, slots=True)
class ServingJob:
    model: str
    layer: Layer
    input_len: float
    output_len: float
    prefix_len: float
    precisions: tuple[str, ...]
    kv_precision: str | None
    goals: Mapping[tuple[str, float], float]  # ("ttft", 0.9) -> seconds
    rate: float  # requests per second at the peak; 0: as many as possible (offline)


@dataclass(frozen=True)
class Serving:
    """One row per shape, precision and split."""

    shape: Index
    precision: Coded
    tp: Array
    pp: Array
    engine: Coded
    fits: Array  # 1: the weights and one sequence
    short: Array  # bytes per chip that are missing
    rate: Array  # requests per second of one replica within the goals; 0: no rate keeps them
    replicas: Array
    machines: Array
    spread: Array  # high over value, of the time per token
    considered: int
    estimated: int


def search(job: ServingJob, fleet: Fleet, model: Model, shapes: Sequence[int]) -> Serving:
    rows = [
        (at, precision, tp, pp)
        for at in shapes
        for precision, (tp, pp) in product(job.precisions, _splits(job, fleet.shapes[at].chips))
        if _runs(fleet.part(at), precision)
    ]
    shape = np.array([row[0] for row in rows], dtype=np.intp)
    precision = Coded.of([row[1] for row in rows])
    tp, pp = (np.array([row[place] for row in rows], dtype=np.float64) for place in (2, 3))
    ask = _ask(job, fleet, shape, precision, tp, pp)
    capacity = np.array([one.memory_bytes for one in fleet.shapes])[shape]
    one = ask.setup.change(batch=column(1.0))
    short = np.maximum(kv_bytes(ask.model, one) - kv_budget_bytes(ask.model, one, capacity), 0.0)
    fits = short <= 0
    rate, spread = np.zeros(len(rows)), np.ones(len(rows))
    held = np.flatnonzero(fits)
    if len(held):
        some = _ask(job, fleet, shape[held], Coded(precision.names, precision.index[held]), tp[held], pp[held])
        rate[held], spread[held] = _capacity(job, some, model)
    chips = np.array([one.chips for one in fleet.shapes])[shape]
    replicas = np.where(rate > 0, np.ceil(job.rate / np.maximum(rate, 1e-9) - 1e-9), 0.0) if job.rate else np.ones(len(rows))
    replicas = np.maximum(replicas, 1.0)
    inside = np.maximum(np.floor(chips / (tp * pp)), 1.0)
    return Serving(
        shape, precision, tp, pp, ask.setup.engine, fits.astype(float), short, rate, replicas, np.ceil(replicas / inside),
        spread, len(rows), len(held),
    )  # fmt: skip


def _splits(job: ServingJob, chips: int) -> list[tuple[int, int]]:
    layer = job.layer
    widths = [t for t in (1, 2, 4, 8, 16) if t <= min(WIDEST_TENSOR, chips) and layer.heads % t == 0 and layer.hidden % t == 0]
    depths = [p for p in (1, 2, 4) if p <= layer.layers]
    return [(tp, pp) for tp, pp in product(widths, depths) if tp * pp <= chips]


def _runs(part: Part, precision: str) -> bool:
    return precision in ("int8", "int4", "fp32") or part.has(precision)


def _ask(job: ServingJob, fleet: Fleet, shape: Index, precision: Coded, tp: Array, pp: Array) -> Generation:
    names = Coded.of([one.part for one in fleet.shapes])
    node = np.array([float(one.chips) for one in fleet.shapes])
    fabric = np.array([one.fabric for one in fleet.shapes])
    hardware = Hardware.of(Coded(names.names, names.index[shape]), fleet.parts.by_name, node[shape], fabric[shape])
    cache = job.kv_precision or "bf16"
    setup = ServingSetup.of(
        batch=1.0, input_len=job.input_len, output_len=job.output_len, prefix_len=job.prefix_len, tp=tp, pp=pp,
        precision_weights=precision, precision_kv=cache, engine=usual_engines(hardware),
    )  # fmt: skip
    return Generation(
        Transformers.of([job.layer]), Coded.of(job.model), hardware, setup, Coded.of("full"), column(0.0), column(1.0),
        column(1.0),
    )  # fmt: skip


def _capacity(job: ServingJob, ask: Generation, model: Model) -> tuple[Array, Array]:
    """Requests per second of one replica, and how much slower it may be at the interval's end."""
    full = predict(ask, model, ("requests_per_s",))["requests_per_s"]
    most = full.value * BUSY
    spread = np.broadcast_to(full.value / np.maximum(full.low, 1e-12), most.shape)
    if not job.goals:
        return most if job.rate else full.value, spread
    kept = highest_rate(ask, model, dict(job.goals))
    return np.minimum(kept, most), spread


def best(found: Serving) -> Index:
    """Of every shape and precision the row that needs the fewest machines; of those the one with most room."""
    able = np.flatnonzero((found.fits > 0) & (found.rate > 0))
    room = found.rate[able] * found.replicas[able]
    order = able[np.lexsort((-room, found.machines[able], found.precision.index[able], found.shape[able]))]
    keys = np.stack([found.shape[order], found.precision.index[order]], axis=1)
    if not len(keys):
        return order
    fresh = np.concatenate([[True], np.any(keys[1:] != keys[:-1], axis=1)])
    chosen: Index = order[fresh]
    return chosen
