"""`chipwise stop`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--now", is_flag=True, help="Kill at once; work since a checkpoint is lost.")
@click.option("--wait", is_flag=True, help="Return when the jobs have ended.")
def stop(jobs: tuple[str, ...], now: bool, wait: bool) -> None:
    """Ask jobs to save and exit, and kill them after their grace period.

    JOB is an id, the beginning of an id, or a name (the newest unfinished job of that name). The name of a pipeline selects all
    unfinished stages, of the newest run that has any.
    """
    from chipwise.api.running import asking
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.runner.job import Wish

    session = open_session()
    ids, damaged = asking.ask_readable(session, jobs, Wish.END if now else Wish.STOP)
    silences = asking.silences(session, ids)
    for id in ids:
        silence = f"; {silences[id]}" if id in silences else ""
        text.say(f"{id} asked to {'be killed at once' if now else 'stop'}{silence}")
    for error in damaged[1:]:
        text.say(str(error))
    if damaged:
        raise damaged[0]

    if wait:
        for id in ids:
            text.say(f"{id} {_final_phase(session, id)}")


def _final_phase(session: Session, id: str) -> str:
    import time

    from chipwise.api.running import asking

    with asking.opened(session) as runtime:
        while not (job := runtime.job(id)).phase.over:
            time.sleep(0.1)
    return str(job.phase)
