"""What the ten programs do, written down by hand from their source: operations and bytes of a step, and the workload they are.

Bytes are the arrays that each line reads and writes, once each. None: nothing there is counted in floating-point operations, or
(the transformer's bytes) nobody can add them up by hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Truth:
    program: str
    flop: float | None
    moved: float | None
    precision: str = "fp64"
    parallel: float = 0.001  # NumPy divides only products over threads
    model: str = ""  # of a network: its fields as a workload has them
    batch: int = 0
    optimizer: str = ""
    tolerance: str = ""


def _classifier() -> Truth:
    side, batch = 64, 32
    channels = [(3, 32), (32, 64), (64, 64)]
    macs = [side * side * 9 * before * after for before, after in channels]
    head = 64 * 10
    parameters = sum(9 * before * after for before, after in channels) + head
    flop = 2.0 * batch * (3 * (sum(macs) + head) - macs[0])  # pictures need no gradient
    layers = [(4.0 * batch * side * side * before, 4.0 * batch * side * side * after) for before, after in channels]
    moved = 0.0
    for index, (taken, given) in enumerate(layers):
        moved += taken + given + 2 * given  # convolution, then ReLU
        moved += given + taken + (taken if index else 0.0) + 3 * given  # their gradients
    moved += 3 * layers[-1][1]  # the mean over places; its gradient is spread out and divided
    model = (
        f"{{kind: network, layers: cnn, parameters: {parameters}, macs: {sum(macs) + head}, products: 4, image_size: {side}, "
        f"activations: {sum(side * side * after for _, after in channels) + 10}}}"
    )
    return Truth("image_classifier", flop, moved, "fp32", model=model, batch=batch, optimizer="sgd")


def _transformer() -> Truth:
    width, layers, length, batch, words = 256, 4, 128, 8, 1000
    tokens = float(length)
    macs = layers * (12 * width * width * tokens + 2 * tokens * tokens * width) + tokens * width * words
    parameters = layers * (12 * width * width + 4 * width) + 2 * width * words
    given = layers * (3 + 1 + 1 + 4 + 1) * width * length + words * length  # heads, attention, joined, wide, narrow; scores
    model = (
        f"{{kind: network, layers: vit, parameters: {parameters}, macs: {macs:.0f}, products: {5 * layers + 1}, "
        f"sequence: {length}, tables: {width * words}, activations: {given}}}"
    )
    attention = layers * 2 * tokens * tokens * width
    flop = 2.0 * batch * (3 * macs + 0.5 * attention)  # attention computes its scores again in the backward pass
    return Truth("transformer", flop, None, "fp32", model=model, batch=batch, optimizer="adamw")


def truths() -> tuple[Truth, ...]:
    n, grid, signal, points = 512.0, (1024.0 - 2) ** 2, 2.0**18, 500_000.0
    transform = 5 * signal * math.log2(signal)
    return (
        Truth("matrix_products", 2 * n**3 + n**2, 8 * (3 * n**2 + 2 * n**2), parallel=0.95),
        Truth("stencil", 4 * grid, 8 * grid * (3 + 3 + 3 + 2 + 2)),  # three sums, one product, one assignment
        Truth("fourier", 2 * transform, 2 * 2 * 16 * signal),
        Truth("monte_carlo", points * (2 * 25 + 3), points * (2 * 8 + 2 * 16 + 24 + 9 + 1)),
        _classifier(),
        _transformer(),
        Truth("sorting", None, None),
        Truth("compression", None, None),
        Truth("web_requests", None, None),
        Truth("recursion", None, None),
    )
