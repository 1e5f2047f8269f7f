"""Attention through torch's fused scaled_dot_product_attention: whole prompts, and one new token over a context.

FLOP are those of the two products (q by k, weights by v), 4 x heads x head size x pairs of tokens; a causal prompt has half
the pairs. Bytes are q, k, v and the output once each.

Heads that share keys are given as they are (enable_gqa) and torch chooses the kernel: on an H200 that was faster than repeated
keys, than such heads as rows of one query, and than the flash kernel (torch 2.11, batch 1 to 128, context 512 to 16,384).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from chipwise.adapters.profiling.case import Call, Case, sizes
from chipwise.adapters.profiling.device import Device, width

# batch, heads, key-value heads, head size, length
_PREFILL = (
    (1, 32, 8, 128, 2048),
    (1, 32, 8, 128, 8192),
    (8, 32, 8, 128, 2048),
    (1, 32, 8, 128, 512),
    (1, 32, 8, 128, 32768),
    (1, 32, 32, 128, 2048),
    (4, 16, 16, 64, 2048),
    (1, 64, 8, 128, 4096),
    (16, 32, 8, 128, 512),
    (1, 32, 32, 80, 2048),
    (4, 12, 12, 64, 1024),
    (1, 16, 16, 256, 2048),
    (4, 32, 4, 64, 2048),
    (1, 32, 8, 128, 128),
)
_DECODE = (
    (1, 32, 8, 128, 2048),
    (32, 32, 8, 128, 1024),
    (64, 32, 8, 128, 4096),
    (1, 32, 8, 128, 16384),
    (128, 32, 8, 128, 1024),
    (8, 32, 8, 128, 1024),
    (1, 32, 8, 128, 131072),
    (32, 32, 32, 128, 1024),
    (8, 64, 8, 128, 8192),
    (256, 32, 8, 128, 512),
    (1, 32, 32, 128, 2048),
    (32, 32, 4, 64, 1024),
    (1, 32, 8, 128, 128),
    (16, 40, 40, 128, 2048),
)
_ON_CPU = ((1, 8, 2, 64, 256), (1, 8, 8, 64, 128), (4, 8, 2, 64, 128))


def cases(device: Device) -> list[Case]:
    prompts, contexts = (_PREFILL, _DECODE) if device.gpu else (_ON_CPU, _ON_CPU)
    return [_prefill(device, *prompt, core=prompt in prompts[:2]) for prompt in prompts] + [
        _decode(device, *context, core=context in contexts[:3]) for context in contexts
    ]


def _prefill(device: Device, batch: int, heads: int, kv_heads: int, head: int, length: int, core: bool) -> Case:
    precision = _precision(device)
    flop = 4.0 * batch * heads * head * length * (length + 1) / 2
    moved = 2.0 * width(precision) * batch * length * head * (heads + kv_heads)
    shape = sizes(batch=batch, heads=heads, kv_heads=kv_heads, head=head, length=length)
    make = partial(_attention, device, (batch, heads, length, head), (batch, kv_heads, length, head))
    return Case(
        kind="attention-prefill", shape=shape, precision=precision, flop=flop, bytes=moved, prepare=lambda: [make()], core=core
    )


def _decode(device: Device, batch: int, heads: int, kv_heads: int, head: int, context: int, core: bool) -> Case:
    precision = _precision(device)
    flop = 4.0 * batch * heads * head * context
    moved = 2.0 * width(precision) * batch * head * (kv_heads * context + heads)
    shape = sizes(batch=batch, heads=heads, kv_heads=kv_heads, head=head, context=context)
    make = partial(_attention, device, (batch, heads, 1, head), (batch, kv_heads, context, head))
    return Case(
        kind="attention-decode",
        shape=shape,
        precision=precision,
        flop=flop,
        bytes=moved,
        prepare=partial(device.cold, moved, make),
        core=core,
    )


def _attention(device: Device, queries: Sequence[int], keys: Sequence[int]) -> Call:
    precision = _precision(device)
    q = device.random(precision, *queries)
    k, v = (device.random(precision, *keys) for _ in range(2))
    settings = {"is_causal": queries[2] > 1} | ({"enable_gqa": True} if queries[1] != keys[1] else {})
    return partial(device.torch.nn.functional.scaled_dot_product_attention, q, k, v, **settings)


def _precision(device: Device) -> str:
    return "bf16" if device.gpu else "fp32"
