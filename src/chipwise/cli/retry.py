"""`chipwise retry`."""

from __future__ import annotations

import click


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
def retry(jobs: tuple[str, ...]) -> None:
    """Start jobs again that failed or were stopped, with a clean slate of tries.

    JOB is an id, the beginning of one, or the name of the newest that is called so. The name of a pipeline stands for all
    stages of its newest run that failed or were stopped, in their order.
    """
    from chipwise.api.running import asking
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.runner.job import Wish

    session = open_session()
    ids = asking.ask(session, jobs, Wish.RUN)
    for id in ids:
        text.say(f"{id} starts again")
