"""Moving bytes: copies within the device's memory, to and from the host, and rows looked up in a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chipwise.adapters.profiling.case import Call, Case, sizes
from chipwise.adapters.profiling.device import Device

_KIB, _MIB, _GIB = 2**10, 2**20, 2**30
_COPIES = (_GIB, 64 * _MIB, 256 * _MIB, 4 * _GIB, 16 * _MIB, 4 * _MIB, _MIB, 256 * _KIB, 64 * _KIB)
_COPIES_ON_CPU = (64 * _MIB, _MIB, 16 * _MIB, 64 * _KIB)
_TO_HOST = (256 * _MIB, 16 * _MIB, _MIB, 64 * _KIB)
_TOKENS = (2048, 1, 128, 16384)


def cases(device: Device) -> list[Case]:
    cases = [_copy(device, size) for size in (_COPIES if device.gpu else _COPIES_ON_CPU) if 4 * size < device.memory_bytes]
    if device.gpu:
        cases += [_host(device, size, pinned, to) for size in _TO_HOST for pinned in (True, False) for to in (True, False)]
    return cases + [_embedding(device, tokens) for tokens in _TOKENS]


def _copy(device: Device, size: int) -> Case:
    def make() -> Call:
        source, target = (_random_bytes(device, size) for _ in range(2))
        return partial(target.copy_, source)

    core = size in (_GIB, 64 * _MIB, _MIB)
    prepare = partial(device.cold, 2 * size, make)
    # A large copy within a CUDA graph goes another way through an H200 (2.8 TB/s of 4.3), which no other kernel does.
    small = size < 64 * _MIB
    # `any`: a copy does not care what the bytes mean.
    return Case(
        kind="copy",
        shape=sizes(bytes=size),
        precision="any",
        flop=0.0,
        bytes=2.0 * size,
        prepare=prepare,
        core=core,
        graph=small,
    )


def _host(device: Device, size: int, pinned: bool, to_device: bool) -> Case:
    def prepare() -> list[Call]:
        host = device.torch.randint(0, 256, (size,), dtype=device.torch.uint8)
        host = host.pin_memory() if pinned else host
        remote = _random_bytes(device, size)
        target, source = (remote, host) if to_device else (host, remote)
        return [partial(target.copy_, source, non_blocking=pinned)]

    kind = "copy-to-device" if to_device else "copy-from-device"
    shape = sizes(bytes=size, pinned=int(pinned))
    return Case(
        kind=kind,
        shape=shape,
        precision="any",
        flop=0.0,
        bytes=float(size),
        prepare=prepare,
        core=size in (_TO_HOST[0], _TO_HOST[2]),
        graph=False,
    )


def _random_bytes(device: Device, size: int) -> Any:
    return device.torch.randint(0, 256, (size,), device=device.place, dtype=device.torch.uint8)


def _embedding(device: Device, tokens: int) -> Case:
    rows, columns = (128256, 4096) if device.gpu else (32000, 1024)

    def prepare() -> list[Call]:
        table = device.random("bf16", rows, columns)
        look_up: Callable[..., object] = device.torch.nn.functional.embedding

        def make() -> Call:
            return partial(look_up, device.torch.randint(0, rows, (tokens,), device=device.place), table)

        return [make() for _ in range(8)]

    moved = 2.0 * tokens * columns * 2
    shape = sizes(tokens=tokens, rows=rows, columns=columns)
    return Case(kind="embedding", shape=shape, precision="bf16", flop=0.0, bytes=moved, prepare=prepare, core=tokens == 2048)
