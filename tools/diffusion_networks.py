"""Denoisers and the picture decoder of Stable Diffusion 1.5 and XL, DiT-XL/2 and FLUX by their shapes, for measuring.

Plain functions over dictionaries of random weights, like the Llama of `measure_models.py`, so that one compilation of a block
serves every block of its shape. `wrap` is torch.compile, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Weights = dict[str, Any]
Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
GROUPS = 32
SHRINK = 8  # pixels per latent value, each way


@dataclass(frozen=True, slots=True)
class UNet:
    widths: tuple[int, ...]
    depths: tuple[int, ...]  # transformer blocks after each residual block of a level
    middle: int
    text_width: int
    heads: int  # 0: heads of 64

    def head_count(self, width: int) -> int:
        return self.heads or width // 64


@dataclass(frozen=True, slots=True)
class Transformer:
    joint: int  # blocks with weights of their own for text and picture
    single: int
    hidden: int
    heads: int
    text: int  # tokens


UNETS = {
    "stable-diffusion-1.5": UNet((320, 640, 1280, 1280), (1, 1, 1, 0), 1, 768, 8),
    "stable-diffusion-xl": UNet((320, 640, 1280), (0, 2, 10), 10, 2048, 0),
}
TRANSFORMERS = {
    "flux.1-dev-transformer": Transformer(19, 38, 3072, 24, 512),
    "dit-xl-2": Transformer(0, 28, 1152, 16, 0),
}
VAE_WIDTHS = (128, 256, 512, 512)


class Parts:
    """Makes weights and the functions that use them."""

    def __init__(self, torch: Any, device: str, dtype: Any, wrap: Wrap, last: bool) -> None:
        self.torch, self.device, self.dtype = torch, device, dtype
        self.format = torch.channels_last if last else torch.contiguous_format
        self.residual, self.attending = wrap(self._residual), wrap(self._attending)
        self.joint_block = wrap(self._joint)

    def normal(self, *size: int) -> Any:
        return self.torch.randn(*size, device=self.device, dtype=self.dtype).mul_(0.02)

    def conv(self, inputs: int, outputs: int, kernel: int = 3) -> tuple[Any, Any]:
        weight = self.normal(outputs, inputs, kernel, kernel)
        return weight.contiguous(memory_format=self.format), self.normal(outputs)

    def linear(self, inputs: int, outputs: int) -> tuple[Any, Any]:
        return self.normal(outputs, inputs), self.normal(outputs)

    def scale(self, width: int) -> tuple[Any, Any]:
        return self.normal(width) + 1, self.normal(width)

    def residual_weights(self, inputs: int, outputs: int, time: int) -> Weights:
        weights: Weights = {"norm1": self.scale(inputs), "conv1": self.conv(inputs, outputs), "norm2": self.scale(outputs)}
        weights |= {"conv2": self.conv(outputs, outputs), "time": self.linear(time, outputs) if time else None}
        return weights | {"skip": self.conv(inputs, outputs, 1) if inputs != outputs else None}

    def _residual(self, x: Any, t: Any, w: Weights) -> Any:
        f = self.torch.nn.functional
        y = f.conv2d(f.silu(f.group_norm(x, GROUPS, *w["norm1"])), *w["conv1"], padding=1)
        if w["time"] is not None:
            y = y + f.linear(f.silu(t), *w["time"])[:, :, None, None]
        y = f.conv2d(f.silu(f.group_norm(y, GROUPS, *w["norm2"])), *w["conv2"], padding=1)
        return y + (f.conv2d(x, *w["skip"]) if w["skip"] is not None else x)

    def attending_weights(self, width: int, text: int) -> Weights:
        sizes = {"qkv": (width, 3 * width), "out": (width, width), "q": (width, width), "kv": (text, 2 * width)}
        sizes |= {"out2": (width, width), "wide": (width, 8 * width), "narrow": (4 * width, width)}
        weights: Weights = {name: self.linear(*size) for name, size in sizes.items()}
        return weights | {f"norm{i}": self.scale(width) for i in range(3)}

    def _attending(self, x: Any, text: Any, w: Weights, heads: int) -> Any:
        f, width = self.torch.nn.functional, x.shape[-1]

        def attend(q: Any, k: Any, v: Any) -> Any:
            q, k, v = (a.unflatten(-1, (heads, width // heads)).transpose(1, 2) for a in (q, k, v))
            return f.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

        y = f.layer_norm(x, (width,), *w["norm0"])
        x = x + f.linear(attend(*f.linear(y, *w["qkv"]).chunk(3, -1)), *w["out"])
        y = f.linear(f.layer_norm(x, (width,), *w["norm1"]), *w["q"])
        x = x + f.linear(attend(y, *f.linear(text, *w["kv"]).chunk(2, -1)), *w["out2"])
        y, gate = f.linear(f.layer_norm(x, (width,), *w["norm2"]), *w["wide"]).chunk(2, -1)
        return x + f.linear(y * f.gelu(gate), *w["narrow"])

    def spatial(self, width: int, depth: int, text: int, heads: int) -> Callable[[Any, Any], Any]:
        f = self.torch.nn.functional
        norm, first, last = self.scale(width), self.linear(width, width), self.linear(width, width)
        blocks = [self.attending_weights(width, text) for _ in range(depth)]

        def run(x: Any, context: Any) -> Any:
            y = f.linear(f.group_norm(x, GROUPS, *norm).flatten(2).transpose(1, 2), *first)
            for weights in blocks:
                y = self.attending(y, context, weights, heads)
            return x + f.linear(y, *last).transpose(1, 2).unflatten(2, x.shape[2:])

        return run

    def unet(self, shape: UNet) -> Callable[[Any, Any, Any], Any]:
        """(latents, time embedding of 4 x the first width, text) -> noise."""
        f, time, first = self.torch.nn.functional, 4 * shape.widths[0], shape.widths[0]
        entry, leave, closing = self.conv(4, first), self.conv(first, 4), self.scale(first)
        steps: list[tuple[str, Any, Any]] = []

        def block(inputs: int, width: int, depth: int, kind: str) -> None:
            attend = self.spatial(width, depth, shape.text_width, shape.head_count(width)) if depth else None
            steps.append((kind, self.residual_weights(inputs, width, time), attend))

        skips, width = [first], first
        for level, (outputs, depth) in enumerate(zip(shape.widths, shape.depths, strict=True)):
            for _ in range(2):
                block(width, outputs, depth, "down")
                width = outputs
                skips.append(width)
            if level + 1 < len(shape.widths):
                steps.append(("half", self.conv(width, width), None))
                skips.append(width)
        block(width, width, shape.middle, "middle")
        block(width, width, 0, "middle")
        for level in reversed(range(len(shape.widths))):
            for _ in range(3):
                block(width + skips.pop(), shape.widths[level], shape.depths[level], "up")
                width = shape.widths[level]
            if level:
                steps.append(("twice", self.conv(width, width), None))

        def run(x: Any, t: Any, text: Any) -> Any:
            x = f.conv2d(x, *entry, padding=1)
            seen = [x]
            for kind, weights, attend in steps:
                if kind == "half":
                    x = f.conv2d(x, *weights, stride=2, padding=1)
                elif kind == "twice":
                    x = f.conv2d(f.interpolate(x, scale_factor=2.0, mode="nearest"), *weights, padding=1)
                else:
                    x = self.residual(self.torch.cat((x, seen.pop()), 1) if kind == "up" else x, t, weights)
                    x = attend(x, text) if attend else x
                if kind in ("down", "half"):
                    seen.append(x)
            return f.conv2d(f.silu(f.group_norm(x, GROUPS, *closing)), *leave, padding=1)

        return run

    def vae(self) -> Callable[[Any], Any]:
        """Latents -> pictures."""
        f, width = self.torch.nn.functional, VAE_WIDTHS[-1]
        entry, closing, leave = self.conv(4, width), self.scale(VAE_WIDTHS[0]), self.conv(VAE_WIDTHS[0], 3)
        middle = [self.residual_weights(width, width, 0) for _ in range(2)]
        norm, qkv, out = self.scale(width), self.linear(width, 3 * width), self.linear(width, width)
        levels: list[tuple[list[Weights], Any]] = []
        for level in reversed(range(len(VAE_WIDTHS))):
            outputs = VAE_WIDTHS[level]
            blocks = [self.residual_weights(width if i == 0 else outputs, outputs, 0) for i in range(3)]
            width = outputs
            levels.append((blocks, self.conv(width, width) if level else None))

        def run(x: Any) -> Any:
            x = self.residual(f.conv2d(x, *entry, padding=1), None, middle[0])
            y = f.group_norm(x, GROUPS, *norm).flatten(2).transpose(1, 2)
            q, k, v = (part[:, None] for part in f.linear(y, *qkv).chunk(3, -1))
            y = f.linear(f.scaled_dot_product_attention(q, k, v)[:, 0], *out)
            x = self.residual(x + y.transpose(1, 2).unflatten(2, x.shape[2:]), None, middle[1])
            for blocks, enlarge in levels:
                for weights in blocks:
                    x = self.residual(x, None, weights)
                if enlarge is not None:
                    x = f.conv2d(f.interpolate(x, scale_factor=2.0, mode="nearest"), *enlarge, padding=1)
            return f.conv2d(f.silu(f.group_norm(x, GROUPS, *closing)), *leave, padding=1)

        return run

    def stream_weights(self, width: int) -> Weights:
        sizes = {"mod": (width, 6 * width), "qkv": (width, 3 * width), "out": (width, width)}
        sizes |= {"wide": (width, 4 * width), "narrow": (4 * width, width)}
        return {name: self.linear(*size) for name, size in sizes.items()}

    def _joint(self, streams: list[Any], c: Any, ws: list[Weights], heads: int) -> list[Any]:
        """Attention over all streams together; norms shifted and scaled by the condition, as in DiT."""
        f, torch, width = self.torch.nn.functional, self.torch, streams[0].shape[-1]
        mods = [f.linear(f.silu(c), *w["mod"])[:, None].chunk(6, -1) for w in ws]
        triples = []
        for x, m, w in zip(streams, mods, ws, strict=True):
            y = f.linear(f.layer_norm(x, (width,)) * (1 + m[1]) + m[0], *w["qkv"])
            triples.append([a.unflatten(-1, (heads, width // heads)).transpose(1, 2) for a in y.chunk(3, -1)])
        q, k, v = (torch.cat(parts, 2) for parts in zip(*triples, strict=True))
        mixed = f.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        results = []
        for x, m, w, y in zip(streams, mods, ws, mixed.split([x.shape[1] for x in streams], 1), strict=True):
            x = x + m[2] * f.linear(y, *w["out"])
            y = f.linear(f.layer_norm(x, (width,)) * (1 + m[4]) + m[3], *w["wide"])
            results.append(x + m[5] * f.linear(f.gelu(y, approximate="tanh"), *w["narrow"]))
        return results

    def transformer(self, shape: Transformer) -> Callable[[Any, Any, Any], Any]:
        """(picture tokens, condition, text tokens or None) -> picture tokens. FLUX's single blocks have the weights of
        these, but do attention and feed-forward side by side, with half the modulation."""
        joint = [[self.stream_weights(shape.hidden) for _ in range(2)] for _ in range(shape.joint)]
        single = [[self.stream_weights(shape.hidden)] for _ in range(shape.single)]

        def run(x: Any, c: Any, text: Any) -> Any:
            for weights in joint:
                text, x = self.joint_block([text, x], c, weights, shape.heads)
            x = x if text is None else self.torch.cat((text, x), 1)
            for weights in single:
                (x,) = self.joint_block([x], c, weights, shape.heads)
            return x

        return run
