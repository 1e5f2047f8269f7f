"""`chipwise forget`: room on the disk."""

from __future__ import annotations

import click

from chipwise.cli.options import Duration


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@click.option("--older-than", type=Duration(), default=None, help="Only those that ended so long ago, such as 30d.")
@click.option("--checkpoints", is_flag=True, help="Also those of stopped jobs, which can then not go on.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
def forget(jobs: tuple[str, ...], older_than: float | None, checkpoints: bool, dry_run: bool) -> None:
    """Remove logs, checkpoints and folders of jobs that are over from this machine.

    JOB is an id, the beginning of one, or the name of the newest that is called so; without any, all jobs that ended longer ago
    than --older-than are meant. Jobs that are not over are left alone. A stopped job can go on, so its checkpoints stay unless
    it is named or --checkpoints is given. Checkpoints that a job keeps elsewhere (run --checkpoints) are not touched, and the
    record still lists the job: costs and hours are reckoned from it.
    """
    from chipwise.api.running import forgetting
    from chipwise.api.wiring import open_session
    from chipwise.cli import text
    from chipwise.units import show_bytes

    found = forgetting.forget(open_session(), jobs, older_than, checkpoints=checkpoints, dry_run=dry_run)
    what = "would be forgotten" if dry_run else "forgotten"
    for one in found:
        kept = f"; its checkpoints ({show_bytes(one.kept)}) stay, since it was stopped and can go on" if one.kept else ""
        done = f"left alone: {one.left}" if one.left else f"{what}: {show_bytes(one.bytes)}"
        click.echo(f"{one.id} {done}{kept}")
    gone = [one for one in found if not one.left]
    text.say(f"{text.plural(len(gone), 'job')} {what}, {show_bytes(sum(one.bytes for one in gone))}")
