"""`chipwise attach`: watch a job as if it had been started here."""

from __future__ import annotations

import sys

import click


@click.command()
@click.argument("job", metavar="JOB")
@click.pass_context
def attach(ctx: click.Context, job: str) -> None:
    """Follow a job's output from now on, and pass on its exit code. Ctrl-C leaves it running.

    A job has no standard input: what is typed here does not reach it.
    """
    from chipwise.api.running import asking, following, jobs
    from chipwise.api.wiring import open_session
    from chipwise.cli import text
    from chipwise.run.job import Job

    with asking.opened(open_session()) as held:
        found = jobs.find(held.record, job)
        sys.stdout.buffer.write(following.tail_of(held, found, len(found.attempts) or None, 10))
        sys.stdout.buffer.flush()

        def look() -> Job:
            return held.job(found.id)

        try:
            for chunk in following.follow_job(held, look, from_end=True):
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
        except KeyboardInterrupt:
            text.say(f"\n{found.id} goes on; chipwise attach {found.id} comes back to it.")
            return
        last = look()
        text.say(f"{last.id} {last.phase}{f': {last.reason}' if last.reason else ''}")
        ctx.exit(asking.exit_code(last))
