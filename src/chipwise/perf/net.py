"""What one sample multiplies, moves and keeps in one forward pass: a list of matrix products, and what is beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from chipwise.perf.arrays import Array
from chipwise.perf.operators import NARROW

STEPS = 30  # denoising steps where nobody says
GENERATED = 64  # tokens that an encoder-decoder writes where nobody says
SPOKEN = 0.07  # of 20 ms of sound: 150 words a minute, 1.4 tokens each, are 3.5 tokens a second
CONVOLUTION, TRANSFORMER, DIFFUSION, TABLE = "convolution", "transformer", "diffusion", "table"
GROUPED, DEPTHWISE, WINDOWED, HYBRID, MIXING = "grouped", "depthwise", "windowed", "hybrid", "mixing"
CONV_NARROW = 16.0  # channels or depth at which a convolution reaches half of its rate; plain products need more
CONV_PASSES, NORM_PASSES = 5.0, 14.0  # values read and written around a convolution, around a transformer's layer


@dataclass(frozen=True, slots=True)
class Product:
    """`times` products of rows x depth by depth x columns in `groups` independent parts, rows per sample."""

    rows: float
    columns: float
    depth: float
    groups: float = 1.0
    window: float = 1.0  # uses of an input value within one product: the kernel's area
    times: float = 1.0
    wide: bool = False  # stays in 16 bits where the rest is narrower
    narrow: float = NARROW  # columns or depth at which it reaches half of its rate

    @property
    def flop(self) -> float:
        return 2.0 * self.times * self.rows * self.columns * self.depth * self.groups


@dataclass(frozen=True, slots=True)
class ProductTable:
    """Products as columns, one line each: what is computed of them is computed of all at once."""

    rows: Array
    columns: Array
    depth: Array
    groups: Array
    window: Array
    times: Array
    wide: Array  # 1: it does
    narrow: Array

    @classmethod
    def of(cls, products: Iterable[Product]) -> ProductTable:
        products = tuple(products)
        parts = (np.array([[getattr(one, name.name)] for one in products], np.float64) for name in fields(cls))
        return cls(*(part.reshape(-1, 1) for part in parts))

    def only(self, mask: npt.NDArray[np.bool_]) -> ProductTable:
        return ProductTable(*(getattr(self, name.name)[mask] for name in fields(self)))

    @property
    def results(self) -> Array:
        """Values that each gives."""
        return self.rows * self.columns * self.groups

    @property
    def flop(self) -> Array:
        return 2.0 * self.times * self.results * self.depth

    @property
    def weights(self) -> Array:
        return self.columns * self.depth * self.groups


@dataclass(frozen=True)
class Net:
    """One sample's forward pass."""

    kind: str  # convolution, transformer, diffusion, table: what behaves alike
    products: tuple[Product, ...]
    parameters: float
    score_flop: float = 0.0  # attention beyond its projections, in 16 bits
    score_values: float = 0.0  # queries, keys, values and results that it moves
    score_map: float = 0.0  # values between scores and weighted sum, which an engine without fused attention writes and reads
    touched: float = 0.0  # values that norms, activations and sums read and write where nothing is fused
    lookups: float = 0.0  # values of embedding tables that are read
    inputs: float = 0.0  # values that come from the host
    pooled: float = 0.0  # values that all tables give a sample: what chips exchange where the tables are split over them
    rows_read: float = 0.0  # rows of tables that a sample names
    depth: float = 0.0  # kernels one after the other, where that is not the number of products

    @property
    def flop(self) -> float:
        return sum(one.flop for one in self.products) + self.score_flop

    @cached_property
    def table(self) -> ProductTable:
        return ProductTable.of(self.products)

    @property
    def kernels(self) -> float:
        return self.depth or sum(one.times for one in self.products)


def joined(nets: Iterable[Net]) -> Net:
    """Nets that run one after the other on the same sample."""
    nets = tuple(nets)
    return Net(
        kind=nets[0].kind,
        products=merged(one for net in nets for one in net.products),
        parameters=sum(net.parameters for net in nets),
        score_flop=sum(net.score_flop for net in nets),
        score_values=sum(net.score_values for net in nets),
        score_map=sum(net.score_map for net in nets),
        touched=sum(net.touched for net in nets),
        lookups=sum(net.lookups for net in nets),
        inputs=max(net.inputs for net in nets),
        pooled=sum(net.pooled for net in nets),
        rows_read=sum(net.rows_read for net in nets),
        depth=sum(net.kernels for net in nets),
    )


def merged(products: Iterable[Product]) -> tuple[Product, ...]:
    """Equal products counted together."""
    counts: dict[Product, float] = {}
    for product in products:
        key = replace(product, times=1.0)
        counts[key] = counts.get(key, 0.0) + product.times
    return tuple(replace(one, times=times) for one, times in counts.items())


def repeated(net: Net, times: float, samples: float = 1.0, wide: bool | None = None) -> Net:
    """The same weights used `times` times in a row, on `samples` inputs at once."""
    uses = times * samples
    return Net(
        kind=net.kind,
        products=tuple(
            replace(
                product, rows=product.rows * samples, times=product.times * times, wide=product.wide if wide is None else wide
            )
            for product in net.products
        ),
        parameters=net.parameters,
        score_flop=net.score_flop * uses,
        score_values=net.score_values * uses,
        score_map=net.score_map * uses,
        touched=net.touched * uses,
        lookups=net.lookups * uses,
        inputs=net.inputs,
        pooled=net.pooled * uses,
        rows_read=net.rows_read * uses,
        depth=net.kernels * times,
    )


@dataclass(frozen=True, slots=True)
class Size:
    """How large one sample is; 0 stands for the model's own."""

    length: float = 0.0  # tokens, or the side of a picture
    steps: float = 0.0  # denoising steps
    generated: float = 0.0  # tokens that are written
    guidance: float = 0.0  # passes of the denoiser in a step


OWN = Size()
