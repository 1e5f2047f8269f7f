"""`chipwise accuracy`: predictions against your own finished runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chipwise.cli.options import csv_option, json_option
from chipwise.cli.parameter_types import Duration

if TYPE_CHECKING:
    from chipwise.views.accuracy import Accuracy, MeasuredRun, Period

LISTED = 20  # runs, the newest ones


@click.command()
@click.argument("name", metavar="[JOB]", required=False)
@click.option("--since", type=Duration(), default=None, metavar="TIME", help="Only runs that ended within this time: 30d.")
@csv_option("CSV of all runs, with a header line.")
@json_option("JSON, everything.")
def accuracy(name: str | None, since: float | None, as_csv: bool, as_json: bool) -> None:
    """Compare what was predicted with what your own finished runs measured.

    Shows each run with its interval, how many runs were inside, whether the error changes over time, and since when a workload
    is faster or slower than it was, with what changed at that time (driver, kernel, program, settings, neighbours). JOB is the
    name of a workload or job.

    \b
    Examples:
      chipwise accuracy
      chipwise accuracy train --since 30d
    """
    import time

    from chipwise.api.measure import runs
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import NoResult
    from chipwise.views.accuracy import reason_words, run_view, view

    result = runs.accuracy(open_session(), name or "", 0.0 if since is None else time.time() - since)
    if as_json:
        text.show_json(view(result))
    elif as_csv:
        text.show_csv([run_view(run) for run in result.runs])
    elif result.overall is None:
        reasons = reason_words(result.reasons)
        raise NoResult(
            f"No finished run has both a prediction and a measurement{f': {reasons}' if reasons else ''}.",
            remedy="chipwise run WORKLOAD.yaml makes one; a command alone is not predicted.",
        )
    else:
        _show(result, result.overall)


def _show(result: Accuracy, overall: Period) -> None:
    from chipwise.cli import text
    from chipwise.text import percent
    from chipwise.views.accuracy import coverage_words, drift_words, reason_words

    error = f"median error {percent(overall.error)} of what was measured"
    text.show_title(f"{text.plural(overall.runs, 'run')}: {_pace(overall.speed)}, {error}")
    columns = [
        text.Column("job", flexible=True),
        text.Column("ended"),
        text.Column("of"),
        *(text.Column(name, True) for name in ("predicted", "(from", "to)", "measured", "ratio")),
        text.Column("inside"),
    ]
    text.show_table(columns, [_cells(run) for run in result.runs[:LISTED]])
    if len(result.runs) > LISTED:
        text.say(f"{len(result.runs) - LISTED:,} earlier runs are not shown: --csv has all.")
    text.show_lines("")
    text.show_pairs([("inside the interval", coverage_words(overall.coverage)), *_trend(result)])
    for drift in result.drifts:
        text.show_lines("", drift_words(drift))
    if result.unpredicted:
        text.say(f"Not compared: {reason_words(result.reasons)}.")


def _pace(speed: float) -> str:
    return "as fast as predicted" if abs(speed - 1.0) < 0.005 else f"{speed:.2f} times the predicted speed"


def _trend(result: Accuracy) -> list[tuple[str, str]]:
    from chipwise.text import percent
    from chipwise.views.accuracy import moment

    pairs: list[tuple[str, str]] = []
    for period in result.periods:
        coverage = f", {period.coverage.inside} of {period.coverage.runs} inside" if period.coverage is not None else ""
        days = f"{moment(period.first)[:10]} to {moment(period.last)[:10]}"
        pairs.append(("" if pairs else "trend", f"{days}: {_pace(period.speed)}, error {percent(period.error)}{coverage}"))
    return pairs


def _cells(run: MeasuredRun) -> list[str]:
    from chipwise.cli.text import number
    from chipwise.views.accuracy import moment

    figure = run.figure
    assert figure is not None
    unit = {"throughput": f"{figure.unit}/s", "steps_per_s": "steps/s", "seconds": "s"}[figure.name]
    inside = {True: "yes", False: "no", None: "-"}[figure.inside]
    values = [number(value) for value in (figure.predicted, figure.low, figure.high, figure.measured)]
    return [run.job.id, moment(run.ended)[:10], unit, *values, f"{figure.ratio:.2f}", inside]
