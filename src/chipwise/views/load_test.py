"""What a load test saw, as plain data: `chipwise load --json`."""

from __future__ import annotations

from typing import Any

from chipwise.serving.load_report import Percentiles
from chipwise.serving.load_values import LoadOutcome, LoadResult

View = dict[str, Any]
METRICS = {"ttft": "first_token", "tpot": "per_token", "latency": "total"}


def result_view(result: LoadResult) -> View:
    request = result.request
    return {
        "url": request.url,
        "path": request.form.path,
        "model": request.form.model,
        "arrivals": "trace" if request.trace is not None else request.arrivals.value,
        "seconds": request.duration_s,
        "warm_up_seconds": request.warm_up_s,
        "seed": request.seed,
        **_outcome_view(result.outcome, request.usd_per_hour),
        "predicted": None if result.predicted is None else {name: dict(of) for name, of in result.predicted.items()},
        "measured_over_predicted": _ratios(result),
        "trials": [_outcome_view(trial, request.usd_per_hour) for trial in result.trials] if len(result.trials) > 1 else [],
    }


def _outcome_view(outcome: LoadOutcome, usd_per_hour: float | None) -> View:
    seen = outcome.report
    return {
        "rate_per_s": outcome.per_s,
        "requests": seen.requests,
        "answered": seen.answered,
        "errors": dict(seen.errors),
        "offered_per_s": seen.offered_per_s,
        "answered_per_s": seen.answered_per_s,
        "good_per_s": seen.good_per_s,
        "tokens_per_s": seen.tokens_per_s,
        "usd_per_million_tokens": usd_per_million(usd_per_hour, seen.tokens_per_s),
        "ttft_s": _percentiles(seen.first_token),
        "tpot_s": _percentiles(seen.per_token),
        "latency_s": _percentiles(seen.total),
        "lateness_s": _percentiles(seen.lateness),
        "goals": [{"metric": name, "share": share, "holds": holds} for (name, share), holds in outcome.holds.items()],
        "within_goals": outcome.is_within_goals if outcome.holds else None,
    }


def usd_per_million(usd_per_hour: float | None, tokens_per_s: float) -> float | None:
    return usd_per_hour / 3600.0 / tokens_per_s * 1e6 if usd_per_hour is not None and tokens_per_s > 0.0 else None


def _percentiles(values: Percentiles | None) -> View | None:
    if values is None:
        return None
    names = ("count", "mean", "p50", "p90", "p95", "p99", "p999", "highest")
    return {name: getattr(values, name) for name in names} | {
        "intervals": {name: list(ends) for name, ends in values.intervals.items()}
    }


def _ratios(result: LoadResult) -> View | None:
    if result.predicted is None:
        return None
    ratios: View = {}
    for metric, expected in result.predicted.items():
        values = getattr(result.outcome.report, METRICS[metric])
        if values is not None:
            ratios[metric] = {name: getattr(values, name) / seconds for name, seconds in expected.items() if seconds > 0.0}
    return ratios
