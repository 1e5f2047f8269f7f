"""`chipwise resume`."""

from __future__ import annotations

import click


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
def resume(jobs: tuple[str, ...]) -> None:
    """Continue stopped jobs from their newest checkpoint.

    JOB is an id, the beginning of an id, or a name (the newest job of that name). The name of a pipeline selects all stages of
    its newest run that were stopped or failed, in order.
    """
    from chipwise.api.running import asking
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.runner.job import Wish

    session = open_session()
    ids = asking.ask(session, jobs, Wish.RUN)
    for id in ids:
        text.say(f"{id} continues")
