"""What the model would have said of rows it had not seen: fits on the rest, fold by fold.

Folds are whole groups, never single rows: near-identical rows would answer for each other. `group` leaves out a model on a
chip (the tables' own groups; model, chip and engine for inference), `configuration` a configuration with all its metrics,
`chip` every row of a chip, `source` every row of whoever measured it (`without` calibrates by these).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibration.families import Family, route
from chipwise.calibration.sources import source_of
from chipwise.perf.arrays import Array
from chipwise.perf.blocks import blocks
from chipwise.perf.fitting import fit
from chipwise.perf.part import Parts
from chipwise.perf.question import Question, answer
from chipwise.perf.rows import Row

WEIGHTS = {"A": 1.0, "B": 0.75, "C": 0.3, "D": 0.0}
# What rows of a family differ by for no reason that a block knows: chosen by left-out groups (training) and configurations.
NOISE = {"training": 0.23, "inference": 0.12, "vision": 0.1}
LEAVE_OUT = ("group", "configuration", "chip", "source")


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of one family with what was measured."""

    family: Family
    rows: tuple[Row, ...]
    cases: tuple[Any, ...]
    question: Question
    measured: Array
    weight: Array

    def nothing(self) -> Prediction:
        """Before any fold."""
        return Prediction(*(np.full(len(self.rows), np.nan) for _ in range(3)))


@dataclass(frozen=True, slots=True)
class Prediction:
    """Left-out predictions of a sample's rows; NaN where a row was in no fold."""

    value: Array
    log_seconds: Array
    spread: Array


def weight_of(row: Row) -> float:
    mark = row.text("quality") or row.text("trust") or "B"
    noisy = row.number("spread", 0.0)
    inference_doubtful = mark == "C" and not row.text("quality")
    return 0.0 if inference_doubtful else WEIGHTS.get(mark, 0.3) / (1.0 + (noisy / 0.1) ** 2)


def samples(rows: Sequence[Row], parts: Parts) -> list[Sample]:
    """Rows with a measured value, by family; a row that no family or part answers is passed over."""
    grouped: dict[str, tuple[Family, list[Row], list[Any]]] = {}
    for row in rows:
        routed = route(row, parts)
        if isinstance(routed, str) or row.number("metric_value", 0.0) <= 0:
            continue
        family, case = routed
        _, members, cases = grouped.setdefault(family.name, (family, [], []))
        members.append(row)
        cases.append(case)
    return [
        Sample(
            family=family,
            rows=tuple(members),
            cases=tuple(cases),
            question=family.question_of(cases),
            measured=np.array([row.number("metric_value", np.nan) for row in members]),
            weight=np.array([weight_of(row) for row in members]),
        )
        for family, members, cases in grouped.values()
    ]


def group_key(row: Row) -> str:
    return row.text("group") or "|".join(row.text(name) for name in ("model", "chip", "engine"))


_CONFIGURATION = (
    "source_repo",
    "model",
    "chip",
    "engine",
    "precision",
    "precision_weights",
    "precision_kv",
    "chips",
    "tp",
    "pp",
    "cp",
    "ep",
    "seq_len",
    "micro_batch",
    "global_batch_sequences",
    "activation_checkpointing",
    "batch_or_concurrency",
    "input_len",
    "output_len",
)


def configuration_key(row: Row) -> str:
    return "|".join(row.text(name) for name in _CONFIGURATION)


def key_of(leave_out: str) -> Callable[[Row], str]:
    keys = {"group": group_key, "configuration": configuration_key, "chip": lambda row: row.text("chip"), "source": source_of}
    return keys[leave_out]


def folds(rows: Sequence[Row], key: Callable[[Row], str], count: int, seed: int = 1) -> NDArray[np.intp]:
    """Which fold each row is in; rows with one key share a fold."""
    names = sorted({key(row) for row in rows})
    np.random.default_rng(seed).shuffle(names)
    place = {name: at % count for at, name in enumerate(names)}
    return np.array([place[key(row)] for row in rows], dtype=np.intp)


def left_out(sample: Sample, fold: NDArray[np.intp], rounds: int = 6) -> Iterator[tuple[int, Prediction]]:
    """After every fold: its number, and what is known so far."""
    problem = sample.question.problem(sample.measured, sample.weight)
    value, seconds, spread = (np.full(len(fold), np.nan) for _ in range(3))
    for number in np.unique(fold):
        out = fold == number
        training = sample.question.problem(sample.measured, np.where(out, 0.0, problem.weight))
        fitted = answer(sample.question, fit(training, blocks(sample.family.name), NOISE[sample.family.name], rounds))
        value[out], seconds[out], spread[out] = fitted.value[out], np.log(fitted.seconds[out]), fitted.spread[out]
        yield int(number), Prediction(value, seconds, spread)
