"""`chipwise simulate`: policies on traces, before they are trusted with money."""

from __future__ import annotations

import math
from pathlib import Path

import click

from chipwise.cli.parameter_types import AboveZero, WholeNumber
from chipwise.cli.simulate_queue import queue


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

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from chipwise.errors import BadInput
        from chipwise.units import parse_seconds

        seconds = parse_seconds(str(value))
        if seconds <= 0:
            raise BadInput(f"--tick: {str(value)[:40]!r} is not possible.", remedy="Allowed: times above zero, such as 600s.")
        return seconds


@click.group()
def simulate() -> None:
    """Compare policies on traces: what each would have cost, against the best possible."""


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
@click.option("--tick", type=Tick(), default=None, help="Time between flags, if the files do not say it (600s).")
@click.option("--available-is", type=click.Choice(["0", "1"]), default=None, help="Flag that means available. [default: 1]")
@click.option("--windows", type=WholeNumber(1, 10**5), default=1, show_default=True, help="Evenly spaced starts per series.")
@click.option("--job-hours", type=AboveZero(1e5), default=48.0, show_default=True, help="Work, in hours.")
@click.option("--deadline-hours", type=HoursList(), default="52,70", show_default=True, help="Time until the deadline.")
@click.option(
    "--restart-hours", type=HoursList(zero=True), default="0.02,0.05,0.1", show_default=True, help="Time that each start takes."
)
@click.option("--spot-price", type=AboveZero(1e6), default=0.9731, show_default=True, help="USD per hour.")
@click.option("--on-demand-price", type=AboveZero(1e6), default=3.06, show_default=True, help="USD per hour.")
@click.option("--seed", type=WholeNumber(0, 10**9), default=0, help="Seed the random numbers of --synthetic.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def spot(
    trace: Path | None,
    synthetic: str | None,
    policy: str,
    tick: float | None,
    available_is: str | None,
    windows: int,
    job_hours: float,
    deadline_hours: tuple[float, ...],
    restart_hours: tuple[float, ...],
    spot_price: float,
    on_demand_price: float,
    seed: int,
    as_json: bool,
) -> None:
    """Run a job with a deadline on spot machines, by several policies.

    Every series, deadline and restart time is combined with each other. The bound is the cost of a planner that knows the
    whole trace. No policy may be late: the simulator orders on-demand machines in time.

    \b
    Examples:
      chipwise simulate spot --synthetic series=50 --job-hours 20 --deadline-hours 30
      chipwise simulate spot --trace traces/ --tick 600s --available-is 0 --policy greedy,mine.py
    """
    from dataclasses import asdict

    from chipwise.api.policies import SpotQuestion, simulate_spot
    from chipwise.cli import text
    from chipwise.cli.progress import progress

    question = SpotQuestion(
        policies=tuple(dict.fromkeys(filter(None, (name.strip() for name in policy.split(","))))),
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
    with progress("Simulating") as report:
        answers = simulate_spot(question, report)
    if as_json:
        text.show_json([asdict(answer) for answer in answers])
        return
    columns = [
        text.Column("policy"),
        *(text.Column(name, right=True) for name in ("scenarios", "mean cost", "late", "to bound")),
    ]
    rows = [
        [answer.policy, f"{answer.scenarios:,}", f"${answer.mean_usd:,.2f}", str(answer.late), f"{answer.ratio_to_bound:.3f}x"]
        for answer in answers
    ]
    text.show_table(columns, rows)
