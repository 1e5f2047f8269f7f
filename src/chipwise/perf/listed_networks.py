"""Networks that were measured and that the model registry lacks: rows of `data/perf/networks.csv`.

One row per group of equal layers; their sum is the network's public FLOP count within 3%.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from chipwise.perf.net import (
    CONV_NARROW,
    CONV_PASSES,
    CONVOLUTION,
    DIFFUSION,
    NORM_PASSES,
    OWN,
    STEPS,
    TRANSFORMER,
    Net,
    Product,
    Size,
    joined,
    repeated,
)
from chipwise.perf.tables import rows


@cache
def _table() -> Mapping[str, tuple[Mapping[str, str], ...]]:
    networks: dict[str, list[Mapping[str, str]]] = {}
    for row in rows("networks.csv"):
        networks.setdefault(row["network"].lower(), []).append(row)
    return {name: tuple(rows) for name, rows in networks.items()}


def listed(name: str) -> bool:
    return name.lower() in _table()


@cache
def listed_net(name: str, size: Size = OWN) -> Net:
    """A network of the table, at another size where its rows say how they grow.

    `part` tells when a row runs: once, at every denoising step (with guidance: on two samples), or once in 16 bits.
    """
    rows = _table()[name.lower()]
    conv = rows[0]["grows"] == "area"
    pieces = []
    for row in rows:
        length = size.length or float(row["size"])
        grown = {"area": (length / float(row["size"])) ** 2, "length": length / float(row["size"]), "": 1.0}[row["grows"]]
        net = _row(row, grown)
        if row["part"] == "step":
            net = repeated(net, size.steps or STEPS, size.guidance or 2.0)
        elif row["part"] == "wide":
            net = repeated(net, 1.0, wide=True)
        pieces.append(net)
    network = joined(pieces)
    kinds = DIFFUSION if any(row["part"] == "step" for row in rows) else TRANSFORMER if network.score_flop else CONVOLUTION
    side = size.length or float(rows[0]["size"])
    return replace(
        network, kind=kinds, parameters=sum(_stored(row) for row in rows), inputs=3.0 * side * side if conv else side
    )


def _stored(row: Mapping[str, str]) -> float:
    if row["kind"] in ("scores", "cross"):
        return 0.0
    inputs, outputs, groups, kernel = (float(row[name]) for name in ("inputs", "outputs", "groups", "kernel"))
    return float(row["stored"]) * inputs / groups * outputs * kernel**2


def _row(row: Mapping[str, str], grown: float) -> Net:
    times, rows = float(row["times"]), float(row["rows"]) * grown
    inputs, outputs, groups, kernel = (float(row[name]) for name in ("inputs", "outputs", "groups", "kernel"))
    match row["kind"]:
        case "scores" | "cross":  # `outputs` keys of `inputs` values; those of a picture grow with it
            keys = outputs * (grown if row["kind"] == "scores" else 1.0)
            scored = times * rows * keys
            return Net(
                kind=TRANSFORMER,
                products=(),
                parameters=0.0,
                score_flop=4.0 * inputs * scored,
                score_values=2.0 * times * inputs * (rows + keys),
                score_map=groups * scored,
                depth=times,
            )
        case "lookup":
            return Net(TRANSFORMER, (), 0.0, lookups=rows * outputs)
        case "token":
            product = Product(rows=rows, columns=outputs / groups, depth=inputs / groups, groups=groups, times=times)
            return Net(TRANSFORMER, (product,), 0.0, touched=times * rows * (outputs + NORM_PASSES / 4 * inputs))
        case _:
            product = Product(
                rows=rows,
                columns=outputs / groups,
                depth=inputs / groups * kernel**2,
                groups=groups,
                window=kernel**2,
                times=times,
                narrow=CONV_NARROW,
            )
            return Net(CONVOLUTION, (product,), 0.0, touched=CONV_PASSES * times * rows * outputs)
