"""`chipwise retry`."""

from __future__ import annotations

import click


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
def retry(jobs: tuple[str, ...]) -> None:
    """Restart failed or stopped jobs, and reset their retry counter.

    JOB is an id, the beginning of an id, or a name (the newest job of that name). The name of a pipeline selects all stages of
    its newest run that failed or were stopped, in order.
    """
    from chipwise.api.running import asking
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.runner.job import Wish

    session = open_session()
    ids = asking.ask(session, jobs, Wish.RUN)
    for id in ids:
        text.say(f"{id} restarts")
