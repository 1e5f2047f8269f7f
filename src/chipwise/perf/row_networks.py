"""The network that a measurement row names, at the size that it was run at: from the registry, the tables of networks, or the
row's own columns (`layers` and `hidden` of a transformer; `gflops` and `params_m` of anything else).

A name that nobody knows, in a row that does not describe it, is refused: a network of a usual size would be answered alike
whatever it is.
"""

from __future__ import annotations

import math
import re
from functools import cache

from chipwise.errors import UnknownName
from chipwise.perf.listed_networks import listed, listed_net
from chipwise.perf.net import Net, Size
from chipwise.perf.networks import net_of, of_layer
from chipwise.perf.rows import Row, layer_from_row
from chipwise.workload.model import registry
from chipwise.workload.model.counted import CountedShape, Layers, usual_activations
from chipwise.workload.model.shape import (
    ConvShape,
    DecoderShape,
    DiffusionShape,
    EncoderDecoderShape,
    JointTransformerShape,
    UNetShape,
    VaeShape,
    VisionShape,
)

_SIZED = re.compile(r"-(224|384)$")  # a picture's size at the end of a name, which the registry's names do not have
_ENCODER = re.compile(r"-encoder$")
_LARGE_MODEL = 1.0  # billions of parameters from which a shape is told by size and width alone
_USUAL_PRODUCTS = 60
_SILENT = 1e-9  # tokens written where only the encoder runs


def net_of_row(row: Row, tokens: float, picture: Size, padded: float = 0.0) -> tuple[str, Net]:
    """A network and its name; UnknownName where neither says what it is."""
    name = row.text("model")
    if listed(name):
        return name, listed_net(name, Size(tokens) if re.search("bert|electra", name, re.IGNORECASE) else picture)
    model = _known(name)
    if model is None:
        return name, _described(row, tokens, picture, padded)
    match model.shape:
        case DecoderShape():
            return model.name, of_layer(layer_from_row(row)[0], tokens, padded)
        case (
            ConvShape() | VisionShape() | DiffusionShape() | CountedShape() | UNetShape() | VaeShape() | JointTransformerShape()
        ):
            return model.name, net_of(model.shape, picture)
        case EncoderDecoderShape():
            written = row.number("output_len", 0.0) or (_SILENT if _ENCODER.search(name) else 0.0)
            return model.name, net_of(model.shape, Size(tokens, generated=written))
        case _:
            return model.name, net_of(model.shape, Size(tokens))


def _known(name: str) -> registry.Model | None:
    candidates = (name, _SIZED.sub("", name), _ENCODER.sub("", name))
    return next((model for candidate in candidates if (model := registry.known(candidate)) is not None), None)


def _described(row: Row, tokens: float, picture: Size, padded: float) -> Net:
    if row.number("gflops", 0.0) > 0:
        return net_of(_counted(row), picture)
    if row.number("layers", 0.0) > 0 or row.number("hidden", 0.0) > 0 or row.number("params_b", 0.0) >= _LARGE_MODEL:
        return of_layer(layer_from_row(row)[0], tokens, padded)
    raise _unknown(row.text("model"))


@cache
def _unknown(name: str) -> UnknownName:
    """Names are compared with thousands: once for all rows that have one."""
    try:
        registry.find(name)
    except UnknownName as error:
        return error
    raise AssertionError(name)


def _counted(row: Row) -> CountedShape:
    macs = 1e9 * row.number("gflops", 0.0) / (2.0 if "2" in row.text("flops_convention") else 1.0)
    side = side_of(row)
    layers = Layers(row.text("layer_family")) if row.text("layer_family") in tuple(Layers) else Layers.CNN
    parameters = 1e6 * row.number("params_m", 0.0) or 1e9 * row.number("params_b", 0.0) or macs / 200.0
    usual = usual_activations(layers, round(parameters), round(macs), int(side))
    return CountedShape(
        parameters=round(parameters),
        macs=round(macs),
        activations=round(1e6 * row.number("activations_m", 0.0)) or usual,
        layers=layers,
        products=_USUAL_PRODUCTS,
        image_size=int(side),
    )


def side_of(row: Row) -> float:
    """Of a picture: what the column, the notes or the name say; of an oblong one, the square of its area. 0: nobody says."""
    stated = re.match(r"(\d+)(?:\s*x\s*(\d+))?", row.text("image_size"))
    if stated:
        return math.sqrt(float(stated[1]) * float(stated[2] or stated[1]))
    match = re.search(r"\b(\d{3,4})x\1\b", row.text("notes")) or _SIZED.search(row.text("model"))
    return float(match[1]) if match else 0.0
