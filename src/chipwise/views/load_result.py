"""What a load test saw, as plain data: `chipwise load --json`."""

from __future__ import annotations

from typing import Any

from chipwise.serving.load_goals import GoalVerdict, needed_requests
from chipwise.serving.load_report import Percentiles, share_name
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
        "seconds": result.outcome.sent_for_s,
        "warm_up_seconds": request.warm_up_s,
        "seed": request.seed,
        "percentile": share_name(request.share),
        **_outcome_view(result.outcome, request.usd_per_hour),
        "predicted": None if result.predicted is None else {name: dict(of) for name, of in result.predicted.items()},
        "measured_over_predicted": _ratios(result),
        "highest_rate_per_s": None if result.highest is None else list(result.highest),
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
        "goals": [_goal_view(goal) for goal in outcome.goals],
        "within_goals": outcome.is_within_goals if outcome.goals else None,
    }


def _goal_view(goal: GoalVerdict) -> View:
    return {
        "metric": goal.metric,
        "share": goal.share,
        "limit_s": goal.limit_s,
        "kept_share": goal.kept_share,
        "requests": goal.requests,
        "needed_requests": needed_requests(goal.share),
        "holds": goal.holds,
        "sure": goal.is_sure,
    }


def usd_per_million(usd_per_hour: float | None, tokens_per_s: float) -> float | None:
    return usd_per_hour / 3600.0 / tokens_per_s * 1e6 if usd_per_hour is not None and tokens_per_s > 0.0 else None


def _percentiles(values: Percentiles | None) -> View | None:
    if values is None:
        return None
    names = ("count", "mean", "p50", "p90", "p95", "p99", "p999", "highest")
    ends = {name: list(interval) for name, interval in values.intervals.items()}
    return {name: getattr(values, name) for name in names} | dict(values.extra) | {"intervals": ends}


def _ratios(result: LoadResult) -> View | None:
    if result.predicted is None:
        return None
    ratios: View = {}
    for metric, expected in result.predicted.items():
        values = getattr(result.outcome.report, METRICS[metric])
        if values is not None:
            ratios[metric] = {
                name: value / seconds
                for name, seconds in expected.items()
                if seconds > 0.0 and (value := values.value(name)) is not None
            }
    return ratios
