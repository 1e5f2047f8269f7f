"""`chipwise forget`: room on the disk."""

from __future__ import annotations

import click

from chipwise.cli.options import Duration


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@click.option("--older-than", type=Duration(), default=None, help="Only those that ended so long ago, such as 30d.")
def forget(jobs: tuple[str, ...], older_than: float | None) -> None:
    """Remove logs, checkpoints and folders of jobs that are over from this machine.

    JOB is an id, the beginning of one, or the name of the newest that is called so; without any, all jobs that ended longer ago
    than --older-than are meant. Jobs that are not over are left alone. Checkpoints that a job keeps elsewhere (--checkpoints)
    are not touched, and the record still lists the job: costs and hours are reckoned from it.
    """
    from chipwise.api.running import forgetting
    from chipwise.api.wiring import open_session
    from chipwise.cli import text
    from chipwise.units import show_bytes

    found = forgetting.forget(open_session(), jobs, older_than)
    for one in found:
        click.echo(f"{one.id} left alone: {one.left}" if one.left else f"{one.id} forgotten: {show_bytes(one.bytes)}")
    gone = [one for one in found if not one.left]
    text.say(f"{text.plural(len(gone), 'job')} forgotten, {show_bytes(sum(one.bytes for one in gone))}")
