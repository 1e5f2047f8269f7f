"""Work that is one pass over memory: add, RMSNorm, SwiGLU's activation, softmax; as torch runs it and compiled.

FLOP are counted per element as is usual (add 1, RMSNorm 4, SwiGLU 5, softmax 5): they place the dot on a roofline and mean
nothing for speed, which is bytes. Bytes are inputs and output once each, what a fused kernel moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from chipwise.adapters.profiling.case import Call, Case, sizes
from chipwise.adapters.profiling.device import Device, width

_FLOP = {"add": 1.0, "rms-norm": 4.0, "swiglu": 5.0, "softmax": 5.0}
_SHAPES = {  # kind: rows x columns, tokens by the width at which models do it
    "rms-norm": ((2048, 4096), (16, 4096), (16384, 4096), (2048, 8192)),
    "swiglu": ((2048, 14336), (16, 14336), (8192, 14336)),
    "add": ((2048, 4096), (16, 4096), (16384, 4096), (16384, 16384)),
    "softmax": ((1024, 128256), (16, 128256), (16384, 2048)),
}
_COMPILED = 2  # shapes of each kind that are compiled: each costs seconds


def cases(device: Device) -> list[Case]:
    cases: list[Case] = []
    for compiled in (False, True):
        for kind, shapes in _SHAPES.items():
            chosen: Sequence[tuple[int, int]] = shapes if device.gpu else ((128, 1024), (1024, 1024))
            if compiled:
                chosen = chosen[: _COMPILED if device.gpu else 1]
            cases += [_case(device, kind, rows, columns, compiled, core=i == 0) for i, (rows, columns) in enumerate(chosen)]
    return cases


def _case(device: Device, kind: str, rows: int, columns: int, compiled: bool, core: bool) -> Case:
    precision = "bf16" if device.gpu else "fp32"
    tensors = {"add": 3, "rms-norm": 2, "swiglu": 3, "softmax": 2}[kind]
    moved = float(tensors * rows * columns * width(precision))

    def prepare() -> Sequence[Call]:
        work = _function(device.torch, kind)
        if compiled:
            device.torch._dynamo.reset()  # else each call would test the guards of the cases before
            work = device.torch.compile(work, dynamic=False)
        weight = device.random(precision, columns)

        def make() -> Call:
            x, y = (device.random(precision, rows, columns) for _ in range(2))
            return partial(work, x, weight if kind == "rms-norm" else y)

        return device.cold(moved, make)

    shape = sizes(rows=rows, columns=columns, compiled=int(compiled))
    return Case(
        kind=kind,
        shape=shape,
        precision=precision,
        flop=_FLOP[kind] * rows * columns,
        bytes=moved,
        prepare=prepare,
        core=core and not compiled,
    )


def _function(torch: Any, kind: str) -> Callable[..., Any]:
    functional = torch.nn.functional

    def add(x: Any, y: Any) -> Any:
        return x + y

    def rms_norm(x: Any, weight: Any) -> Any:
        return functional.rms_norm(x, (x.shape[-1],), weight, 1e-5)

    def swiglu(gate: Any, up: Any) -> Any:
        return functional.silu(gate) * up

    def softmax(x: Any, _: Any) -> Any:
        return functional.softmax(x, dim=-1)

    return {"add": add, "rms-norm": rms_norm, "swiglu": swiglu, "softmax": softmax}[kind]
