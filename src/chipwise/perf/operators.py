"""Operators by roofline: matrix products by shape, attention by phase, element-wise passes, lookups.

A matrix product of m x k by k x n on a chip of peak P and bandwidth W takes
  max( 2mnk / (P e_c c(n) c(k)), bytes / (W e_m) )  softened where the two are close,  c(x) = x / (x + x0),
so narrow products stay below the peak and thin ones (few rows) run at the speed of their weights. e_c and e_m are what
large products reach; what is left between chips, engines and shapes is fitted (see `pooling.py`).
Measured on one H200: weight streaming 77-85% of the nominal bandwidth, bf16 74% of the dense peak at 4096, 80% at 8192.
"""

from __future__ import annotations

import numpy as np

from chipwise.perf.arrays import Array, soft_max

COMPUTE_EFFICIENCY = 0.80
MEMORY_EFFICIENCY = 0.82
NARROW = 160.0  # columns or depth that reach half of the compute efficiency
ATTENTION_EFFICIENCY = 0.55  # of the 16-bit peak, fused attention over long sequences


def product(
    m: Array, n: Array, k: Array, peak: Array, bandwidth: Array, weight_bytes: Array, value_bytes: float = 2.0
) -> Array:
    """Seconds of one m x k by k x n product; `weight_bytes` per element of the k x n side."""
    compute = (n + NARROW) * m * ((k + NARROW) * (2.0 / COMPUTE_EFFICIENCY) / peak)  # 2mnk with both c(x) cancelled
    moved = n * (weight_bytes * k) + (n + k) * (value_bytes * m)
    return soft_max(compute, moved / (bandwidth * MEMORY_EFFICIENCY))


def attention(flop: Array, moved: Array, peak: Array, bandwidth: Array) -> Array:
    return soft_max(flop / (peak * ATTENTION_EFFICIENCY), moved / (bandwidth * MEMORY_EFFICIENCY))


def passes(moved: Array, bandwidth: Array) -> Array:
    """Element-wise work: bytes over the bandwidth that such kernels reach."""
    return moved / (bandwidth * MEMORY_EFFICIENCY)


def exposed(hidden: Array, compute: Array, overlap: Array | float) -> Array:
    """What is left of `hidden` when it runs beside `compute`: nothing while it is short, all that is over otherwise."""
    room = overlap * compute
    return np.maximum(hidden - room, 0.0) + np.minimum(hidden, room) * ((1.0 - overlap) * 0.25)
