"""The options of `predict`, `fits` and `tco`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from chipwise.public.workloads import (
    Names,
)

if TYPE_CHECKING:
    pass


class PredictOptions(TypedDict, total=False):
    """How a model runs, as the options of `chipwise predict` say it; what is left open is chosen."""

    chips: int
    tp: int
    pp: int
    cp: int
    ep: int
    precision: str
    seq: int | str
    target: int
    micro_batch: int
    global_batch: int | str
    zero: int
    interleave: int
    recompute: str
    method: str
    optimizer: str
    framework: str
    chips_per_node: int
    network: str | float
    engine: str
    concurrency: int | str
    rate: float | str
    batch: int
    input: int | str
    output: int | str
    prefix: int | str
    kv: str
    replicas: int
    cuda_graphs: bool
    ttft: str | float
    tpot: str | float
    latency: str | float
    percentile: float
    image_size: int
    steps: int
    guidance: bool
    clip: str | float
    compiled: bool


class FitsOptions(TypedDict, total=False):
    """What takes memory, as the options of `chipwise fits` say it."""

    train: bool
    chips: int
    tp: int
    pp: int
    precision: str
    kv: str
    batch: int
    context: int | str
    method: str
    optimizer: str
    recompute: str
    zero: int
    engine: str


class TcoOptions(TypedDict, total=False):
    """What is known of machines to own, as the options of `chipwise tco` say it; the rest comes from the catalog."""

    machines: int
    chips: int
    years: float
    utilisation: str | float
    country: str
    purchase: str | float
    power: str | float
    power_price: str | float
    pue: float
    staff: str | float
    space: str | float
    interest: str | float
    residual: str | float
    maintenance: str | float
    network: str | float
    rent: str | float
    term: str
    decline: str | float
    against: Names
    provider: Names
    region: Names
