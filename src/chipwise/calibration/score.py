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

BY = ("chip", "model", "engine", "metric_name", "source_repo")


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
    found = [Scored()] * len(rows)
    for family, members, cases in _by_family(rows, parts, found):
        question = family.question_of(cases)
        estimate = model.estimate(family.name, question, Coded.of([family.kind_of(case) for case in cases]))
        held = peaks(cases)
        for at, row in enumerate(members):
            found[row] = Scored(
                float(estimate.value[at]),
                float(estimate.low[at]),
                float(estimate.high[at]),
                held[at],
                estimate.provenance.at(at),
            )
    return found


def _by_family(rows: Sequence[Row], parts: Parts, found: list[Scored]) -> list[tuple[Family, list[int], list[Any]]]:
    grouped: dict[str, tuple[Family, list[int], list[Any]]] = {}
    for at, row in enumerate(rows):
        routed = route(row, parts)
        if isinstance(routed, str):
            found[at] = Scored(reason=routed)
            continue
        family, case = routed
        _, members, cases = grouped.setdefault(family.name, (family, [], []))
        members.append(at)
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
        (row.number("metric_value", 0.0), one)
        for row, one in zip(rows, answers, strict=True)
        if one.predicted is not None and row.number("metric_value", 0.0) > 0
    ]
    if not pairs:
        return None
    measured = np.array([value for value, _ in pairs])
    predicted, low, high = (np.array([getattr(one, name) for _, one in pairs]) for name in ("predicted", "low", "high"))
    error = np.abs(predicted / measured - 1.0)
    return Figures(
        len(pairs),
        float(np.median(error)),
        float(np.quantile(error, 0.9)),
        float(np.mean(error <= 0.25)),
        float(np.mean((measured >= low) & (measured <= high))),
        float(np.median((high - low) / predicted)),
    )


def by(rows: Sequence[Row], answers: Sequence[Scored], columns: Sequence[str] = BY) -> dict[str, dict[str, Figures]]:
    """Figures for every value of each column, the most frequent first."""
    found: dict[str, dict[str, Figures]] = {}
    for column in columns:
        members: dict[str, list[int]] = {}
        for at, row in enumerate(rows):
            members.setdefault(row.text(column) or "(blank)", []).append(at)
        named = {
            name: figures([rows[at] for at in those], [answers[at] for at in those])
            for name, those in sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
        }
        found[column] = {name: value for name, value in named.items() if value is not None}
    return found


def order_kept(
    rows: Sequence[Row], answers: Sequence[Scored], key: Callable[[Row], str], least: float = 0.1
) -> tuple[int, int]:
    """Of all pairs of one group whose measured values differ by over `least`: (pairs put in the right order, pairs)."""
    grouped: dict[str, list[tuple[float, float]]] = {}
    for row, one in zip(rows, answers, strict=True):
        if one.predicted is not None and row.number("metric_value", 0.0) > 0:
            name = f"{key(row)}|{row.text('metric_name')}"
            grouped.setdefault(name, []).append((row.number("metric_value", 0.0), one.predicted))
    right = pairs = 0
    for members in grouped.values():
        values: Array = np.array(members)
        measured, predicted = values[:, 0], values[:, 1]
        apart = np.triu(np.abs(np.log(measured[:, None] / measured[None, :])) > np.log1p(least), 1)
        same = np.sign(measured[:, None] - measured[None, :]) == np.sign(predicted[:, None] - predicted[None, :])
        right, pairs = right + int(np.sum(apart & same)), pairs + int(np.sum(apart))
    return right, pairs


def refused(answers: Sequence[Scored]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for one in answers:
        if one.reason:
            counts[one.reason] = counts.get(one.reason, 0) + 1
    return counts


__all__ = ["BY", "FAMILIES", "Figures", "Scored", "by", "figures", "order_kept", "predict", "refused"]
