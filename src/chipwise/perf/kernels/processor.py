"""Inference on processors: products of matrices against vector or tile units, weights against memory bandwidth.

    product = 2 m n k / (e_c R s)            against  bytes / b
    token   = 2 weights batch / (e_c R s)    against  (weights + caches in bytes) / b
    b = min(e_m B, cores x 12.5 GB/s)
R and B are a socket's peaks, s = v / threads the share of it that v vCPUs are, e the shares of `data/perf/kernels.csv`. A
core draws about 12.5 GB/s whatever the socket could give: measured by us on an Emerald Rapids Xeon, 2026-11-15 (1 thread 13,
16 vCPUs, which are 8 cores, 98 GB/s; 4 and 8 vCPUs of an otherwise idle machine drew 43 and 74). A rate above eight times
FP32 means tiles (AMX), whose libraries reach far less of the peak than vector code does. Formats without a unit are computed
in FP32.
Limits: one socket (two sockets: two replicas), no cache model, clocks as in `data/tables/cpus.csv` (upper bounds), the
neighbours of a rented vCPU idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.tables import CpuRates
from chipwise.errors import BadInput
from chipwise.perf.arrays import Array, Index
from chipwise.perf.kernels.chips import BYTES, PRECISIONS, SAME_NAME, fractions
from chipwise.perf.kernels.work import Numbers, Terms, allowed_name, at_least, overlapped, pick, positive
from chipwise.perf.part import Part

CORE_BYTES_PER_S = 12.5e9
TILES_OVER_VECTOR = 8.0
USUAL_CORES = 48.0  # where no table counts them
CALL_S = 20e-6  # rule of thumb: one operator through a framework, threads woken and joined
_NO_SMT = ("Graviton", "Neoverse")  # a vCPU is a core; elsewhere it is half of one


@dataclass(frozen=True, slots=True)
class Processors:
    """Columns of candidates: sockets, for one number format."""

    precision: str
    rate: Array  # FLOP/s of the socket in that format, or in FP32 where it has no unit for it
    tiles: Array  # 1: by tile units
    bandwidth: Array
    cores: Array
    threads: Array  # vCPUs that the whole socket is
    spread: Array

    @classmethod
    def of(cls, parts: Sequence[Part], precision: str, rows: Sequence[CpuRates] = (), index: Index | None = None) -> Processors:
        """`rows` (the catalog's `cpus` table) count the cores; a part that is not there is taken to have 48."""
        name = allowed_name("precision", precision, PRECISIONS, SAME_NAME)
        non_cpus = [part.name for part in parts if part.kind != "cpu"]
        if non_cpus or not parts:
            raise BadInput(
                f"parts: {', '.join(non_cpus[:3]) or 'none'} is no processor.", remedy="Allowed: parts of the kind cpu."
            )
        cores = {row.name: float(row.cores) for row in rows if row.cores}
        own = ["fp32" if name == "tf32" else name if name in part.rates else "fp32" for part in parts]
        single = [part.rate("fp32") for part in parts]
        rate = [
            part.rates.get(unit, flop) / (2 if name.startswith("fp64") else 1)
            for part, unit, flop in zip(parts, own, single, strict=True)
        ]
        threads_per_core = [
            1.0 if any(word in f"{part.name} {part.architecture}" for word in _NO_SMT) else 2.0 for part in parts
        ]

        return cls(
            precision=name,
            rate=pick(rate, index),
            tiles=pick([float(r > TILES_OVER_VECTOR * f) for r, f in zip(rate, single, strict=True)], index),
            bandwidth=pick([part.bandwidth for part in parts], index),
            cores=pick([cores.get(part.name, USUAL_CORES) for part in parts], index),
            threads=pick(
                [cores.get(part.name, USUAL_CORES) * n for part, n in zip(parts, threads_per_core, strict=True)], index
            ),
            spread=pick([0.0 if part.stated and part.name in cores else 0.25 for part in parts], index),
        )

    def reached(self, kernel: str) -> tuple[Array, Array, Array]:
        """Shares of the compute and bandwidth peaks, and their spread, that `kernel` reaches by vectors or by tiles."""
        table = fractions()
        (compute, bandwidth, spread), tiles = table[(kernel, "cpu")], table[("gemm_tiles", "cpu")]
        by_tiles = self.tiles > 0
        return np.where(by_tiles, tiles[0], compute), np.full_like(self.rate, bandwidth), np.where(by_tiles, tiles[2], spread)


def _reach(processors: Processors, vcpus: Numbers | None, fraction: Array) -> tuple[Array, Array]:
    """The share of the socket's compute, and bytes/s, that so many vCPUs have; None: the whole socket."""
    threads = processors.threads if vcpus is None else np.minimum(at_least("vcpus", vcpus, 1.0), processors.threads)
    cores = np.maximum(threads / processors.threads * processors.cores, 1.0)
    return threads / processors.threads, np.minimum(fraction * processors.bandwidth, cores * CORE_BYTES_PER_S)


def gemm(processors: Processors, m: Numbers, n: Numbers, k: Numbers, vcpus: Numbers | None = None) -> Terms:
    """C (m x n) = A (m x k) B (k x n); with m = 1 a product of a vector and a matrix."""
    m, n, k = positive("m", m), positive("n", n), positive("k", k)
    compute_share, bandwidth_share, spread = processors.reached("gemm")
    part, speed = _reach(processors, vcpus, bandwidth_share)
    compute, memory = overlapped(
        2 * m * n * k / (compute_share * processors.rate * part), BYTES[processors.precision] * (m * k + k * n + m * n) / speed
    )
    return Terms.of(
        {"compute": (compute, spread), "memory": (memory, 0.2), "call": (np.full_like(compute, CALL_S), 0.5)}, processors.spread
    )


def token(
    processors: Processors,
    weights: Numbers,
    batch: Numbers = 1.0,
    cache_bytes: Numbers = 0.0,
    vcpus: Numbers | None = None,
    layers: Numbers = 32.0,
) -> Terms:
    """Seconds of one decoding step: every weight is read once for the whole batch, and each sequence's cache.

    Weights in a format without a unit are read in that format and multiplied in FP32, as quantised engines do.
    """
    values, size = positive("weights", weights), at_least("batch", batch, 1.0)
    compute_share, bandwidth_share, spread = processors.reached("decode")
    part, speed = _reach(processors, vcpus, bandwidth_share)
    moved = values * BYTES[processors.precision] + size * at_least("cache_bytes", cache_bytes, 0.0)
    compute, memory = overlapped(2 * values * size / (compute_share * processors.rate * part), moved / speed)
    calls = 4 * positive("layers", layers) * CALL_S  # rule of thumb: four fused operators a layer
    return Terms.of({"compute": (compute, spread), "memory": (memory, 0.3), "call": (calls, 0.5)}, processors.spread)


def forward(
    processors: Processors, flop: Numbers, moved: Numbers, vcpus: Numbers | None = None, calls: Numbers = 50.0
) -> Terms:
    """Seconds of one forward pass that is known by its operations and bytes: encoders, vision, a prompt."""
    compute_share, bandwidth_share, spread = processors.reached("vision")
    part, speed = _reach(processors, vcpus, bandwidth_share)
    compute, memory = overlapped(
        at_least("flop", flop, 0.0) / (compute_share * processors.rate * part), at_least("moved", moved, 0.0) / speed
    )
    return Terms.of(
        {"compute": (compute, spread), "memory": (memory, 0.3), "call": (at_least("calls", calls, 0.0) * CALL_S, 0.5)},
        processors.spread,
    )
