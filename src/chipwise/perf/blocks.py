"""Which factors are fitted, with how far each may stray: `data/perf/blocks.csv`, one row per block and family."""

from __future__ import annotations

from functools import cache

from chipwise.perf.pooling import FactorBlock, Factors
from chipwise.perf.tables import DATA, rows


@cache
def blocks(family: str) -> tuple[FactorBlock, ...]:
    return tuple(
        FactorBlock(row["level"], row["base"], row["feature"], float(row["sd"]))
        for row in rows("blocks.csv")
        if row["family"] == family
    )


@cache
def fitted(family: str) -> Factors:
    """The packaged coefficients of a family; none where it has not been fitted."""
    if not (DATA / f"factors_{family}.csv").exists():
        return Factors((), {})
    values: dict[str, dict[str, tuple[float, float]]] = {block.key: {} for block in blocks(family)}
    for row in rows(f"factors_{family}.csv"):
        values[row["block"]][row["name"]] = (float(row["value"]), float(row["variance"]))
    return Factors(blocks(family), values)
