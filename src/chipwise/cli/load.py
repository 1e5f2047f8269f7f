"""`chipwise load`: requests at a rate that does not wait for answers, and how fast a service answers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from chipwise.cli.options import CatalogName, HtmlReport, reporting
from chipwise.cli.parameter_types import AboveZero, Amount, Duration, WholeNumber

ARRIVALS = click.Choice(["constant", "poisson", "bursty"])
APIS = click.Choice(["chat", "completions", "generate"])
METRIC_ROWS = (("ttft", "ttft_s", "first token"), ("tpot", "tpot_s", "per token"), ("latency", "latency_s", "whole answer"))
PERCENTILES = ("p50", "p90", "p95", "p99")
MOST_DELAY_S = 0.001  # from due to sent; above, the machine that sends is too busy


@click.command()
@click.argument("target", metavar="URL|WORKLOAD.yaml")
@click.option("--url", default=None, help="With a workload file: the address. http://127.0.0.1:8000 unless given.")
@click.option("--environment", "-e", default=None, help="Use this environment of the file: prod.")
@click.option("--rate", type=AboveZero(1e6), default=None, help="Requests per second; 1 unless the file says.")
@click.option("--for", "duration", type=Duration(), default=None, help="How long requests come; 30s, or the whole trace.")
@click.option("--warm-up", type=Duration(), default=None, help="Do not count requests of this first time.")
@click.option("--arrivals", type=ARRIVALS, default=None, help="How requests follow one another; poisson unless given.")
@click.option("--burstiness", type=AboveZero(100), default=None, help="Coefficient of variation of the gaps; 1 is Poisson.")
@click.option("--trace", type=click.Path(path_type=Path), default=None, help="Replay arrivals and lengths of this CSV file.")
@click.option("--speed", type=AboveZero(), default=None, help="Replay the trace so many times as fast.")
@click.option("--input", type=WholeNumber(), default=None, help="Tokens of a prompt, about; 256 unless given.")
@click.option("--output", type=WholeNumber(), default=None, help="Tokens of an answer at most; 128 unless given.")
@click.option("--model", default=None, help="The model that requests name.")
@click.option("--api", type=APIS, default=None, help="OpenAI's chat or completions, or TGI's generate; chat unless given.")
@click.option("--stream/--no-stream", default=True, help="Streamed answers, or whole ones.")
@click.option("--key-variable", metavar="NAME", default=None, help="Environment variable that holds the API key.")
@click.option("--ttft", type=Duration(), default=None, help="Goal for the first token, such as 800ms.")
@click.option("--tpot", type=Duration(), default=None, help="Goal for each further token.")
@click.option("--latency", type=Duration(), default=None, help="Goal for the whole answer.")
@click.option("--percentile", type=AboveZero(100), default=None, help="Share of requests in % that must keep them; 95.")
@click.option("--connections", type=WholeNumber(1, 60_000), default=None, help="Most at once; 4096 unless given.")
@click.option("--seed", type=WholeNumber(0), default=None, help="For arrivals and lengths drawn at random; 1.")
@click.option("--usd-per-hour", type=Amount(), default=None, help="Price of the service, for the cost of tokens.")
@click.option("--search", is_flag=True, help="Find the highest rate that keeps the goals.")
@click.option(
    "--on", "chip", metavar="CHIP", type=CatalogName("chip"), default=None, help="Compare with the prediction for this chip."
)
@click.option("--replicas", type=WholeNumber(), default=None, help="Copies of the model, for the prediction.")
@click.option("--json", "as_json", is_flag=True, help="JSON, everything.")
@reporting()
@click.pass_context
def load(ctx: click.Context, /, target: str, trace: Path | None, as_json: bool, report: HtmlReport, **settings: Any) -> None:
    """Send requests to a service at a rate that does not wait for its answers, and measure them.

    Times count from the instant at which a request was due, so waiting counts in full. The first token is the first event with
    content. Percentiles have 95% intervals where there are enough requests. A request that failed has missed every goal. A
    workload file gives rate, lengths and goals; options win over it. Prompts are random words. --search lengthens its trials
    until they have enough requests, to 10 minutes at most, unless --for is given.

    Exits with 1 if a goal is missed or requests fail.

    \b
    Examples:
      chipwise load http://127.0.0.1:8000 --rate 20 --for 60s --input 500 --output 100
      chipwise load workload.yaml --url http://127.0.0.1:8000 --on h100
      chipwise load http://127.0.0.1:8000 --search --ttft 500ms --tpot 40ms --html load.html
      chipwise load http://127.0.0.1:8000 --trace arrivals.csv --speed 10
    """
    from chipwise.api.measure.load import LoadOptions, is_workload, measured
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.progress import progress
    from chipwise.views.load_result import result_view

    options = LoadOptions(trace=None if trace is None else str(trace), **settings)
    report.check(target if is_workload(target) else None)
    with progress("load") as progress_of:
        result = measured(open_session(), target, options, progress_of)
    view = result_view(result)
    if report.path is not None:
        from chipwise.api.report import write_load

        write_load(result, report.path, force=report.force)
    if as_json:
        text.show_json(view)
    else:
        show(view)
    report.say_written()
    ctx.exit(0 if view["within_goals"] is not False and not view["errors"] else 1)


def show(view: dict[str, Any]) -> None:
    from chipwise.cli import text

    rate = "as the trace has them" if view["rate_per_s"] is None else f"{text.number(view['rate_per_s'])}/s, {view['arrivals']}"
    text.show_title(f"{view['url']}: requests {rate}, for {text.number(view['seconds'])} s")
    errors = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in view["errors"].items()) or "no errors"
    good = f", {text.number(view['good_per_s'])}/s within the goals" if view["goals"] else ""
    pairs = [
        ("requests", f"{view['requests']:,}, of which {view['answered']:,} answered; {errors}"),
        ("rate", f"{text.number(view['answered_per_s'])}/s answered{good}"),
        ("tokens/s out", text.number(view["tokens_per_s"])),
    ]
    if view["usd_per_million_tokens"] is not None:
        pairs.append(("cost", f"${text.money(view['usd_per_million_tokens'])} per million tokens out"))
    if view["lateness_s"] is not None:
        pairs.append(("own delay", f"p99 {text.number(1e3 * view['lateness_s']['p99'], 3)} ms from due to sent"))
    text.show_pairs(pairs)
    _show_percentiles(view)
    _show_trials(view)
    if view["goals"]:
        text.show_lines("")
    for goal in view["goals"]:
        text.show_lines(_goal_words(goal))
    if view["lateness_s"] is not None and view["lateness_s"]["p99"] > MOST_DELAY_S:
        text.say("This machine was busy: it sent some requests late, and all times include that delay.")


def _goal_words(goal: dict[str, Any]) -> str:
    from chipwise.cli import text
    from chipwise.text import duration, percent

    label = next(label for metric, _, label in METRIC_ROWS if metric == goal["metric"])
    name = f"The goal for p{100 * goal['share']:g} of {label}"
    if not goal["requests"]:
        return f"{name} was not tested: no answer has several tokens."
    verdict = f"{name} {'holds' if goal['holds'] else 'is missed'}"
    if goal["sure"]:
        return f"{verdict}: {percent(goal['kept_share'])} of requests are within {duration(goal['limit_s'])}."
    count = text.plural(goal["requests"], "request")
    return f"{verdict} in this test, but {count} cannot tell: {goal['needed_requests']:,} are needed."


def _show_percentiles(view: dict[str, Any]) -> None:
    from chipwise.cli import text

    predicted, percentile = view["predicted"], view["percentile"]
    names = [*PERCENTILES, *(() if percentile in PERCENTILES else (percentile,))]
    columns = [
        text.Column("ms"),
        *(text.Column(name, right=True) for name in names),
        text.Column(f"{percentile} between", right=True),
    ]
    if predicted is not None:
        columns.append(text.Column(f"{percentile} predicted", right=True))
    rows = []
    for metric, key, label in METRIC_ROWS:
        values = view[key]
        if values is None:
            continue
        row = [label, *(text.number(1e3 * values[name], 3) for name in names)]
        ends = values["intervals"].get(percentile)
        row.append("-" if ends is None else " to ".join(text.number(1e3 * end, 3) for end in ends))
        if predicted is not None:
            expected = predicted.get(metric, {}).get(percentile)
            row.append("-" if expected is None else text.number(1e3 * expected, 3))
        rows.append(row)
    if rows:
        text.show_lines("")
        text.show_table(columns, rows)


def _show_trials(view: dict[str, Any]) -> None:
    from chipwise.cli import text

    if not view["trials"]:
        return
    percentile = view["percentile"]
    names = ("requests/s", "requests", f"first token {percentile} ms", f"per token {percentile} ms", "errors")
    columns = [text.Column(name, right=True) for name in names]
    rows = [
        [
            text.number(trial["rate_per_s"]),
            f"{trial['requests']:,}",
            *("-" if trial[key] is None else text.number(1e3 * trial[key][percentile], 3) for key in ("ttft_s", "tpot_s")),
            f"{sum(trial['errors'].values()):,}",
        ]
        for trial in sorted(view["trials"], key=lambda trial: trial["rate_per_s"])
    ]
    text.show_lines("", "rates that were tried")
    text.show_table(columns, rows)
    text.show_lines("", _highest_words(view))


def _highest_words(view: dict[str, Any]) -> str:
    from chipwise.cli import text

    best, failed = view["highest_rate_per_s"]
    if best is None:
        return f"No rate that was tried keeps the goals; the lowest is {text.number(failed)} requests/s."
    above = "no higher rate was tried" if failed is None else f"{text.number(failed)} requests/s do not"
    if all(goal["sure"] for goal in view["goals"]):
        return f"{text.number(best)} requests/s keep the goals; {above}."
    return f"{text.number(best)} requests/s kept the goals in too few requests to be sure; {above}."
