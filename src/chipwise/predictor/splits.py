"""Ways to lay copies of a language model over chips: how many share every layer, and how many groups take them in turn."""

from __future__ import annotations

from itertools import product

from chipwise.perf.transformer import Layer

WIDEST_TENSOR = 8
USUAL_MACHINE = 8  # chips of a machine of which nothing else is said


def serving_splits(layer: Layer, chips: int, reach: float) -> list[tuple[int, int]]:
    """(tensor, pipeline) ways within a machine of `chips` chips, and over up to `reach` machines: there only in stages, each as
    wide as a machine, since what one machine holds is better served by it."""
    widths = [t for t in (1, 2, 4, 8) if t <= min(WIDEST_TENSOR, chips) and layer.heads % t == 0 and layer.hidden % t == 0]
    depths = [p for p in (1, 2, 4) if p <= layer.layers]
    inside = [(tp, pp) for tp, pp in product(widths, depths) if tp * pp <= chips]
    spread = [(widths[-1], pp) for pp in depths if widths and widths[-1] * pp > chips >= 4 and chips == widths[-1]]
    return inside + [(tp, pp) for tp, pp in spread if -(-tp * pp // chips) <= reach]
