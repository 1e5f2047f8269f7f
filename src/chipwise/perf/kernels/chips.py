"""Chips as columns for one number format, and the share of their peaks that kernels reach (`data/perf/kernels.csv`).

A vector kernel (stencil, FFT, particles) cannot use matrix units: in 16 and 8 bits it gets at most twice the FP32 rate,
while products of matrices get the rate on the sheet. Rules of thumb, each widening the interval by `spread`: double
precision that no sheet states is half of FP32 on processors and on GPUs with fast memory (Blackwell Ultra excepted), and
1/64 elsewhere, where it is emulated or left to a token unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf.arrays import Array, Coded, Index
from chipwise.perf.collective import Network
from chipwise.perf.kernels.work import allowed_name, pick, pick_names
from chipwise.perf.part import Part
from chipwise.perf.tables import rows

BYTES = {
    "fp64": 8.0,
    "fp64_tensor": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "fp4": 0.5,
    "nf4": 0.5,
    "int4": 0.5,
}
PRECISIONS = tuple(BYTES)
SAME_NAME = {"double": "fp64", "float64": "fp64", "single": "fp32", "float32": "fp32", "half": "fp16", "bfloat16": "bf16"}
# Starting one kernel. GPU: a 256 x 256 product in a CUDA graph took 2.7 us on one H200 (measured by us, 2026-11-15).
LAUNCH_S = {"gpu": 2.5e-6, "cpu": 2e-6, "edge": 10e-6, "tpu": 5e-6, "neuron": 10e-6}
_LAUNCH_ELSEWHERE_S = 10e-6
_UNSTATED, _EMULATED = 0.3, 1.0
_MATRIX_OVER_VECTOR = 16.0  # 16-bit products over FP32 elsewhere, where a sheet states the former only (A100: 16, H100: 15)


@dataclass(frozen=True, slots=True)
class Achieved:
    """Columns: shares of the peaks, and the standard deviation of their logarithm."""

    compute: Array
    bandwidth: Array
    spread: Array


@cache
def fractions() -> dict[tuple[str, str], tuple[float, float, float]]:
    """(kernel, kind of chip) -> shares of the compute and bandwidth peaks, spread."""
    return {
        (row["kernel"], row["kind_of_chip"]): (
            float(row["compute_fraction"]),
            float(row["bandwidth_fraction"]),
            float(row["spread"]),
        )
        for row in rows("kernels.csv")
    }


@cache
def kernels() -> tuple[str, ...]:
    return tuple(dict.fromkeys(kernel for kernel, _ in fractions()))


def _double(part: Part) -> tuple[float, float]:
    """Vector FP64 and how unsure it is."""
    if "fp64" in part.rates:
        return part.rates["fp64"], 0.0
    if part.kind == "cpu":
        return part.rate("fp32") / 2, 0.1
    fast = part.kind == "gpu" and part.bandwidth >= 1.5e12 and "Ultra" not in part.architecture
    return part.rate("fp32") / (2 if fast else 64), _UNSTATED if fast else _EMULATED


def _rates(part: Part, precision: str) -> tuple[float, float, float]:
    """Vector rate, matrix rate, spread."""
    if precision in ("fp64", "fp64_tensor"):
        vector, spread = _double(part)
        return vector, max(part.rates.get("fp64_tensor", 0.0), vector), spread
    matrix = part.rate(precision)
    single = part.rates.get("fp32", part.rate("bf16") / _MATRIX_OVER_VECTOR)
    known = part.stated and (part.has(precision) or part.has("bf16") or part.has("fp16"))
    spread = 0.0 if known and "fp32" in part.rates else _UNSTATED
    if precision in ("fp32", "tf32"):
        return min(single, matrix), matrix, spread
    return min(2.0 * single, matrix), matrix, spread


@dataclass(frozen=True, slots=True)
class Chips:
    """Columns of candidates: what a kernel in one number format asks of a chip."""

    precision: str
    kind: Coded
    rate: Array  # FLOP/s of the vector units
    matrix_rate: Array  # FLOP/s of the matrix units, of the vector units where there are none
    bandwidth: Array  # bytes/s, nominal
    memory_bytes: Array
    pcie: Array  # bytes/s to the host
    network: Network
    spread: Array  # standard deviation of the logarithm, of what no sheet states

    @classmethod
    def of(cls, parts: Sequence[Part], precision: str, index: Index | None = None) -> Chips:
        """One row per part, or per entry of `index` into `parts`."""
        if not parts:
            raise BadInput("parts: there are none.", remedy="Give at least one part.")
        name = allowed_name("precision", precision, PRECISIONS, SAME_NAME)
        vector, matrix, spread = (pick(values, index) for values in zip(*(_rates(p, name) for p in parts), strict=True))

        network = Network(
            link=pick([p.link for p in parts], index),
            domain=pick([p.domain for p in parts], index),
            fabric=pick([p.fabric for p in parts], index),
        )
        return cls(
            precision=name,
            kind=pick_names([part.kind for part in parts], index),
            rate=vector,
            matrix_rate=matrix,
            bandwidth=pick([p.bandwidth for p in parts], index),
            memory_bytes=pick([p.memory_bytes for p in parts], index),
            pcie=pick([p.pcie for p in parts], index),
            network=network,
            spread=spread,
        )

    def __len__(self) -> int:
        return len(self.rate)

    @property
    def launch(self) -> Array:
        """Seconds to start one kernel."""
        return self.kind.look_up(lambda kind: LAUNCH_S.get(kind, _LAUNCH_ELSEWHERE_S))

    def achieved(self, kernel: str) -> Achieved:
        name = allowed_name("kernel", kernel, kernels())
        table = fractions()
        rows = [table.get((name, kind)) or table[(name, "any")] for kind in self.kind.names]
        compute, bandwidth, spread = (np.array(values, dtype=np.float64)[self.kind.index] for values in zip(*rows, strict=True))
        return Achieved(compute, bandwidth, spread)
