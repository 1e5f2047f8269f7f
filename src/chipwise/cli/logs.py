"""`chipwise logs`: what a job printed."""

from __future__ import annotations

import sys

import click

from chipwise.cli.parameter_types import WholeNumber


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--follow", "-f", is_flag=True, help="Follow the output until the job ends.")
@click.option("--attempt", type=WholeNumber(1, 10**6), default=None, help="Show one attempt only.")
@click.option("--rank", type=WholeNumber(0, 10**5), default=None, help="Show one machine or pod of several.")
@click.option("--tail", type=WholeNumber(0, 10**7), default=None, metavar="LINES", help="Show only the last lines.")
def logs(job: str, follow: bool, attempt: int | None, rank: int | None, tail: int | None) -> None:
    """Show the output of a job, all attempts in order.

    With -f on a stage of a pipeline, the output of the stages before it comes first, each under its name.
    """
    from chipwise.api.running import asking, following, jobs, stages
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import BadInput
    from chipwise.runner.job import Job

    with asking.opened(open_session()) as runtime:
        target = jobs.find(runtime.record, job)
        if attempt is not None and attempt > len(target.attempts):
            count = text.plural(len(target.attempts), "attempt") if target.attempts else "no attempt yet"
            raise BadInput(f"{target.id} has {count}.", remedy="Leave --attempt out.")
        following.check_rank(target, attempt, rank)
        out = sys.stdout.buffer

        def look() -> Job:
            return runtime.job(target.id)

        if not follow and tail is not None:
            out.write(following.tail_of(runtime, target, attempt, tail, rank))
        elif not follow:
            for chunk in following.printed_by(runtime, target, attempt, rank):
                out.write(chunk)
        else:
            try:
                for chunk in stages.follow(runtime, look, tail, rank):
                    out.write(chunk)
                    out.flush()
            except KeyboardInterrupt:
                pass
        out.flush()
