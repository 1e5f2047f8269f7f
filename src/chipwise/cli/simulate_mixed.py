"""`chipwise simulate serve` with machine types: what the machines of a service cost, on-demand and spot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chipwise.cli.options import HtmlReport
from chipwise.cli.simulated import policy_names, show_answers
from chipwise.text import spent

if TYPE_CHECKING:
    from chipwise.api import ServeQuestion


Figures = tuple[str, tuple[float, ...]]  # of a machine type: its name, requests per second and prices


class ReplicaOption(click.ParamType[Figures]):
    """A name, a speed and one or two prices."""

    name = "name=rate,usd[,spot_usd]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Figures:
        from chipwise.errors import BadInput
        from chipwise.units import parse_count

        name, equals, rest = str(value).rpartition("=")
        numbers = rest.split(",")
        if not name or not equals or len(numbers) not in (2, 3):
            raise BadInput(
                f"--machine: {str(value)[:60]!r} is not possible.",
                remedy="Write --machine NAME=RATE,USD,SPOT_USD: requests per second, and prices an hour.",
            )
        return name, tuple(float(parse_count(number.strip().removeprefix("$"))) for number in numbers)


def show_mixed(
    serve: ServeQuestion,
    machines: tuple[Figures, ...],
    spot: str | None,
    purchase: str | None,
    report: HtmlReport,
    as_json: bool,
    tick: float | None,
    available_is: str | None,
) -> None:
    from dataclasses import asdict

    from chipwise.api import mixed_question, simulate_mixed
    from chipwise.cli import text
    from chipwise.cli.progress import progress

    question = mixed_question(
        serve,
        machines,
        spot=spot,
        purchases=None if purchase is None else policy_names(purchase),
        tick_s=tick,
        available_is=None if available_is is None else int(available_is),
    )
    with progress("Simulating") as follow:
        answers, timelines = simulate_mixed(question, follow)
    if report.path is not None:
        from chipwise.api.report import write_mixed

        write_mixed(answers, timelines, report.path, serve.share, force=report.force)
    if as_json:
        text.show_json([asdict(answer) for answer in answers])
        return
    rows = [
        [
            answer.policy,
            answer.purchase,
            f"{answer.within_goal:.2%}",
            f"{answer.replica_hours:,.1f}",
            f"{answer.lost:,}",
            spent(answer.usd),
            f"{answer.ratio_to_bound:.3f}x",
        ]
        for answer in answers
    ]
    show_answers(("purchase", f"within {serve.wait_s:g} s", "hours", "lost", "cost", "to bound"), rows)
    text.say("The bound knows the whole load and buys what is cheapest at each moment.")
    report.say_written()
