"""Which factors are fitted, with how far each may stray: `data/perf/blocks.csv`, one row per block and family."""

from __future__ import annotations

import csv
from functools import cache

from chipwise.perf.part import DATA
from chipwise.perf.pooling import Block, Factors


@cache
def blocks(family: str) -> tuple[Block, ...]:
    with (DATA / "blocks.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Block(row["level"], row["base"], row["feature"], float(row["sd"]))
            for row in csv.DictReader(file)
            if row["family"] == family
        )


@cache
def fitted(family: str) -> Factors:
    """The packaged coefficients of a family; none where it has not been fitted."""
    path = DATA / f"factors_{family}.csv"
    if not path.exists():
        return Factors((), {})
    values: dict[str, dict[str, tuple[float, float]]] = {block.key: {} for block in blocks(family)}
    with path.open(encoding="utf-8", newline="") as file:
        for key, name, value, variance in list(csv.reader(file))[1:]:
            values[key][name] = (float(value), float(variance))
    return Factors(blocks(family), values)
