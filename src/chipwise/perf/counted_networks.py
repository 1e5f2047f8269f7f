"""Counted networks as the products of one mean layer (`workload/model/counted`): depth M / A, rows M / P, all outputs A.

With M multiply-accumulates, A values that L layers give and P parameters, a layer of m rows, n columns and depth k has
m n k = M / L, m n = A / L and n k = P / L. Its inputs are taken to be as many as its outputs, as between layers of one width.
"""

from __future__ import annotations

from functools import cache

from chipwise.perf.net import (
    CONV_NARROW,
    CONV_PASSES,
    CONVOLUTION,
    DEPTHWISE,
    DIFFUSION,
    GROUPED,
    HYBRID,
    MIXING,
    NORM_PASSES,
    STEPS,
    TRANSFORMER,
    WINDOWED,
    Net,
    Product,
    Size,
    repeated,
)
from chipwise.perf.operators import NARROW
from chipwise.workload.model.counted import CountedShape, Layers

KINDS = {
    Layers.CNN: CONVOLUTION,
    Layers.GROUPED: GROUPED,
    Layers.DEPTHWISE: DEPTHWISE,
    Layers.VIT: TRANSFORMER,
    Layers.SWIN: WINDOWED,
    Layers.HYBRID: HYBRID,
    Layers.MLP: MIXING,
    Layers.DIT: DIFFUSION,
}
_WINDOW = 49.0  # places that attend to each other in windows
_HEAD, _WINDOWED_HEAD = 64.0, 32.0
_OUTPUTS = 9.0  # values of a transformer's products per token and width
_RATE = 100.0  # features of a second of sound
_MELS = 80.0


@cache
def counted_net(shape: CountedShape, size: Size) -> Net:
    grown = shape.grown(size.length)
    macs, activations = shape.product_macs(size.length), shape.activations * grown
    count = float(shape.products)
    plain = shape.layers in (Layers.VIT, Layers.MLP, Layers.DIT, Layers.SWIN)
    if shape.layers.attends:  # what remains of the activations beside the scores
        activations = _OUTPUTS * shape.width_layers * shape.tokens * grown
    rows = max(macs / shape.multiplied, 1.0)
    columns = max(activations / (count * rows), 1.0)
    depth = macs / (count * rows * columns)
    product = Product(
        rows=rows,
        columns=columns,
        depth=depth,
        window=max(depth / columns, 1e-3),
        times=count,
        narrow=NARROW if plain else CONV_NARROW,
    )
    passes = (NORM_PASSES + 8.0) / _OUTPUTS if plain else CONV_PASSES
    side = size.length or shape.size
    net = Net(
        kind=KINDS[shape.layers],
        products=(product,),
        parameters=float(shape.multiplied),
        touched=passes * activations,
        inputs=_inputs(shape, side),
        depth=count * (1.25 if plain else 1.0),
        **_scores(shape, grown),
    )
    return repeated(net, size.steps or STEPS, size.guidance or 2.0) if shape.layers is Layers.DIT else net


def _inputs(shape: CountedShape, side: float) -> float:
    if shape.reads_text:
        return side
    return _RATE * _MELS * side if shape.seconds else 3.0 * side * side


def _scores(shape: CountedShape, grown: float) -> dict[str, float]:
    if shape.layers.attends:
        tokens, wide = shape.tokens * grown, shape.width_layers
        return {
            "score_flop": 2.0 * shape.score_macs * grown**2,
            "score_values": 4.0 * wide * tokens,
            "score_map": wide / _HEAD * tokens**2,
        }
    if shape.layers is Layers.SWIN:
        wide_tokens = shape.activations * grown / _OUTPUTS
        return {
            "score_flop": 4.0 * _WINDOW * wide_tokens,
            "score_values": 4.0 * wide_tokens,
            "score_map": wide_tokens / _WINDOWED_HEAD * _WINDOW,
        }
    return {}
