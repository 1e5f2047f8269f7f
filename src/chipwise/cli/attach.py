"""`chipwise attach`: watch a job as if it had been started here."""

from __future__ import annotations

import sys

import click

LINES = 10  # of what was printed before


@click.command()
@click.argument("job", metavar="JOB")
@click.pass_context
def attach(ctx: click.Context, job: str) -> None:
    """Show the last lines of a job's output, follow it, and exit with its exit code.

    Ctrl-C detaches: the job keeps running. For a stage of a pipeline, unfinished stages before it are followed first. A job has
    no standard input, so typed text does not reach it.
    """
    from chipwise.api.running import asking, jobs, stages, waiting
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.runner.job import Job

    with asking.opened(open_session()) as runtime:
        target = jobs.find(runtime.record, job)
        watched = waiting.Watched(runtime)

        def look() -> Job:
            seen = runtime.job(target.id)
            text.say(*watched.news(seen))
            return seen

        try:
            for chunk in stages.follow(runtime, look, LINES, tell=look):
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
        except KeyboardInterrupt:
            text.say(f"\n{target.id} keeps running; chipwise attach {target.id} follows it again.")
            return
        last = look()
        text.say(f"{last.id} {last.phase}{f': {last.reason}' if last.reason else ''}")
        ctx.exit(asking.exit_code(last))
