"""What the numbers of a setup must be: whole, among some, divisors of the model's sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.transformer import Transformers

Rows = NDArray[np.bool_]
ENDS = 2.0  # the embedding and the head may take the place of a layer each in a pipeline, as Llama 3 did


class Rule(NamedTuple):
    """`valid` has True where a row may stay."""

    field: str
    valid: Rows
    values: Array | None
    allowed: str | Callable[[int], str]  # of a row


def is_whole(values: Array, minimum: float = 1.0) -> Rows:
    """Which rows are whole numbers from `minimum` on. One row, the usual case, is asked without arrays: it is much quicker."""
    if len(values) == 1:
        return np.array([values[0] >= minimum and values[0].is_integer()])
    return np.asarray(np.isfinite(values) & (values >= minimum) & (values == np.floor(values)))


def all_true(flags: Rows) -> bool:
    return bool(flags[0]) if len(flags) == 1 else bool(flags.all())


def is_among(values: Array, allowed: Sequence[float]) -> Rows:
    if len(values) == 1:
        return np.array([values[0] in allowed])
    return np.asarray(np.logical_or.reduce([values == code for code in allowed]))


def are_known(names: Coded, allowed: Sequence[str]) -> Rows:
    if len(names) == 1:
        return np.array([names.name_at(0) in allowed])
    return np.array([name in allowed for name in names.names])[names.index]


def model_rules(model: Transformers, tp: Array, pp: Array, stages: Array, ep: Array) -> list[Rule]:
    divides = (np.mod(model.hidden, tp) == 0) & (np.mod(model.heads, tp) == 0)
    shares = np.where(model.experts > 0, np.mod(model.experts, ep) == 0, ep == 1)

    def value_in(values: Array, row: int) -> float:
        return float(values[row if len(values) > 1 else 0])

    def ways(row: int) -> str:
        heads, hidden = value_in(model.heads, row), value_in(model.hidden, row)
        return f"divisors of its {heads:g} attention heads: {_divisors(heads, hidden)}"

    def experts(row: int) -> str:
        count = value_in(model.experts, row)
        return f"divisors of its {count:g} experts: {_divisors(count, count)}" if count else "1: the model has no experts"

    return [
        Rule("tp", np.asarray(divides), tp, ways),
        Rule(
            "pp",
            np.asarray(stages <= model.layers + ENDS),
            pp,
            lambda row: (
                f"at most one stage (pp x interleave) for each of its {value_in(model.layers, row):g} layers, "
                "the embedding and the head"
            ),
        ),
        Rule("ep", np.asarray(shares), ep, experts),
    ]


def _divisors(count: float, second: float) -> str:
    """Whole numbers that divide both."""
    shared = [ways for ways in range(1, int(min(count, 4096)) + 1) if count % ways == 0 and second % ways == 0]
    return ", ".join(map(str, shared))
