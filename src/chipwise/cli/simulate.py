"""`chipwise simulate`: policies on traces, before they are trusted with money."""

from __future__ import annotations

import math
from pathlib import Path

import click

from chipwise.cli.options import HtmlReport, reporting
from chipwise.cli.parameter_types import AboveZero, WholeNumber
from chipwise.cli.simulate_mixed import Figures, ReplicaOption, show_mixed
from chipwise.cli.simulate_queue import queue
from chipwise.cli.simulated import policy_names, show_answers
from chipwise.text import spent


class HoursList(click.ParamType[tuple[float, ...]]):
    """Numbers of hours at commas."""

    name = "hours,..."

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            hours = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            hours = (math.nan,)
        if not all(math.isfinite(number) and (number > 0 or (self.zero and number == 0)) for number in hours):
            from chipwise.errors import BadInput

            flag = param.opts[0] if param is not None else "value"
            range_text = "of zero or more" if self.zero else "above zero"
            raise BadInput(
                f"{flag}: {str(value)[:40]!r} is not possible.", remedy=f"Allowed: hours {range_text}, such as 0.5 or 52,70."
            )
        return hours


class Tick(click.ParamType[float]):
    """Seconds, from text such as 600s or 10min."""

    name = "duration"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from chipwise.errors import BadInput
        from chipwise.units import parse_seconds

        seconds = parse_seconds(str(value))
        if seconds < 0 or (seconds == 0 and not self.zero):
            flag, above = param.opts[0] if param is not None else "value", "of zero or more" if self.zero else "above zero"
            raise BadInput(f"{flag}: {str(value)[:40]!r} is not possible.", remedy=f"Allowed: times {above}, such as 600s.")
        return seconds


class StepTimes(click.ParamType[tuple[float, float]]):
    """Two times, the shorter first."""

    name = "duration,duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        from chipwise.errors import BadInput
        from chipwise.units import parse_seconds

        times = [parse_seconds(part) for part in str(value).split(",")]
        if len(times) != 2 or not 0.0 < times[0] <= times[1]:
            raise BadInput(f"--step: {str(value)[:40]!r} is not possible.", remedy="Write two times, such as 7ms,40ms.")
        return times[0], times[1]


@click.group()
def simulate() -> None:
    """Compare policies on traces: what each would have cost, against the best that was possible."""


simulate.add_command(queue)


