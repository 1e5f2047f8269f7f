"""A load test as one page: what it was, percentiles beside the goals and the prediction, and latency against the rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date

from chipwise.report.chart import COLOURS, INK, Axis, Chart, Dot, Lines, Points, Stroke
from chipwise.report.markup import label, tag, text
from chipwise.report.page import document, drawn, section
from chipwise.report.tables import simple
from chipwise.serving.load_goals import GoalVerdict, needed_requests
from chipwise.serving.load_report import LoadReport, Percentiles, share_name
from chipwise.serving.load_values import LoadOutcome, LoadResult
from chipwise.text import duration, number, percent, plural, spent

METRICS = (("ttft", "first_token", "first token"), ("tpot", "per_token", "per token"), ("latency", "total", "whole answer"))
_SHOWN = ("p50", "p90", "p95", "p99", "p999")
_TITLES = {"p999": "p99.9"}


def load_page(result: LoadResult, today: date) -> str:
    request, outcome = result.request, result.outcome
    title = f"Load test of {request.url}"
    arrivals = "a trace" if request.trace is not None else f"{request.arrivals.value} arrivals"
    model = f", model {request.form.model}" if request.form.model else ""
    about = f"{arrivals}{model}; times count from the instant at which a request was due"
    header = tag("header", tag("h1", text(title)), tag("p", text(about), class_="about"), _answer(result))
    charts = list(_charts(result))
    inside = [
        *(
            drawn(charts, f"rate-{metric}", f"{name.capitalize()} against the rate", _rate_caption(metric, result))
            for metric, _, name in METRICS
        ),
        drawn(charts, "percentiles", "Percentiles", f"At {_rate(outcome)}, in milliseconds."),
        section("times", "Times, ms", _times(result)),
        section("goals", "Goals", _goals(outcome.goals)) if outcome.goals else "",
        section("rates", "Rates that were tried", _trials(result)) if len(result.trials) > 1 else "",
        section("numbers", "In numbers", _numbers(result)),
    ]
    return document(title, header, inside, today, "load")


def _rate(outcome: LoadOutcome) -> str:
    return "the rate of the trace" if outcome.per_s is None else f"{number(outcome.per_s)} requests/s"


def _answer(result: LoadResult) -> str:
    outcome = result.outcome
    if result.highest is not None:
        best, failed = result.highest
        if best is None:
            return tag(
                "p",
                text(f"No rate that was tried keeps the goals; the lowest is {number(failed or 0.0)}/s."),
                class_="answer none",
            )
        above = "no higher rate was tried" if failed is None else f"{number(failed)} do not"
        unsure = "" if all(goal.is_sure for goal in outcome.goals) else " in too few requests to be sure"
        return tag("p", text(f"{number(best)} requests/s keep the goals{unsure}; {above}."), class_="answer")
    missed = [goal for goal in outcome.goals if not goal.holds]
    failed_count = sum(outcome.report.errors.values())
    if missed or failed_count:
        parts = [f"{plural(len(missed), 'goal')} missed"] if missed else []
        parts += [f"{plural(failed_count, 'request')} failed"] if failed_count else []
        return tag("p", text(f"At {_rate(outcome)}: {', '.join(parts)}."), class_="answer none")
    words = "all goals hold" if outcome.goals else f"{plural(outcome.report.answered, 'request')} answered"
    return tag("p", text(f"At {_rate(outcome)}: {words}."), class_="answer")


def _charts(result: LoadResult) -> Iterator[Chart]:
    for metric, field, name in METRICS:
        chart = _against_rate(result, metric, field, name)
        if chart is not None:
            yield chart
    series = []
    for place, (_, field, name) in enumerate(METRICS):
        values: Percentiles | None = getattr(result.outcome.report, field)
        if values is not None:
            heights = [1e3 * float(getattr(values, share)) for share in _SHOWN]
            names = [_TITLES.get(share, share) for share in _SHOWN]
            series.append(Lines(names, heights, Stroke(COLOURS[place], 2), label(name)))
    if series:
        yield Chart("percentiles", tuple(series), x=Axis("percentile"), y=Axis("ms", from_zero=True), height=240)


def _against_rate(result: LoadResult, metric: str, field: str, name: str) -> Chart | None:
    """Median and tail of every rate that was tried, and the goal across."""
    trials = sorted((trial for trial in result.trials if trial.per_s is not None), key=lambda trial: trial.per_s or 0.0)
    seen = [(trial.per_s or 0.0, getattr(trial.report, field)) for trial in trials]
    points = [(rate, values) for rate, values in seen if values is not None and values.p99 > 0.0]
    if len(points) < 2:
        return None
    rates, tail = [rate for rate, _ in points], share_name(result.request.share)
    series: list[Lines | Points] = []
    for place, share in enumerate(dict.fromkeys(("p50", tail, "p99"))):
        heights = [_ms(values.value(share)) for _, values in points]
        series.append(Lines(rates, heights, Stroke(COLOURS[place], 2), label(_TITLES.get(share, share))))
        dots = tuple(
            Dot(rate, height, 5, COLOURS[place]) for rate, height in zip(rates, heights, strict=True) if height is not None
        )
        series.append(Points("circle", dots))
    expected, rate = (result.predicted or {}).get(metric, {}).get(tail), result.outcome.per_s
    if expected is not None and rate is not None:
        tip = label(f"predicted {tail}: {duration(expected)}")
        series.append(Points("diamond", (Dot(rate, 1e3 * expected, 11, INK, tip=tip),), label(f"{tail} predicted")))
    limits = [1e3 * goal.limit_s for goal in result.outcome.goals if goal.metric == metric]
    if limits:
        series.append(Lines((rates[0], rates[-1]), (min(limits), min(limits)), Stroke(INK, 1.5, "dash"), "goal"))
    axis = _log_axis(f"{name}, ms", [height for part in series for height in part.ys if height is not None])
    return Chart(f"rate-{metric}", tuple(series), x=Axis("requests/s"), y=axis, height=240)


def _log_axis(title: str, heights: Sequence[float]) -> Axis:
    """From the power of ten below all to the one above all."""
    positive = [height for height in heights if height > 0.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    high = max(high, low + 1)
    marks = tuple((10.0**power, number(10.0**power)) for power in range(low, high + 1))
    return Axis(title, span=(float(low), float(high)), is_log=True, marks=marks)


def _rate_caption(metric: str, result: LoadResult) -> str:
    limits = [goal.limit_s for goal in result.outcome.goals if goal.metric == metric]
    line = f" The dashed line is the goal, {duration(min(limits))}." if limits else ""
    return f"Each point is a trial at that rate, whether or not it kept the goals.{line}"


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def _times(result: LoadResult) -> str:
    tail = share_name(result.request.share)
    shares = list(dict.fromkeys((*_SHOWN, tail)))
    titles = ["ms", *(_TITLES.get(share, share) for share in shares), f"{tail} between"]
    if result.predicted is not None:
        titles.append(f"{tail} predicted")
    rows = []
    for metric, field, name in METRICS:
        values: Percentiles | None = getattr(result.outcome.report, field)
        if values is None:
            continue
        ends = values.intervals.get(tail)
        row = [text(name), *(_figure(values.value(share)) for share in shares)]
        row.append("-" if ends is None else f"{_figure(ends[0])} to {_figure(ends[1])}")
        if result.predicted is not None:
            row.append(_figure(result.predicted.get(metric, {}).get(tail)))
        rows.append(row)
    return simple(titles, rows)


def _figure(seconds: float | None) -> str:
    return "-" if seconds is None else number(1e3 * seconds, 3)


def _goals(goals: Sequence[GoalVerdict]) -> str:
    names = {metric: name for metric, _, name in METRICS}
    rows = [
        [
            text(f"{share_name(goal.share)} of {names[goal.metric]}"),
            duration(goal.limit_s),
            percent(goal.kept_share),
            ("holds" if goal.holds else "is missed")
            + ("" if goal.is_sure else f"; {goal.requests:,} requests cannot tell, {needed_requests(goal.share):,} are needed"),
        ]
        for goal in goals
    ]
    return simple(("goal", "limit", "requests within it", "in this test"), rows)


def _trials(result: LoadResult) -> str:
    tail = share_name(result.request.share)
    rows = []
    for trial in sorted(result.trials, key=lambda trial: trial.per_s or 0.0):
        report = trial.report
        times = [None if values is None else values.value(tail) for values in (report.first_token, report.per_token)]
        verdict = "yes" if trial.is_within_goals else "no"
        rows.append(
            [
                number(trial.per_s or 0.0),
                f"{report.requests:,}",
                *map(_figure, times),
                f"{sum(report.errors.values()):,}",
                verdict,
            ]
        )
    titles = ("requests/s", "requests", f"first token {tail}, ms", f"per token {tail}, ms", "errors", "keeps the goals")
    return simple(titles, rows)


def _numbers(result: LoadResult) -> str:
    request, report = result.request, result.outcome.report
    pairs = [
        ("requests", f"{report.requests:,}, of which {report.answered:,} answered"),
        ("errors", _errors(report)),
        ("answered", f"{number(report.answered_per_s)}/s, {number(report.good_per_s)}/s within the goals"),
        ("tokens out", f"{number(report.tokens_per_s)}/s"),
        ("prompts and answers", f"{number(request.prompts.mean)} and {number(request.answers.mean)} tokens, about"),
        ("seed", str(request.seed)),
    ]
    if request.usd_per_hour is not None and report.tokens_per_s > 0.0:
        usd = request.usd_per_hour / 3600.0 / report.tokens_per_s * 1e6
        pairs.append(("cost", f"{spent(usd)} per million tokens out"))
    if report.lateness is not None:
        pairs.append(("own delay", f"p99 {duration(report.lateness.p99)} from due to sent; all times include it"))
    return simple(("", ""), [[text(name), text(value)] for name, value in pairs])


def _errors(report: LoadReport) -> str:
    return ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in report.errors.items()) or "none"
