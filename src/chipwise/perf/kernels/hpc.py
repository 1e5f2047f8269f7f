"""Numerical work by roofline: what is computed (`Step`) x how it is split (`Split`) x on what (`Chips`).

    t1 = (c^4 + m^4)^(1/4),  c = W / (e_c R),  m = Q / (e_m B)                 Williams, Waterman and Patterson 2009
    t  = t1 (1 - p) + t1 p / n + communication(pattern, bytes each chip sends, n) + k launches    Amdahl 1967
W FLOP and Q bytes of one step over all chips, R and B a chip's peaks, e the shares kernels reach (`data/perf/kernels.csv`),
p the parallel share, n chips, k kernels started. Communication is not hidden behind work. Collectives: `perf/collective.py`.
Limits: no load imbalance but Amdahl's, no cache model (a working set that fits caches is faster), no contention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array, Coded, Index, column
from chipwise.perf.collective import Network
from chipwise.perf.kernels.chips import BYTES, PRECISIONS, SAME_NAME, Chips, kernels
from chipwise.perf.kernels.work import (
    Flags,
    Names,
    Numbers,
    Terms,
    allowed_name,
    at_least,
    names_of,
    overlapped,
    positive,
    share,
)
from chipwise.perf.part import Part
from chipwise.workload.choices import Pattern
from chipwise.workload.kinds import Hpc

PATTERNS = tuple(pattern.value for pattern in Pattern)
_ALSO = {"stencil": "halo", "neighbour": "halo", "fft": "alltoall"}
COMMUNICATION_SPREAD = 0.35  # rule of thumb: placement, congestion, overlap with work
LAUNCH_SPREAD = 0.3
USABLE_MEMORY = 0.92  # rule of thumb: the rest is context, buffers and fragments
ONE_PASS_BYTES = 65536.0  # of a transform that one multiprocessor keeps on chip; measured by us on one H200, 2026-11-15
PASS_BITS = 10.0  # of the length that each pass of a longer transform takes (same measurement: 2 passes to 2^20, 3 to 2^26)
OTHER_FACTORS = 1.6  # a length that is no power of two moves this much more (768^3, same measurement)
RANDOM_FLOP = 25.0  # one Philox number in FLOP at the fraction of `monte_carlo` (same machine: 1.3e12 uniforms/s)
SECTOR_BYTES = 32.0  # the least that a gather outside the caches moves


@dataclass(frozen=True, slots=True)
class Step:
    """Work of one step over all chips, in columns; `repeats` steps follow each other."""

    kernel: str
    flop: Array
    moved: Array  # bytes between memory and chips
    launches: Array
    repeats: Array
    matrix: bool = False  # done by matrix units


@dataclass(frozen=True, slots=True)
class Split:
    """Over how many chips, and what each of them sends in one step."""

    chips: Array
    pattern: Coded
    sent: Array
    parallel: Array

    @classmethod
    def of(cls, chips: Numbers, pattern: Names = "none", sent: Numbers = 0.0, parallel: Numbers = 1.0) -> Split:
        return cls(
            at_least("chips", chips, 1.0),
            names_of("pattern", pattern, PATTERNS, _ALSO),
            at_least("sent", sent, 0.0),
            share("parallel", parallel),
        )


def generic(
    flop: Numbers,
    moved: Numbers,
    *,
    kernel: str = "generic",
    launches: Numbers = 1.0,
    repeats: Numbers = 1.0,
    matrix: bool = False,
) -> Step:
    """A step that is known by its operations and bytes only."""
    return Step(
        kernel=allowed_name("kernel", kernel, kernels()),
        flop=at_least("flop", flop, 0.0),
        moved=at_least("moved", moved, 0.0),
        launches=at_least("launches", launches, 0.0),
        repeats=positive("repeats", repeats),
        matrix=matrix,
    )


def gemm(m: Numbers, n: Numbers, k: Numbers, precision: str = "fp64", repeats: Numbers = 1.0) -> Step:
    """C (m x n) += A (m x k) B (k x n): 2 m n k FLOP, each matrix moved once."""
    m, n, k = positive("m", m), positive("n", n), positive("k", k)
    size = _element(precision)
    return generic(2 * m * n * k, size * (m * k + k * n + 2 * m * n), kernel="gemm", repeats=repeats, matrix=True)


def fft(points: Numbers, dimensions: int = 1, batch: Numbers = 1.0, precision: str = "fp64", repeats: Numbers = 1.0) -> Step:
    """Complex transforms of `points` in each of 1, 2 or 3 dimensions: 5 N log2 N FLOP, passes over memory by length.

    A transform that fits one multiprocessor's memory goes over the data once; a longer one once per 2^10 of its length.
    Over several chips add `Split.of(n, "alltoall", N x batch x complex bytes / n)`, twice that for slabs kept in order.
    """
    length = at_least("points", points, 2.0)
    allowed_name("dimensions", str(dimensions), ("1", "2", "3"))
    size = 2 * _element(precision)
    elements = length**dimensions * at_least("batch", batch, 1.0)
    passes = np.where(length * size <= ONE_PASS_BYTES, 1.0, np.maximum(np.ceil(np.log2(length) / PASS_BITS), 2.0)) * dimensions
    bits = np.log2(length)
    uneven = np.where(bits == np.round(bits), 1.0, OTHER_FACTORS)
    return generic(
        5 * elements * dimensions * bits, 2 * size * passes * elements * uneven, kernel="fft", launches=passes, repeats=repeats
    )


def stencil(
    points: Numbers,
    flop_per_point: Numbers,
    bytes_per_point: Numbers | None = None,
    reuse: Numbers = 1.0,
    precision: str = "fp64",
    repeats: Numbers = 1.0,
) -> Step:
    """A sweep over a grid. Bytes default to one value read and one written; `reuse` steps share one pass (time tiling)."""
    points = positive("points", points)
    point_bytes = column(2 * _element(precision)) if bytes_per_point is None else positive("bytes_per_point", bytes_per_point)
    moved = points * point_bytes / at_least("reuse", reuse, 1.0)
    return generic(points * positive("flop_per_point", flop_per_point), moved, kernel="stencil", repeats=repeats)


def spmv(nonzeros: Numbers, rows: Numbers, misses: Numbers = 0.0, precision: str = "fp64", repeats: Numbers = 1.0) -> Step:
    """y = A x with A in CSR: a value and a 4-byte column per nonzero; a row pointer, x and y per row.

    `misses` is the share of gathers from x that no cache holds: near 0 for bands and meshes, 1 for random columns.
    """
    nonzeros, rows, size = positive("nonzeros", nonzeros), positive("rows", rows), _element(precision)
    moved = nonzeros * (size + 4) + rows * (4 + 2 * size) + share("misses", misses) * nonzeros * SECTOR_BYTES
    return generic(2 * nonzeros, moved, kernel="spmv", repeats=repeats)


def monte_carlo(
    samples: Numbers, flop_per_sample: Numbers, randoms_per_sample: Numbers = 1.0, bytes_per_sample: Numbers = 0.0
) -> Step:
    """Independent samples; a random number counts as 25 FLOP. An exponential or logarithm is about 8 (rule of thumb)."""
    samples = positive("samples", samples)
    sample_flop = at_least("flop_per_sample", flop_per_sample, 0.0) + RANDOM_FLOP * at_least(
        "randoms_per_sample", randoms_per_sample, 0.0
    )
    return generic(samples * sample_flop, samples * at_least("bytes_per_sample", bytes_per_sample, 0.0), kernel="monte_carlo")


def molecular_dynamics(
    atoms: Numbers, pairs_per_atom: Numbers, flop_per_pair: Numbers = 30.0, steps: Numbers = 1.0, launches: Numbers = 10.0
) -> Step:
    """Short-range forces over a neighbour list: 4 bytes a pair, 64 an atom (position, velocity, force read and written).

    Ten kernels a step (lists, bonds, mesh, constraints, integration) is a rule of thumb. Long-range meshes are an `fft` beside.
    """
    atoms, pairs = positive("atoms", atoms), positive("pairs_per_atom", pairs_per_atom)
    return generic(
        atoms * pairs * positive("flop_per_pair", flop_per_pair),
        atoms * (4 * pairs + 64),
        kernel="molecular_dynamics",
        launches=launches,
        repeats=positive("steps", steps),
    )


def time(chips: Chips, work: Step, split: Split | None = None) -> Terms:
    """Seconds for all repeats of `work` on candidates that each have `split.chips` of their row's chip."""
    partition = split or Split.of(1.0)
    reached = chips.achieved(work.kernel)
    rate = chips.matrix_rate if work.matrix else chips.rate
    compute, memory = overlapped(work.flop / (reached.compute * rate), work.moved / (reached.bandwidth * chips.bandwidth))
    part = partition.parallel / partition.chips
    terms = Terms.of(
        {
            "compute": (compute * part, reached.spread),
            "memory": (memory * part, reached.spread),
            "serial": ((compute + memory) * (1 - partition.parallel), reached.spread),
            "communication": (communicate(chips.network, partition), COMMUNICATION_SPREAD),
            "launch": (work.launches * chips.launch, LAUNCH_SPREAD),
        },
        shared_spread=chips.spread,
    )
    return terms.times(work.repeats)