@simulate.command()
@click.option("--trace", type=click.Path(path_type=Path), default=None, help="Trace file, or folder of them: a flag per tick.")
@click.option("--synthetic", default=None, metavar="SETTINGS", help="Invent series, for example series=100,losses=1,returns=1.")
@click.option(
    "--policy",
    default="greedy,slack,uniform-progress,learned-survival",
    show_default=True,
    metavar="NAME,...",
    help="Policies, or Python files that define decide(state).",
)
@click.option("--tick", type=Tick(), default=None, help="Time between flags, where the files do not say it; for example 600s.")
@click.option("--available-is", type=click.Choice(["0", "1"]), default=None, help="Flag that means available. [default: 1]")
@click.option("--windows", type=WholeNumber(1, 10**5), default=1, show_default=True, help="Evenly spaced starts per series.")
@click.option("--job-hours", type=AboveZero(1e5), default=None, help="Work, in hours. [default: 48; less for short traces]")
@click.option(
    "--deadline-hours",
    type=HoursList(),
    default=None,
    help="Time until the deadline. [default: 52,70; less for short traces]",
)
@click.option(
    "--restart-hours", type=HoursList(zero=True), default="0.02,0.05,0.1", show_default=True, help="Time that each start takes."
)
@click.option("--spot-price", type=AboveZero(1e6), default=0.9731, show_default=True, help="USD per hour.")
@click.option("--on-demand-price", type=AboveZero(1e6), default=3.06, show_default=True, help="USD per hour.")
@click.option("--seed", type=WholeNumber(0, 10**9), default=0, help="Seed the random numbers of --synthetic.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reporting()
def spot(
    trace: Path | None,
    synthetic: str | None,
    policy: str,
    tick: float | None,
    available_is: str | None,
    windows: int,
    job_hours: float | None,
    deadline_hours: tuple[float, ...] | None,
    restart_hours: tuple[float, ...],
    spot_price: float,
    on_demand_price: float,
    seed: int,
    as_json: bool,
    report: HtmlReport,
) -> None:
    """Run a job with a deadline on spot machines, by several policies.

    Every series, deadline and restart time is combined with each other. The bound is the cost of a planner that knows the
    whole trace. No policy may be late: the simulator orders on-demand machines in time. Machines are billed in whole ticks: the
    time between two flags of the trace. Of a folder, what is no series or too short is left out.

    \b
    Examples:
      chipwise simulate spot --synthetic series=50 --job-hours 20 --deadline-hours 30
      chipwise simulate spot --trace traces/ --tick 600s --available-is 0 --policy greedy,mine.py
    """
    from dataclasses import asdict

    from chipwise.api import SpotQuestion, compare_spot
    from chipwise.cli import text
    from chipwise.cli.progress import progress

    report.check()
    question = SpotQuestion(
        policies=policy_names(policy),
        trace=trace,
        synthetic=synthetic,
        tick_s=tick,
        available_is=None if available_is is None else int(available_is),
        windows=windows,
        job_hours=job_hours,
        deadline_hours=deadline_hours,
        restart_hours=restart_hours,
        spot_price=spot_price,
        on_demand_price=on_demand_price,
        seed=seed,
    )
    with progress("Simulating") as follow:
        comparison = compare_spot(question, follow)
    if report.path is not None:
        from chipwise.api.report import write_spot

        write_spot(comparison, report.path, force=report.force)
    for note in comparison.notes:
        click.echo(note, err=True)
    answers = comparison.answers
    if as_json:
        text.show_json([asdict(answer) for answer in answers])
        return
    rows = [
        [answer.policy, f"{answer.scenarios:,}", spent(answer.mean_usd), str(answer.late), f"{answer.ratio_to_bound:.3f}x"]
        for answer in answers
    ]
    show_answers(("scenarios", "mean cost", "late", "to bound"), rows)
    report.say_written()


@simulate.command()
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    default=None,
    help="Load as CSV (timestamp, input and output tokens; or requests per interval), JSON lines, or a folder of them.",
)
@click.option("--synthetic", default=None, metavar="SETTINGS", help="Invent a load, for example hours=24,rate=50,swing=0.5.")
@click.option(
    "--policy",
    default="hpa,queue-depth,knative,keda,target-tracking,seasonal,learned-headroom",
    show_default=True,
    metavar="NAME,...",
    help="Policies (hpa:80 for a target of 80%), bare-work, clairvoyant, or Python files that define decide(signals).",
)
@click.option(
    "--replica-rate", type=AboveZero(1e9), default=None, help="Requests per second of a busy replica. [default: mean load / 20]"
)
@click.option(
    "--concurrency", type=AboveZero(1e6), default=16.0, show_default=True, help="Requests that a replica works on at once."
)
@click.option("--cold-start", type=Tick(zero=True), default="180s", show_default=True, help="Time until a new replica answers.")
@click.option("--wait", type=Tick(zero=True), default="10s", show_default=True, help="Goal: a request waits at most so long.")
@click.option("--share", type=AboveZero(0.99999), default=0.99, show_default=True, help="Goal: share of requests that do.")
@click.option(
    "--input-weight", type=AboveZero(1e3), default=0.25, show_default=True, help="Work of an input token; an output token is 1."
)
@click.option(
    "--level",
    type=click.Choice(["pooled", "servers", "tokens"]),
    default="pooled",
    show_default=True,
    help="Replicas as one fast server, as servers with one request each, or with continuous batching of tokens.",
)
@click.option(
    "--step", type=StepTimes(), default="6.6ms,41.2ms", show_default=True, help="For tokens: a step of 1 and of all slots."
)
@click.option("--slots", type=WholeNumber(1, 10**5), default=256, show_default=True, help="For tokens: sequences at once.")
@click.option(
    "--prompt-rate", type=AboveZero(1e9), default=19_000.0, show_default=True, help="For tokens: prompt tokens per second."
)
@click.option("--kv-tokens", type=WholeNumber(1, 10**10), default=400_000, show_default=True, help="For tokens: KV memory.")
@click.option(
    "--machine",
    "machines",
    type=ReplicaOption(),
    multiple=True,
    help="Machine type of a replica, requests per second and prices an hour; repeat for several. Costs are then in dollars.",
)
@click.option(
    "--spot", default=None, metavar="PATH|SETTINGS", help="When zones have spot machines: traces, or series=3,losses=1."
)
@click.option("--tick", type=Tick(), default=None, help="Of --spot: time between flags, where the files do not say it.")
@click.option("--available-is", type=click.Choice(["0", "1"]), default=None, help="Of --spot: flag that means available.")
@click.option(
    "--purchase",
    default=None,
    metavar="NAME,...",
    help="Which machines are bought: on-demand-fleet, spot-fleet, spot-hedge (:20 spares 20%), spot-spread. [default: all]",
)
@click.option("--gaps", is_flag=True, help="Accept traces with long pauses.")
@click.option("--seed", type=WholeNumber(0, 10**9), default=0, help="Seed the random numbers of loads that are given as rates.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reporting()
def serve(
    trace: Path | None,
    synthetic: str | None,
    policy: str,
    replica_rate: float | None,
    concurrency: float,
    cold_start: float,
    wait: float,
    share: float,
    input_weight: float,
    level: str,
    step: tuple[float, float],
    slots: int,
    prompt_rate: float,
    kv_tokens: int,
    machines: tuple[Figures, ...],
    spot: str | None,
    tick: float | None,
    available_is: str | None,
    purchase: str | None,
    gaps: bool,
    seed: int,
    as_json: bool,
    report: HtmlReport,
) -> None:
    """Scale a service by several policies: who waits, and what it costs.

    Replicas answer requests in the order of arrival. On the levels pooled and servers they have one queue; on the level
    tokens each request goes to the next replica in turn. A replica is paid for from its order on, and answers after its
    cold start. The bound, clairvoyant, is a plan that knows the whole load. It counts work in seconds for pooled
    replicas so that nobody waits longer than the goal; replayed request by request, a few do. A policy may cost less
    if it lets more wait.

    \b
    Examples:
      chipwise simulate serve --synthetic hours=6,rate=20 --policy hpa:60,hpa:80,learned-headroom
      chipwise simulate serve --trace requests.csv --replica-rate 1.5 --policy hpa,mine.py --html report.html
      chipwise simulate serve --trace requests.csv --machine l4=1,0.7,0.28 --machine h100=9,7.2,2.8 --spot zones/
    """
    from dataclasses import asdict

    from chipwise.api import ServeQuestion, simulate_serve
    from chipwise.cli import text
    from chipwise.cli.progress import progress

    report.check()
    question = ServeQuestion(
        policies=policy_names(policy),
        trace=trace,
        synthetic=synthetic,
        replica_rate=replica_rate,
        concurrency=concurrency,
        cold_start_s=cold_start,
        wait_s=wait,
        share=share,
        input_weight=input_weight,
        level=level,
        step_s=step,
        slots=slots,
        prompt_tokens_per_s=prompt_rate,
        kv_tokens=kv_tokens,
        gaps=gaps,
        seed=seed,
    )
    if machines or spot or purchase:
        show_mixed(question, machines, spot, purchase, report, as_json, tick, available_is)
        return
    with progress("Simulating") as follow:
        answers, timelines = simulate_serve(question, follow)
    if report.path is not None:
        from chipwise.api.report import write_scaling

        write_scaling(answers, timelines, report.path, share, force=report.force)
    if as_json:
        text.show_json([asdict(answer) for answer in answers])
        return
    rows = [
        [
            answer.policy,
            f"{answer.requests:,}",
            "" if answer.within_goal is None else f"{answer.within_goal:.2%}",
            f"{answer.replica_hours:,.1f}",
            f"{answer.ratio_to_bound:.3f}x",
        ]
        for answer in answers
    ]
    show_answers(("requests", f"within {wait:g} s", "replica-hours", "to bound"), rows)
    report.say_written()
