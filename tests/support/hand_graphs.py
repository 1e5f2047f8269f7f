"""ONNX graphs made by hand, layer by layer, whose counts can be computed by hand too. Weights have shapes and no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

Dim = int | str | None


class Hand:
    """A graph in the making; `prefix` goes before every name, for names must not matter."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.inputs: list[ValueInfoProto] = []
        self.parameters = 0

    def _name(self) -> str:
        return f"{self.prefix}{len(self.nodes)}_{len(self.weights)}"

    def input(self, *dims: Dim, kind: int = TensorProto.FLOAT) -> str:
        name = f"{self.prefix}input{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def weight(self, *dims: int, kind: int = TensorProto.FLOAT, trained: bool = True) -> str:
        tensor = TensorProto(name=f"{self.prefix}w{len(self.weights)}", data_type=kind, dims=dims)
        self.weights.append(tensor)
        self.parameters += math.prod(dims) if trained else 0
        return tensor.name

    def shape(self, *values: int) -> str:
        name = f"{self.prefix}w{len(self.weights)}"
        self.weights.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self.prefix}v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def conv(self, x: str, ins: int, outs: int, kernel: int, stride: int = 1, groups: int = 1) -> str:
        """With the norm after it."""
        pad = kernel // 2
        made = self.node(
            "Conv",
            x,
            self.weight(outs, ins // groups, kernel, kernel),
            group=groups,
            strides=[stride, stride],
            pads=[pad] * 4,
            kernel_shape=[kernel, kernel],
        )
        scale, bias = self.weight(outs), self.weight(outs)
        mean, variance = self.weight(outs, trained=False), self.weight(outs, trained=False)
        return self.node("BatchNormalization", made, scale, bias, mean, variance)

    def dense(self, x: str, ins: int, outs: int, bias: bool = True) -> str:
        made = self.node("MatMul", x, self.weight(ins, outs))
        return self.node("Add", made, self.weight(outs)) if bias else made

    def norm(self, x: str, width: int) -> str:
        return self.node("LayerNormalization", x, self.weight(width), self.weight(width), axis=-1)

    def model(self, *results: str, version: int = 17) -> ModelProto:
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
        graph = helper.make_graph(self.nodes, "graph", self.inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=9)

    def save(self, path: Path, *results: str) -> Path:
        path.write_bytes(self.model(*results).SerializeToString())
        return path


def mlp(widths: Sequence[int], batch: Dim = "batch", prefix: str = "") -> tuple[Hand, str]:
    hand = Hand(prefix)
    x = hand.input(batch, widths[0])
    for ins, outs in pairwise(widths):
        x = hand.node("Relu", hand.dense(x, ins, outs))
    return hand, x


def encoder_layer(hand: Hand, x: str, tokens: int, width: int, heads: int, ffn: int, batch: int = 1) -> str:
    """Queries, keys and values apart, scores, softmax, sum, projection, two dense layers."""

    def split(name: str, keys: bool = False) -> str:
        apart = hand.node("Reshape", name, hand.shape(batch, tokens, heads, width // heads))
        return hand.node("Transpose", apart, perm=[0, 2, 3, 1] if keys else [0, 2, 1, 3])

    normed = hand.norm(x, width)
    q, k, v = (hand.dense(normed, width, width) for _ in range(3))
    scores = hand.node("Softmax", hand.node("MatMul", split(q), split(k, True)), axis=-1)
    joined = hand.node("Transpose", hand.node("MatMul", scores, split(v)), perm=[0, 2, 1, 3])
    x = hand.node("Add", x, hand.dense(hand.node("Reshape", joined, hand.shape(batch, tokens, width)), width, width))
    wide = hand.node("Erf", hand.dense(hand.norm(x, width), width, ffn))
    return hand.node("Add", x, hand.dense(wide, ffn, width))


def resnet50(batch: Dim = "batch", side: Dim = None, prefix: str = "") -> tuple[Hand, str]:
    """He et al. 2015 (arXiv:1512.03385) with the stride in the 3x3 convolutions, as torchvision and timm have it."""
    hand = Hand(prefix)
    x = hand.node("Relu", hand.conv(hand.input(batch, 3, side, side), 3, 64, 7, 2))
    x = hand.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    ins = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = hand.node("Relu", hand.conv(x, ins, width, 1))
            y = hand.node("Relu", hand.conv(y, width, width, 3, stride))
            y = hand.conv(y, width, 4 * width, 1)
            x = hand.node("Relu", hand.node("Add", y, hand.conv(x, ins, 4 * width, 1, stride) if not block else x))
            ins = 4 * width
    flat = hand.node("Flatten", hand.node("GlobalAveragePool", x), axis=1)
    return hand, hand.node("Gemm", flat, hand.weight(1000, ins), hand.weight(1000), transB=1)


def depthwise_block(batch: Dim = "batch", side: int = 56, width: int = 32, prefix: str = "") -> tuple[Hand, str]:
    """Sandler et al. 2018 (arXiv:1801.04381): six times wider, depthwise, and back."""
    hand = Hand(prefix)
    x = hand.input(batch, width, side, side)
    y = hand.node("Clip", hand.conv(x, width, 6 * width, 1))
    y = hand.node("Clip", hand.conv(y, 6 * width, 6 * width, 3, groups=6 * width))
    return hand, hand.node("Add", x, hand.conv(y, 6 * width, width, 1))
