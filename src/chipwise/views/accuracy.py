"""Predictions held against one's own runs, as plain data and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from chipwise.runner.accuracy.drift import ChangedCondition
from chipwise.runner.accuracy.drift import Drift as Drift
from chipwise.runner.accuracy.report import STATED_COVERAGE as STATED_COVERAGE
from chipwise.runner.accuracy.report import Accuracy as Accuracy
from chipwise.runner.accuracy.report import Coverage
from chipwise.runner.accuracy.report import Period as Period
from chipwise.runner.accuracy.runs import MeasuredRun as MeasuredRun
from chipwise.text import percent, plural

_NAMES = {
    "driver": "the driver",
    "kernel": "the kernel",
    "program": "the program's files",
    "command": "the command",
    "settings": "the settings",
    "devices": "the devices",
    "machine": "the machine",
    "prediction": "the prediction itself",
    "cpu_of_others": "neighbours' share of the cores",
    "device_processes": "neighbours on the device, as programs that hold it,",
    "temperature": "the highest temperature of its devices, in C,",
}
_LONGEST = 60
_REASONS = 4  # that are named


def view(accuracy: Accuracy) -> dict[str, Any]:
    return {
        "runs": [run_view(run) for run in accuracy.runs],
        "unpredicted": accuracy.unpredicted,
        "why_unpredicted": dict(accuracy.reasons),
        "overall": None if accuracy.overall is None else _period_view(accuracy.overall),
        "meant_coverage": STATED_COVERAGE,
        "periods": [_period_view(period) for period in accuracy.periods],
        "drifts": [
            {
                "job": drift.first.job.id,
                "name": drift.first.job.spec.name,
                "at": moment(drift.first.ended),
                "runs_before": drift.before,
                "runs_after": drift.after,
                "speed": drift.speed,
                "low": drift.low,
                "high": drift.high,
                "changes": [asdict(change) for change in drift.changes],
            }
            for drift in accuracy.drifts
        ],
    }


def run_view(run: MeasuredRun) -> dict[str, Any]:
    figure, predicted = run.figure, run.measurement.predicted
    assert figure is not None
    return {
        "job": run.job.id,
        "name": run.job.spec.name,
        "ended": moment(run.ended),
        "engine": run.job.spec.engine,
        "chip": predicted.get("chip"),
        "chips": predicted.get("chips"),
        "quantity": figure.name,
        "unit": figure.unit,
        "predicted": figure.predicted,
        "low": figure.low,
        "high": figure.high,
        "measured": figure.measured,
        "ratio": figure.ratio,
        "inside": figure.inside,
    }


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _period_view(period: Period) -> dict[str, Any]:
    coverage = period.coverage
    return {
        "first": moment(period.first),
        "last": moment(period.last),
        "runs": period.runs,
        "speed": period.speed,
        "error": period.error,
        "coverage": None if coverage is None else {**asdict(coverage), "share": coverage.share},
    }


def coverage_words(coverage: Coverage | None) -> str:
    if coverage is None:
        return "no run had an interval"
    share = f"{coverage.inside} of {coverage.runs} ({percent(coverage.share)}; {percent(STATED_COVERAGE)} is meant)"
    if coverage.is_as_meant:
        return share
    return f"{share}: the intervals are too {'narrow' if coverage.share < STATED_COVERAGE else 'wide'} for your runs"


def reason_words(reasons: Sequence[tuple[str, int]]) -> str:
    return "; ".join(f"{reason} ({plural(count, 'run')})" for reason, count in reasons[:_REASONS])


def drift_words(drift: Drift) -> str:
    """What changed, since when, and what was otherwise then."""
    direction = "slower" if drift.speed < 1 else "faster"
    change = abs(drift.speed - 1.0)
    ends = sorted(abs(end - 1.0) for end in (drift.low, drift.high))
    size = f"{percent(change)} {direction} ({percent(ends[0])} to {percent(ends[1])})"
    first = f"{drift.first.job.spec.name} is {size} since {drift.first.job.id} of {moment(drift.first.ended)[:10]}"
    counts = f"{plural(drift.before, 'run')} before, {drift.after} after"
    if not drift.changes:
        return f"{first} ({counts}): nothing that is recorded of the runs changed then."
    return f"{first} ({counts}). What changed then: {'; '.join(map(_change_words, drift.changes))}."


def _change_words(change: ChangedCondition) -> str:
    before, after = (_short(change.name, text) for text in (change.before, change.after))
    return f"{_NAMES.get(change.name, change.name)} from {before} to {after}"


def _short(name: str, text: str) -> str:
    if name == "cpu_of_others":
        return percent(float(text))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
