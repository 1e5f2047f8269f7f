"""Scoring: predictions of measurement rows against what was measured, with the reasons for rows that cannot be answered.

Rows are answered family by family as arrays. Of rows that the packaged factors were fitted on only predictions from `unseen`
may be quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chipwise.calibration.families import FAMILIES, Family, route
from chipwise.calibration.peak import peaks
from chipwise.perf.arrays import Array, Coded
from chipwise.perf.model import Model
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row

COLUMNS = ("chip", "model", "engine", "metric_name", "source_repo")


@dataclass(frozen=True, slots=True)
class Scored:
    """One row's answer. `predicted` is None where `reason` says why."""

    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    peak_gb: float | None = None
    provenance: str = ""
    reason: str = ""


def predict(rows: Sequence[Row], parts: Parts, model: Model) -> list[Scored]:
    scores = [Scored()] * len(rows)
    for family, members, cases in _by_family(rows, parts, scores):
        question = family.question_of(cases)
        estimate = model.estimate(family.name, question, Coded.of([family.kind_of(case) for case in cases]))
        memory = peaks(cases)
        for index, row in enumerate(members):
            scores[row] = Scored(
                predicted=float(estimate.value[index]),
                low=float(estimate.low[index]),
                high=float(estimate.high[index]),
                peak_gb=memory[index],
                provenance=estimate.provenance.name_at(index),
            )
    return scores


def _by_family(rows: Sequence[Row], parts: Parts, scores: list[Scored]) -> list[tuple[Family, list[int], list[Any]]]:
    grouped: dict[str, tuple[Family, list[int], list[Any]]] = {}
    for index, row in enumerate(rows):
        routed = route(row, parts)
        if isinstance(routed, str):
            scores[index] = Scored(reason=routed)
            continue
        family, case = routed
        _, members, cases = grouped.setdefault(family.name, (family, [], []))
        members.append(index)
        cases.append(case)
    return list(grouped.values())


@dataclass(frozen=True, slots=True)
class Figures:
    """Errors and shares as fractions."""

    rows: int
    median_ape: float
    p90_ape: float
    within_25pct: float
    interval_coverage: float
    interval_width: float  # median of (high - low) / predicted


def figures(rows: Sequence[Row], answers: Sequence[Scored]) -> Figures | None:
    """Of the rows that were measured and answered; None where there are none."""
    pairs = [
        (row.number("metric_value", 0.0), answer)
        for row, answer in zip(rows, answers, strict=True)
        if answer.predicted is not None and row.number("metric_value", 0.0) > 0
    ]
    if not pairs:
        return None
    measured = np.array([value for value, _ in pairs])
    predicted, low, high = (np.array([getattr(one, name) for _, one in pairs]) for name in ("predicted", "low", "high"))
    error = np.abs(predicted / measured - 1.0)
    return Figures(
        rows=len(pairs),
        median_ape=float(np.median(error)),
        p90_ape=float(np.quantile(error, 0.9)),
        within_25pct=float(np.mean(error <= 0.25)),
        interval_coverage=float(np.mean((measured >= low) & (measured <= high))),
        interval_width=float(np.median((high - low) / predicted)),
    )


def figures_by(
    rows: Sequence[Row], answers: Sequence[Scored], columns: Sequence[str] = COLUMNS
) -> dict[str, dict[str, Figures]]:
    """Figures for every value of each column, the most frequent first."""
    tables: dict[str, dict[str, Figures]] = {}
    for column in columns:
        members: dict[str, list[int]] = {}
        for index, row in enumerate(rows):
            members.setdefault(row.text(column) or "(blank)", []).append(index)
        groups = {
            name: figures([rows[at] for at in indices], [answers[at] for at in indices])
            for name, indices in sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
        }
        tables[column] = {name: value for name, value in groups.items() if value is not None}
    return tables


def order_kept(
    rows: Sequence[Row], answers: Sequence[Scored], key: Callable[[Row], str], difference: float = 0.1
) -> tuple[int, int]:
    """Of all pairs of one group whose measured values differ by over `difference`: (pairs put in the right order, pairs)."""
    grouped: dict[str, list[tuple[float, float]]] = {}
    for row, answer in zip(rows, answers, strict=True):
        if answer.predicted is not None and row.number("metric_value", 0.0) > 0:
            name = f"{key(row)}|{row.text('metric_name')}"
            grouped.setdefault(name, []).append((row.number("metric_value", 0.0), answer.predicted))
    right = pairs = 0
    for members in grouped.values():
        values: Array = np.array(members)
        measured, predicted = values[:, 0], values[:, 1]
        apart = np.triu(np.abs(np.log(measured[:, None] / measured[None, :])) > np.log1p(difference), 1)
        ordered = np.sign(measured[:, None] - measured[None, :]) == np.sign(predicted[:, None] - predicted[None, :])
        right, pairs = right + int(np.sum(apart & ordered)), pairs + int(np.sum(apart))
    return right, pairs


def refused(answers: Sequence[Scored]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for answer in answers:
        if answer.reason:
            counts[answer.reason] = counts.get(answer.reason, 0) + 1
    return counts


__all__ = ["COLUMNS", "FAMILIES", "Figures", "Scored", "figures", "figures_by", "order_kept", "predict", "refused"]
