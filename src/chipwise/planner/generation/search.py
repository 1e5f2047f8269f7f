"""The best way to serve on every shape: splits and precisions, each at the highest rate that keeps the goals.

One row per shape and precision. A replica of tp x pp chips answers so many requests a second while every latency goal holds;
the number of machines follows from the asked rate and from how many replicas one machine holds. All chips of the machines work:
they are paid for, so they hold as many replicas as have room. Of a shape's splits the one that needs the fewest machines is
kept, of those the one that answers most requests.

Rows that no load can save are not predicted: where reading the weights once for a token, or multiplying one prompt with
them, takes longer than a goal allows even at 95% of the nominal bandwidth and peak (`family_inference.FLOORS`, below which
no prediction goes). That is what most processors and small slices of a chip fail by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import numpy as np

from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.memory_serving import kv_bytes, kv_room, serving_memory
from chipwise.perf.model import Model
from chipwise.perf.predict_serving import Generation, replica
from chipwise.planner.defaults import FULL_MEMORY, SPARED_COST, within_headroom
from chipwise.planner.fleet import Fleet, Index, Shape, machines_for, replicas_in
from chipwise.planner.generation.capacity import capacity
from chipwise.planner.generation.job import ServingJob, ask_of, formats
from chipwise.planner.limits import Mask
from chipwise.predictor.splits import serving_splits

AT_BEST = 0.96  # of nominal bandwidth and peak: a hair above what predictions are floored at


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
    filled: Array  # of the memory that the engine takes of a chip, by all but the cache and by the longest sequence
    rate: Array  # requests per second that one replica is planned for; 0: no rate keeps the goals
    replicas: Array
    machines: Array
    spread: Array  # high over value, of the time per token
    per_machine: Array  # requests per second; a replica over several machines counts in parts
    counts: Index  # numbers of machines that the limits leave to choose from
    provenance: Coded  # how near to measurements
    predicted: Array  # 1: predicted; 0: left out, because it does not fit or no load keeps the goals
    chance: Array  # that a request alone keeps the goals; 1 without goals
    alone: Array  # `rate`, also where so many replicas or chips are not allowed
    headroom: Array  # above the load, as a share of it: what was asked for, or a hair less

    def only(self, mask: Mask) -> Serving:
        """Some of the rows."""
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        return Serving(**{name: _picked(column, mask) for name, column in columns.items()})


def search(job: ServingJob, fleet: Fleet, model: Model, shapes: Sequence[int], chip_limits: tuple[int, int]) -> Serving:
    """`chip_limits` are the fewest and most chips at one time."""
    reach = fleet.shape_reach()
    rows = [
        (index, precision, tp, pp)
        for index in shapes
        for precision, (tp, pp) in product(
            formats(job, fleet.part(index)), _splits(job, fleet.shapes[index], float(reach[index]))
        )
        if max(fleet.shapes[index].chips, tp * pp) <= chip_limits[1]
    ]
    if not rows:
        none = np.zeros(0)
        empty = np.zeros(0, dtype=np.intp)
        return Serving(
            shape=empty,
            precision=Coded((), empty),
            tp=none,
            pp=none,
            engine=Coded.of(""),
            fits=none,
            short=none,
            filled=none,
            rate=none,
            replicas=none,
            machines=none,
            spread=none,
            per_machine=none,
            counts=empty,
            provenance=Coded.of(""),
            predicted=none,
            chance=none,
            alone=none,
            headroom=none,
        )
    shape = np.array([row[0] for row in rows], dtype=np.intp)
    precision = Coded.of([row[1] for row in rows])
    tp, pp = (np.array([row[place] for row in rows], dtype=np.float64) for place in (2, 3))
    ask = ask_of(job, fleet, shape, precision, tp, pp)
    memory_bytes = np.array([one.memory_bytes for one in fleet.shapes])[shape]
    single = ask.setup.change(batch=column(1.0))
    if job.longest > job.input_len + job.output_len:
        single = single.change(input_len=column(max(job.longest - job.output_len, 1.0)))
    memory, longest = serving_memory(ask.model, single), kv_bytes(ask.model, single)
    room = kv_room(memory, single, memory_bytes)  # below zero where not even the weights fit
    short = np.maximum(longest - room, 0.0)
    rest = memory.total - memory.kv_cache
    fits = short <= 0
    rate, spread, at_once, chance = np.zeros(len(rows)), np.ones(len(rows)), np.zeros(len(rows)), np.ones(len(rows))
    hopeful = fits & ~_hopeless(job, ask)
    places = np.flatnonzero(hopeful)
    provenance = Coded(("",), np.zeros(len(rows), dtype=np.intp))
    if len(places):
        first, alike = _replicas(ask, tp, pp, shape, places)
        sample = ask_of(job, fleet, shape[first], Coded(precision.names, precision.index[first]), tp[first], pp[first])
        *columns, near = capacity(job, sample, model)
        rate[places], spread[places], at_once[places], chance[places] = (
            np.broadcast_to(one, first.shape)[alike] for one in columns
        )
        provenance.index[places] = 1 + np.broadcast_to(near.index, first.shape)[alike]
        provenance = Coded(("", *near.names), provenance.index)
    chips = np.array([one.chips for one in fleet.shapes], dtype=np.float64)[shape]
    load = job.concurrency or job.rate
    able = within_headroom(at_once, job.headroom, bool(job.goals)) if job.concurrency else rate
    replicas = np.ceil(load / np.maximum(able, 1e-9) - 1e-9) if load else np.ones(len(rows))
    replicas = np.maximum(np.where(able > 0, replicas, 1.0), job.least_replicas)
    if job.least_rate:
        replicas = np.maximum(replicas, np.where(rate > 0, np.ceil(job.least_rate / np.maximum(rate, 1e-9) - 1e-9), 1.0))
    limit_machines = np.ceil(chip_limits[0] / np.maximum(chips, 1.0))
    machines = np.maximum(machines_for(chips, tp * pp, replicas), limit_machines)
    headroom = np.full(len(rows), job.headroom)
    if job.rate and job.spared and not job.least_rate:
        wider = (1.0 + job.headroom) / (1.0 + job.headroom - job.spared)
        fewer = np.maximum(np.ceil(load / np.maximum(wider * able, 1e-9) - 1e-9), job.least_replicas)
        spared = np.maximum(machines_for(chips, tp * pp, fewer), limit_machines)
        spare = (able > 0) & (machines > (1.0 + SPARED_COST) * spared)
        replicas, machines = np.where(spare, fewer, replicas), np.where(spare, spared, machines)
        copies = np.maximum(replicas, np.minimum(replicas_in(chips, tp * pp, machines), job.most_replicas))
        headroom = np.where(spare, (1.0 + job.headroom) * rate * copies / load - 1.0, headroom)
        rate = np.where(spare, np.maximum(rate, load / copies), rate)
    alone = rate
    rate = np.where((machines * chips <= chip_limits[1]) & (replicas <= job.most_replicas), rate, 0.0)
    if job.rate:
        replicas = np.maximum(replicas, np.minimum(replicas_in(chips, tp * pp, machines), job.most_replicas))
    return Serving(
        shape=shape,
        precision=precision,
        tp=tp,
        pp=pp,
        engine=ask.setup.engine,
        fits=fits.astype(float),
        short=short,
        filled=np.broadcast_to((rest + longest) / np.maximum(rest + room, 1.0), shape.shape),
        rate=rate,
        replicas=replicas,
        machines=machines,
        spread=spread,
        per_machine=rate * np.maximum(np.floor(chips / (tp * pp)), 1.0) / np.ceil(tp * pp / chips),
        counts=np.maximum(chip_limits[1] // chips - np.ceil(chip_limits[0] / chips) + 1, 0).astype(np.intp),
        provenance=provenance,
        predicted=hopeful.astype(float),
        chance=chance,
        alone=alone,
        headroom=headroom,
    )


def _replicas(ask: Generation, tp: Array, pp: Array, shape: Index, rows: Index) -> tuple[Index, Index]:
    """(one of each kind, the kind of each row): a replica within fast links is the same whatever machine it is in."""
    beyond = np.where(tp * pp > ask.hardware.domain, 1 + shape, 0)
    columns = (ask.hardware.part.index, ask.setup.precision_weights.index, tp.astype(np.intp), pp.astype(np.intp), beyond)
    key = np.zeros(len(rows), dtype=np.intp)
    for values in columns:
        key = key * (int(values.max()) + 1) + values[rows]
    _, first, alike = np.unique(key, return_index=True, return_inverse=True)
    return rows[first], alike


def _hopeless(job: ServingJob, ask: Generation) -> Mask:
    """Rows that miss a goal whatever the load: one request alone takes too long at the fastest that the hardware could be.

    A median or higher percentile of a time per token, or of a whole answer, is no less than the time of a step, and a step
    reads every weight that one token meets; a first token waits for its prompt. Stages follow each other, so that only the
    tensor split makes one request faster.
    """
    run = replica(ask)
    weights = run.model.layers * run.model.weights_met(column(1.0))
    token = weights * run.weight_bytes / (run.tp * run.bandwidth * AT_BEST)
    fresh = max(job.input_len - job.prefix_len, 1.0)
    worked = run.model.layers * (run.model.attention_weights + run.model.mlp_weights)
    first = 2.0 * fresh * worked / (run.tp * run.peak * AT_BEST)
    shortest = {"ttft": first, "tpot": token, "latency": first + max(job.output_len - 1.0, 0.0) * token}
    lost = np.zeros(len(ask), dtype=bool)
    for (name, share), limit in job.goals.items():
        if name == "ttft" or share >= 0.5:
            lost |= shortest[name] > limit
    return lost


def _splits(job: ServingJob, shape: Shape, reach: float) -> list[tuple[int, int]]:
    """`reach` is the most machines that one replica can be spread over."""
    if not shape.is_whole:  # slices do not reach each other, and a processor's sockets count as one
        return [(1, 1)]
    return serving_splits(job.layer, shape.chips, reach)


def _picked(column: Any, mask: Mask) -> Any:
    if isinstance(column, Coded):
        return column if len(column) == 1 and len(mask) != 1 else Coded(column.names, column.index[mask])
    return column[mask]


def best(rows: Serving, online: bool, confidence: float = 0.0) -> Index:
    """Of every shape and precision the row that needs the fewest machines, of those the one with most room; offline the one
    that gets most out of a machine. A split that is sure enough of the goals comes before all that are not, and of these the
    one that has the fewest machines by the probability that it keeps them; one that leaves room in memory before all that
    do not."""
    able = np.flatnonzero((rows.fits > 0) & (rows.rate > 0))
    room = rows.rate[able] * rows.replicas[able]
    unsure = rows.chance[able] < confidence
    risky = rows.machines[able] / np.where(unsure, np.maximum(rows.chance[able], 1e-6), 1.0)
    first, second = (risky, -room) if online else (-rows.per_machine[able], rows.machines[able])
    full = rows.filled[able] > FULL_MEMORY
    order = able[np.lexsort((second, first, full, unsure, rows.precision.index[able], rows.shape[able]))]
    keys = np.stack([rows.shape[order], rows.precision.index[order]], axis=1)
    if not len(keys):
        return order
    fresh = np.concatenate([[True], np.any(keys[1:] != keys[:-1], axis=1)])
    chosen: Index = order[fresh]
    return chosen
