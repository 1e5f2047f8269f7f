"""A whole decoder layer in Llama-8B's shape, forward and with its gradients; as torch runs it and compiled.

What is between a product's rate and a model's: norms, rotary positions, activations, launches. FLOP are 2 x weights x tokens
plus causal attention, three times that with gradients. Bytes are the weights and the layer's input and output: the least
traffic there can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from chipwise.adapters.profiling.case import Call, Case, sizes
from chipwise.adapters.profiling.device import Device, width


@dataclass(frozen=True, slots=True)
class BenchLayer:
    hidden: int
    ffn: int
    heads: int
    kv_heads: int

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    @property
    def keys(self) -> int:
        return self.kv_heads * self.head

    @property
    def weights(self) -> int:
        return 2 * self.hidden * (self.hidden + self.keys) + 3 * self.hidden * self.ffn


_LLAMA_8B = BenchLayer(4096, 14336, 32, 8)
_ON_CPU = BenchLayer(512, 1792, 8, 2)  # a sixty-fourth of the work; its shape says so
_TOKENS = ((1, 2048), (4, 2048), (1, 128))  # batch x length


def cases(device: Device) -> list[Case]:
    layer, tokens = (_LLAMA_8B, _TOKENS) if device.gpu else (_ON_CPU, ((1, 128),))
    cases = [
        _case(device, layer, *pair, gradients=gradients, compiled=False, core=pair == tokens[0])
        for pair in tokens
        for gradients in (False, True)
    ]
    # Compiled once each: it takes ten seconds or more.
    return cases + [
        _case(device, layer, *tokens[0], gradients=gradients, compiled=True, core=False) for gradients in (False, True)
    ]


def _case(device: Device, layer: BenchLayer, batch: int, length: int, *, gradients: bool, compiled: bool, core: bool) -> Case:
    precision = "bf16" if device.gpu else "fp32"
    tokens = batch * length
    flop = 2.0 * layer.weights * tokens + 4.0 * batch * layer.hidden * length * (length + 1) / 2
    moved = float(width(precision) * (layer.weights + 2 * tokens * layer.hidden))

    def prepare() -> Sequence[Call]:
        work = _forward(device, layer)
        if compiled:
            device.torch._dynamo.reset()
            work = device.torch.compile(work, dynamic=False)
        weights = {name: tensor.requires_grad_(gradients) for name, tensor in _weights(device, layer, precision).items()}
        x = device.random(precision, batch, length, layer.hidden).requires_grad_(gradients)
        turns = _turns(device, layer, length, precision)
        if not gradients:
            return [partial(work, x, weights, *turns)]
        wanted, above = [x, *weights.values()], device.random(precision, batch, length, layer.hidden)
        return [lambda: device.torch.autograd.grad(work(x, weights, *turns), wanted, above)]

    kind = "layer-forward-backward" if gradients else "layer-forward"
    shape = sizes(batch=batch, length=length, hidden=layer.hidden, ffn=layer.ffn, compiled=int(compiled))
    times = 3.0 if gradients else 1.0
    return Case(
        kind=kind,
        shape=shape,
        precision=precision,
        flop=times * flop,
        bytes=times * moved,
        prepare=prepare,
        core=core,
        graph=False,
    )


def _weights(device: Device, layer: BenchLayer, precision: str) -> dict[str, Any]:
    shapes = {
        "qkv": (layer.hidden + 2 * layer.keys, layer.hidden),
        "out": (layer.hidden, layer.hidden),
        "gate": (layer.ffn, layer.hidden),
        "up": (layer.ffn, layer.hidden),
        "down": (layer.hidden, layer.ffn),
        "before_attention": (layer.hidden,),
        "before_ffn": (layer.hidden,),
    }
    return {name: device.random(precision, *shape).mul_(0.02) for name, shape in shapes.items()}


def _turns(device: Device, layer: BenchLayer, length: int, precision: str) -> tuple[Any, Any]:
    """Cosines and sines of the rotary positions."""
    torch, half = device.torch, layer.head // 2
    rates = 500000.0 ** -(torch.arange(half, device=device.place) / half)
    angles = torch.arange(length, device=device.place)[:, None] * rates[None, :]
    return angles.cos().to(device.dtype(precision)), angles.sin().to(device.dtype(precision))


def _forward(device: Device, layer: BenchLayer) -> Callable[..., Any]:
    torch = device.torch
    functional = torch.nn.functional

    def turned(x: Any, cos: Any, sin: Any) -> Any:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    def forward(x: Any, w: dict[str, Any], cos: Any, sin: Any) -> Any:
        batch, length, hidden = x.shape
        normed = functional.rms_norm(x, (hidden,), w["before_attention"], 1e-5)
        parts = functional.linear(normed, w["qkv"]).split((hidden, layer.keys, layer.keys), dim=-1)
        q, k, v = (part.view(batch, length, -1, layer.head).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(
            turned(q, cos, sin), turned(k, cos, sin), v, is_causal=True, enable_gqa=True
        )
        x = x + functional.linear(y.transpose(1, 2).reshape(batch, length, hidden), w["out"])
        normed = functional.rms_norm(x, (hidden,), w["before_ffn"], 1e-5)
        inner = functional.silu(functional.linear(normed, w["gate"])) * functional.linear(normed, w["up"])
        return x + functional.linear(inner, w["down"])

    return forward
