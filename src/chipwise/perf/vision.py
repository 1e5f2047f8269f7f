"""Time of one pass of everything that is no language model: convolution nets, encoders, diffusion, recommenders.

For b samples in one pass of a network of products (m rows per sample, n columns, k depth), on a chip of peak P, bandwidth W:
  matrix     sum of 2 b m n k / (P e c(n) c(k)),  c(x) = x / (x + x0)      what the matrix units need
  stream     weights once, every product's inputs and outputs, over W      mostly hidden behind matrix, or the other way round
  attention  scores in 16 bits
  element    norms, activations, sums and unfused softmax that the engine leaves, over W
  start      what each kernel costs on the chip
  launch     what it costs on the host, hidden while kernels are long
  feed       samples over PCIe and their decoding, hidden likewise where the next batch comes in beside the work
  fixed      per call;  link   tensor-parallel sums or gradients;  optimizer, lookup   state and embedding rows, over W
  exchange   where embedding tables are split over chips: what a sample names goes out, what the tables give comes back
             (two all-to-alls), in training its gradient too; nothing is hidden
A step of training is three forward passes, a pass over the optimiser's state, and an all-reduce of the gradients that hides
behind the backward pass. A pipeline of p stages over q pieces of a batch takes (q + p - 1) / p passes of one piece.
What is left between engines, chips and networks is fitted (see `family_vision.py`).
Limits: data-parallel copies do not slow each other; tensor-parallel ways share products evenly; no sorting of boxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np

from chipwise.perf.arrays import Array, Coded, Index, column, cut, soft_max
from chipwise.perf.collective import Network
from chipwise.perf.net import Net, ProductTable
from chipwise.perf.operators import ATTENTION_EFFICIENCY, COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY, exposed

BASES = (
    "matrix",
    "stream",
    "attention",
    "element",
    "start",
    "launch",
    "feed",
    "fixed",
    "link",
    "optimizer",
    "lookup",
    "exchange",
)
TERMS = (
    "matrix",
    "memory",
    "attention",
    "elementwise",
    "starts",
    "launches",
    "input",
    "fixed",
    "communication",
    "optimizer",
    "lookup",
)
METRICS = ("samples_per_s", "latency_ms")
# Seconds by kind of chip: of a kernel's own beginning and end, and of a call into the engine and back.
START_S = {"gpu": 5e-6, "neuron": 1e-6, "tpu": 10e-6, "cpu": 3e-6}
FIXED_S = {"gpu": 25e-6, "neuron": 170e-6, "cpu": 200e-6}
OTHER_START_S, OTHER_FIXED_S = 5e-6, 80e-6
KEPT_BYTES = {"neuron": 24e6}  # scratch memory of a core that the compiler fills; caches of other chips are left to the fit
SAMPLE_S = 5e-8  # per sample on the host
MIX = 2.0  # how sharply the larger of matrix and stream decides: a network has layers of either kind
OVERLAP = 0.8  # of the backward pass under which gradients travel
PIECE_ROWS = 1024.0  # of a piece that a pipeline works on at a time
SCORE_PASSES = 4.0  # over the square of scores where attention is not fused: out, softmax in and out, in
BACKWARD_ATTENTION = 2.5  # forward equivalents (Dao 2023, arXiv:2307.08691)
STATE_BYTES = 20.0  # per parameter that the optimiser reads and writes
GATHERED = 0.5  # of the bandwidth that scattered rows reach
BLOCK = 4096  # rows that are computed at once, each with all products of its network
NAME_BYTES = 8.0  # of a row's number on its way to the chip that holds it


@dataclass(frozen=True, slots=True)
class Pass:
    """Columns: a network on hardware, one row per candidate."""

    nets: tuple[Net, ...]
    net_index: Index  # each row's network
    batch: Array  # samples in one pass of one copy
    peak: Array  # FLOP/s of the unit that does the products
    half_peak: Array  # in 16 bits: attention, and parts that are not narrowed
    bandwidth: Array
    pcie: Array
    network: Network
    value_bytes: Array  # per activation
    weight_bytes: Array
    unfused: Array  # how much of the element-wise work the engine leaves
    unfused_scores: Array  # and of the passes over the square of scores
    kernels: Array  # per product
    start_s: Array  # of one kernel on the chip
    launch_s: Array  # and on the host
    fixed_s: Array  # of one call
    kept_bytes: Array  # results that stay on the chip between products
    tensor: Array  # chips that share every product
    stages: Array  # of a pipeline that a batch is cut up for
    training: Array  # 1: a step, 0: a forward pass
    data_ways: Array  # copies whose gradients are summed
    decoded: Array  # host seconds per sample of an input pipeline; 0: none
    input_width: Array  # bytes of an input value on its way
    overlapped: Array  # 1: the next batch comes in beside this one's work
    table_ways: Array = field(default_factory=partial(column, 1.0))  # chips that share the tables; 1: each has all
    copies_per_chip: Array = field(default_factory=partial(column, 1.0))  # that share its link in that exchange

    def __len__(self) -> int:
        return max(len(self.network.link), *(len(getattr(self, name)) for name in self._columns()))

    def rows(self, selection: Index) -> Pass:
        joins = (self.network.link, self.network.domain, self.network.fabric)
        network = Network(*(cut(values, selection) for values in joins))
        parts = {name: getattr(self, name) for name in self._columns()}
        picked = {name: values if len(values) == 1 else values[selection] for name, values in parts.items()}
        return replace(self, network=network, **picked)

    def _columns(self) -> tuple[str, ...]:
        return tuple(one.name for one in fields(self) if one.name not in ("nets", "network"))


def bases(run: Pass) -> dict[str, Array]:
    """Seconds of each kind of work in one pass (inference) or step (training) of one copy."""
    count = len(run)
    seconds = {name: np.zeros(count) for name in BASES}
    net_index = np.broadcast_to(run.net_index, (count,))
    for place, net in enumerate(run.nets):
        every = np.flatnonzero(net_index == place)
        for rows in np.split(every, range(BLOCK, len(every), BLOCK)) if len(every) else ():
            for name, values in _net_seconds(net, run.rows(rows)).items():
                seconds[name][rows] = values
    return seconds


def _net_seconds(net: Net, run: Pass) -> dict[str, Array]:
    """All rows run `net`."""
    tensor, training, value, half = run.tensor, run.training, run.value_bytes, run.half_peak
    bandwidth = run.bandwidth * MEMORY_EFFICIENCY
    pieces = _pieces(net, run.batch, run.stages)
    batch = run.batch / pieces
    turns = (pieces + run.stages - 1.0) / run.stages  # passes of the whole network that the last piece waits for
    passes = turns * (1.0 + 2.0 * training)
    matrix, stream = _compute(net.table, batch, run), _moved(net.table, batch, run)
    sums = _summed(net.table, batch, run) if np.any(tensor > 1) else np.zeros(1)
    scores = net.score_flop * batch / (tensor * half * ATTENTION_EFFICIENCY)
    attended = net.score_values * batch * value / tensor / bandwidth
    touched = net.touched * run.unfused + SCORE_PASSES * net.score_map * run.unfused_scores
    gradients = run.network.all_reduce(net.parameters * 2.0 * np.ones_like(batch), np.maximum(run.data_ways, 1.0))
    kernels = net.kernels * run.kernels * passes
    return {
        "matrix": matrix * passes,
        "stream": stream / bandwidth * passes,
        "attention": soft_max(scores, attended) * turns * (1.0 + BACKWARD_ATTENTION * training),
        "element": touched * batch * value / tensor / bandwidth * passes,
        "start": kernels * run.start_s,
        "launch": kernels * run.launch_s,
        "feed": run.batch * (net.inputs * run.input_width / run.pcie + SAMPLE_S + run.decoded),
        "fixed": run.fixed_s * np.ones_like(batch),
        "link": np.where(training > 0, gradients, sums) * turns,
        "optimizer": training * net.parameters * STATE_BYTES / bandwidth,
        "lookup": net.lookups * batch * value / (GATHERED * bandwidth * tensor) * passes,
        "exchange": _exchanged(net, run) * np.ones_like(batch),
    }


def exchanged_bytes(net: Net, batch: Array, value: Array) -> tuple[Array, Array]:
    """What one chip sends in all for `batch` samples of its own: rows that they name, and what its tables give to others.

    With k chips, each with T/k of the T tables (or, of tables that are too large, 1/k of their columns) and b samples, a chip
    answers all k b samples for its share: k b T/k pooled vectors, b T in all, whatever k is; 1/k of them stay. Tables cut by
    rows would send k times as much, partial sums.
    """
    return NAME_BYTES * net.rows_read * batch, net.pooled * batch * value


def _exchanged(net: Net, run: Pass) -> Array:
    if not net.pooled or not np.any(run.table_ways > 1):
        return np.zeros(1)
    names, pooled = exchanged_bytes(net, run.batch * run.copies_per_chip, run.value_bytes)
    ways = np.maximum(run.table_ways, 1.0)
    out, back = run.network.all_to_all(names, ways), run.network.all_to_all(pooled, ways)
    return np.where(run.table_ways > 1, out + back * (1.0 + run.training), 0.0)


def _compute(products: ProductTable, batch: Array, run: Pass) -> Array:
    by_depth = products.columns <= products.depth  # which of the two chips share
    wide = np.where(by_depth, products.columns, products.columns / run.tensor)
    deep = np.where(by_depth, products.depth / run.tensor, products.depth)
    width = wide / (wide + products.narrow) * (deep / (deep + products.narrow))
    rate = np.where(products.wide > 0, np.minimum(run.half_peak, run.peak), run.peak)
    return _total(products.flop * batch / (run.tensor * rate * COMPUTE_EFFICIENCY * width))


def _moved(products: ProductTable, batch: Array, run: Pass) -> Array:
    """Bytes: weights, and what of the inputs and results does not stay on the chip."""
    value, weight = (np.where(products.wide > 0, np.maximum(size, 2.0), size) for size in (run.value_bytes, run.weight_bytes))
    touched = products.rows * products.groups * (products.columns + products.depth / products.window)
    values = touched * value * batch / run.tensor
    spilled = values * values / (values + run.kept_bytes)
    return _total(products.times * (products.weights * weight / run.tensor + spilled))


def _summed(products: ProductTable, batch: Array, run: Pass) -> Array:
    """Seconds in which chips that share a pair of products add up the results of the second."""
    second = products.only((products.columns <= products.depth)[:, 0])
    return _total(second.times * run.network.all_reduce(second.results * batch * run.value_bytes, run.tensor))


def _total(by_product: Array) -> Array:
    total: Array = by_product.sum(axis=0)
    return total


def _pieces(net: Net, batch: Array, stages: Array) -> Array:
    """How many pieces a pipeline cuts a batch into: one per stage, more where a piece would be over `PIECE_ROWS` rows."""
    rows = max((one.rows for one in net.products), default=1.0)
    wanted = np.exp2(np.ceil(np.log2(np.maximum(batch * rows / PIECE_ROWS, 1.0))))
    return np.where(stages > 1, np.minimum(np.maximum(stages, wanted), np.maximum(batch, 1.0)), 1.0)


def compose(run: Pass, base: Mapping[str, Array]) -> dict[str, Array]:
    """Terms in seconds, their sum being the time of a pass or step."""
    work = soft_max(base["matrix"], base["stream"], MIX)
    chip = work + base["attention"] + base["element"] + base["lookup"] + base["start"]
    hidden = exposed(base["link"], chip * 2.0 / 3.0, OVERLAP)
    link = np.where(run.training > 0, hidden, base["link"])
    link = link + base["exchange"]
    busy = chip + link + base["optimizer"]
    waits = soft_max(busy, base["launch"]) - busy
    exposed_feed = soft_max(busy + waits, base["feed"]) - busy - waits
    fed = np.where(run.overlapped > 0, exposed_feed, base["feed"])
    return {
        "matrix": base["matrix"],
        "memory": work - base["matrix"],
        "attention": base["attention"],
        "elementwise": base["element"],
        "starts": base["start"],
        "launches": waits,
        "input": fed,
        "fixed": base["fixed"],
        "communication": link,
        "optimizer": base["optimizer"],
        "lookup": base["lookup"],
    }


@dataclass(frozen=True, slots=True)
class PassQuery:
    """Columns: what is asked of a pass."""

    metric: Coded
    copies: Array  # replicas that work side by side
    in_flight: Array  # batches that wait in each copy at once, for latency


def answer(query: PassQuery, batch: Array) -> tuple[Array, Array]:
    """(scale, power) such that the metric is scale * seconds ** power."""
    rate = query.metric.look_up(lambda name: float(name == "samples_per_s"))
    scale = np.where(rate > 0, batch * query.copies, 1e3 * query.in_flight)
    return scale, np.where(rate > 0, -1.0, 1.0)