def communicate(network: Network, split: Split) -> Array:
    """Seconds of one step's exchange.

    Halo: of a domain's d chips, arranged as a cube, d^(-1/3) of all faces look outside. A broadcast goes as the pieces of
    an all-gather. The others are the collectives of `Network`.
    """
    sent, chips, _, _ = np.broadcast_arrays(split.sent, split.chips, network.link, split.pattern.index)
    exchange_s = np.zeros_like(sent)
    for code, pattern in enumerate(split.pattern.names):
        seconds = _exchange(network, pattern, sent, chips)
        exchange_s = np.where((split.pattern.index == code) & (chips > 1) & (sent > 0), seconds, exchange_s)
    return exchange_s


def _exchange(network: Network, pattern: str, sent: Array, chips: Array) -> Array:
    match pattern:
        case "halo":
            leaving = np.where(chips > network.domain, network.domain ** (-1 / 3), 0.0)
            near = network.send((1 - leaving) * sent, np.zeros_like(chips))
            return near + np.where(leaving > 0, network.send(leaving * sent, np.full_like(chips, np.inf)), 0.0)
        case "allreduce":
            return network.all_reduce(sent, chips)
        case "alltoall":
            return network.all_to_all(sent, chips)
        case "broadcast":
            return network.gather(sent, chips)
        case _:
            return np.zeros_like(sent)


