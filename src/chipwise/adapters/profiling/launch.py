"""What a kernel costs that does nothing: launched one by one from Python, and within a CUDA graph.

A model of many small kernels cannot run faster than their number times this. FLOP and bytes are given as zero: the adding of
one number is not what is measured.
"""

from __future__ import annotations

from functools import partial

from chipwise.adapters.profiling.case import Call, Case, sizes
from chipwise.adapters.profiling.device import Device

_KERNELS = 100


def cases(device: Device) -> list[Case]:
    found = [_case(device, "launch", graph=False)]
    return [*found, _case(device, "launch-graph", graph=True)] if device.gpu else found


def _case(device: Device, kind: str, graph: bool) -> Case:
    def prepare() -> list[Call]:
        # One tensor, so that each kernel waits for the one before, as the layers of a model do.
        number = device.random("fp32", 1)
        return [partial(number.mul_, 0.999)] * _KERNELS

    return Case(
        kind=kind, shape=sizes(kernels=_KERNELS), precision="fp32", flop=0.0, bytes=0.0, prepare=prepare, core=True, graph=graph
    )
