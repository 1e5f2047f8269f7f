"""`chipwise resume`."""

from __future__ import annotations

import click


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
def resume(jobs: tuple[str, ...]) -> None:
    """Go on with jobs that were stopped, from their newest checkpoint.

    JOB is an id, the beginning of one, or the name of the newest that is called so. The name of a pipeline stands for all
    stages of its newest run that were stopped or failed, in their order.
    """
    from chipwise.api.running import asking
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.runner.job import Wish

    session = open_session()
    ids = asking.ask(session, jobs, Wish.RUN)
    for id in ids:
        text.say(f"{id} continues")
