"""`chipwise simulate queue`: policies of a queue on a trace of jobs."""

from __future__ import annotations

from pathlib import Path

import click

from chipwise.cli.options import HtmlReport, reporting
from chipwise.cli.parameter_types import AboveZero, WholeNumber
from chipwise.cli.simulated import policy_names, show_answers


class Span(click.ParamType[float]):
    """Seconds of zero or more, from text such as 60s or 30d."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from chipwise.units import parse_seconds

        return parse_seconds(str(value))


class Quota(click.ParamType[tuple[str, float]]):
    name = "team=gpus"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        from chipwise.errors import BadInput
        from chipwise.units import parse_count

        team, equals, gpus = str(value).rpartition("=")
        if not equals or not team:
            raise BadInput(f"--quota: {str(value)[:40]!r} is not possible.", remedy="Write --quota TEAM=GPUS.")
        return team, float(parse_count(gpus))


@click.command()
@click.option("--trace", type=click.Path(path_type=Path), default=None, help="CSV file of jobs, or folder of them.")
@click.option("--synthetic", default=None, metavar="SETTINGS", help="Invent jobs, for example jobs=2000,rate=60,teams=4.")
@click.option(
    "--policy",
    default="fifo,backfill,shortest-estimate,least-attained,fair-share",
    show_default=True,
    metavar="NAME,...",
    help="Policies, or Python files that define rank(job).",
)
@click.option(
    "--gpus", type=WholeNumber(1, 10**6), default=None, help="Size of the cluster. [default: as the trace, or 80% load]"
)
@click.option("--gpus-per-machine", type=WholeNumber(1, 1000), default=8, show_default=True)
@click.option(
    "--placement",
    type=click.Choice(["pack", "spread", "least-fragmentation", "pooled"]),
    default="pack",
    show_default=True,
    help="Which of the machines that would do is taken.",
)
@click.option("--restart", type=Span(), default="60s", show_default=True, help="Time that each further start of a job takes.")
@click.option("--checkpoint-every", type=Span(), default="0s", help="Work that a failure loses at most. [default: none]")
@click.option("--failures-every", type=Span(), default=None, help="Mean time between failures of a machine. [default: none]")
@click.option("--repair", type=Span(), default="1h", show_default=True, help="Time until a machine is back.")
@click.option("--estimate-error", type=float, default=0.0, help="Spread of estimates: 0.7 is a factor of 2. [default: exact]")
@click.option(
    "--deadline-factor", type=AboveZero(1e6), default=5.0, show_default=True, help="Deadlines, in durations of the job."
)
@click.option("--quota", type=Quota(), multiple=True, help="GPUs of a team; repeat for several.")
@click.option("--seed", type=WholeNumber(0, 10**9), default=0, help="Seed the random numbers.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reporting()
def queue(
    trace: Path | None,
    synthetic: str | None,
    policy: str,
    gpus: int | None,
    gpus_per_machine: int,
    placement: str,
    restart: float,
    checkpoint_every: float,
    failures_every: float | None,
    repair: float,
    estimate_error: float,
    deadline_factor: float,
    quota: tuple[tuple[str, float], ...],
    seed: int,
    as_json: bool,
    report: HtmlReport,
) -> None:
    """Run a trace of GPU jobs through a queue, by several policies.

    A trace is a CSV file with columns for the time of arrival, the number of GPUs and the duration in seconds, and where it
    has them the team, an estimate and a deadline. The bound is a mean completion time that no order of the jobs can fall below:
    as if all GPUs were one fast server, and no job faster than its own duration.

    \b
    Examples:
      chipwise simulate queue --synthetic jobs=500 --gpus 64
      chipwise simulate queue --trace jobs.csv --gpus 64 --policy fifo,backfill,mine.py
    """
    from dataclasses import asdict

    from chipwise.api import QueueQuestion, compare_queue
    from chipwise.cli import text
    from chipwise.cli.progress import progress
    from chipwise.text import duration, plural

    report.check()
    question = QueueQuestion(
        policies=policy_names(policy),
        trace=trace,
        synthetic=synthetic,
        gpus=gpus,
        gpus_per_machine=gpus_per_machine,
        placement=placement,
        restart_s=restart,
        checkpoint_s=checkpoint_every,
        failure_s=failures_every,
        repair_s=repair,
        estimate_error=estimate_error,
        deadline_factor=deadline_factor,
        quotas=dict(quota),
        seed=seed,
    )
    with progress("Simulating") as follow:
        comparison = compare_queue(question, follow, has_timelines=report.path is not None)
    answers = comparison.answers
    if report.path is not None:
        from chipwise.api.report import write_queue

        write_queue(comparison, report.path, force=report.force)
    if as_json:
        text.show_json([asdict(answer) for answer in answers])
        return
    rows = [
        [
            answer.policy,
            duration(answer.mean_jct_s),
            duration(answer.p99_jct_s),
            duration(answer.makespan_s),
            f"{answer.fairness:.2f}",
            f"{answer.utilisation:.0%}",
            f"{answer.preemptions:,}",
            f"{answer.late:,}",
            f"{answer.ratio_to_bound:.3f}x",
        ]
        for answer in answers
    ]
    show_answers(("mean", "p99", "makespan", "fair", "used", "preempted", "late", "to bound"), rows)
    text.say(f"{plural(answers[0].jobs, 'job')}; fair is Jain's index of the share of its time that each job worked.")
    report.say_written()
