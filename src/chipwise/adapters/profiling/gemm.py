"""Matrix products: y (m x n) = x (m x k) by the weights of a linear layer (n x k, transposed).

Squares show the peak, skinny ones (few rows, as in decoding) the memory's part, odd sizes the loss at ragged tiles. The
weights come from memory, x is warm, as between the layers of a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from chipwise.adapters.profiling.case import Call, Case, sizes
from chipwise.adapters.profiling.device import Device, width

_SQUARES = (8192, 4096, 2048, 1024, 16384, 512, 256, 12288, 6144, 3072, 1536, 768)
_ROWS = (1, 16, 128, 8, 64, 256, 32, 4, 2)
_LAYERS = ((4096, 14336), (4096, 4096), (8192, 28672), (5120, 13824), (14336, 4096), (2048, 5632))  # k x n
_PRECISIONS = ("bf16", "fp8", "fp16", "int8", "tf32", "fp32", "fp64")
_SKINNY = ("bf16", "fp8", "int8")
_SLOW = ("fp32", "fp64")  # the largest squares take seconds in these and tell nothing new
_TALL = ((2048, 4096, 14336), (8192, 4096, 4096), (2048, 5120, 13824), (4096, 4096, 128256))  # m, k, n: prefill, and a head
_SQUARES_ON_CPU = (1024, 512, 256, 128)
_LAYERS_ON_CPU = ((1024, 4096), (1024, 1024))


def cases(device: Device) -> list[Case]:
    squares = _SQUARES if device.gpu else _SQUARES_ON_CPU
    layers = _LAYERS if device.gpu else _LAYERS_ON_CPU
    precisions: Sequence[str] = _PRECISIONS if device.gpu else ("fp32", "bf16", "int8", "fp64")
    skinny: Sequence[str] = _SKINNY if device.gpu else ("fp32", "bf16")
    rows = _ROWS if device.gpu else (1, 8, 64)
    cases = [
        product(device, n, n, n, precision, core=n in squares[:4] and precision in ("bf16", "fp32", "fp8"))
        for precision in precisions
        for n in squares
        if precision not in _SLOW or n <= 8192
    ]
    # int8 products take 17 rows or more (a rule of torch._int_mm).
    cases += [
        product(device, m, k, n, precision, core=precision == skinny[0] and (k, n) == layers[0] and m in (1, 16, 128))
        for k, n in layers
        for m in rows
        for precision in skinny
        if precision != "int8" or m > 16
    ]
    if device.gpu:
        cases += [product(device, m, k, n, precision, core=False) for precision in ("bf16", "fp8") for m, k, n in _TALL]
    return cases


def product(device: Device, m: int, k: int, n: int, precision: str, core: bool) -> Case:
    wide = width(precision)
    out = {"fp8": 2, "int8": 4}.get(precision, wide)  # fp8 gives bf16, int8 sums in int32
    moved = float(wide * (m * k + k * n) + out * m * n)
    prepare = partial(_prepare, device, m, k, n, precision)
    return Case(
        kind="gemm",
        shape=sizes(m=m, k=k, n=n),
        precision=precision,
        flop=2.0 * m * k * n,
        bytes=moved,
        prepare=prepare,
        core=core,
    )


def _prepare(device: Device, m: int, k: int, n: int, precision: str) -> list[Call]:
    torch = device.torch
    if precision in ("fp32", "tf32"):
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    x = device.random(precision, m, k)
    scale = torch.ones((), device=device.place)

    def make() -> Call:
        weights = device.random(precision, n, k).t()
        if precision == "int8":
            return partial(torch._int_mm, x, weights)
        if precision == "fp8":
            return partial(
                torch._scaled_mm, x, weights, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True
            )
        return partial(torch.mm, x, weights)

    return device.cold(width(precision) * k * n, make)