def fits(chips: Chips, working_set: Numbers, count: Numbers) -> Flags:
    """Where the problem has room in the memory of `count` chips."""
    room = USABLE_MEMORY * chips.memory_bytes * at_least("chips", count, 1.0)
    return at_least("working_set", working_set, 0.0) <= room


def step_of(work: Hpc) -> Step:
    """The workload's own step; formats that only matrix units have (all but fp64 and fp32) are done there."""
    precision = work.precision.value
    return generic(
        work.flop_per_step or 0.0, work.bytes_per_step or 0.0, repeats=work.steps, matrix=precision not in ("fp64", "fp32")
    )


def job(work: Hpc, parts: Sequence[Part], count: Numbers, index: Index | None = None, at_once: Numbers = 1.0) -> Terms:
    """Seconds for the whole workload on `count` chips of each candidate, `at_once` of its runs side by side on as many each."""
    sent = work.communication.bytes_per_step or 0.0
    split = Split.of(count, work.communication.pattern.value, sent, work.parallel)
    terms = time(Chips.of(parts, work.precision.value, index), step_of(work), split)
    return terms.times(np.ceil(work.runs / at_least("at_once", at_once, 1.0)))


def _element(precision: str) -> float:
    return BYTES[allowed_name("precision", precision, PRECISIONS, SAME_NAME)]
