"""`chipwise forget`: room on the disk, and jobs that the record cannot read any more."""

from __future__ import annotations

import click

from chipwise.cli.options import Duration


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@click.option("--older-than", type=Duration(), default=None, help="Only those that ended so long ago, such as 30d.")
@click.option("--checkpoints", is_flag=True, help="Also those of failed and stopped jobs, which can then not go on.")
@click.option("--damaged", is_flag=True, help="Give up jobs whose record is damaged: end what runs, and call them failed.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
def forget(jobs: tuple[str, ...], older_than: float | None, checkpoints: bool, damaged: bool, dry_run: bool) -> None:
    """Remove logs, checkpoints and folders of jobs that are over from this machine.

    JOB is an id, the beginning of one, or the name of the newest that is called so; without any, all jobs that ended longer ago
    than --older-than are meant. Jobs that are not over are left alone. A job that failed or was stopped can go on, so its
    checkpoints stay unless it is named or --checkpoints is given. Checkpoints that a job keeps elsewhere (run --checkpoints)
    are not touched, and the record still lists the job: costs and hours are computed from it.

    With --damaged the named jobs, whose record is damaged, are given up instead: what still runs of them is ended, and they
    are listed as failed. What they left on this machine stays until it is forgotten.
    """
    from chipwise.api.running import forgetting
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import BadInput
    from chipwise.text import size as size_text

    if damaged:
        if older_than is not None or checkpoints:
            raise BadInput(
                "--damaged cannot be combined with other options.", remedy="Name the jobs only; forget their files afterwards."
            )
        _give_up(jobs, dry_run)
        return
    found = forgetting.forget(open_session(), jobs, older_than, checkpoints=checkpoints, dry_run=dry_run)
    what = "would be forgotten" if dry_run else "forgotten"
    for one in found:
        kept = f"; its checkpoints ({size_text(one.kept)}) stay, since {_goes_on(one.phase)}" if one.kept else ""
        done = f"left alone: {one.left}" if one.left else f"{what}: {size_text(one.bytes)}"
        click.echo(f"{one.id} {done}{kept}")
    gone = [one for one in found if not one.left]
    if len(found) != 1:  # of one alone, its line says it all
        text.say(f"{text.plural(len(gone), 'job')} {what}, {size_text(sum(one.bytes for one in gone))}")
    if kept_of := [one for one in found if one.kept]:
        size = size_text(sum(one.kept for one in kept_of))
        text.say(f"Checkpoints of {text.plural(len(kept_of), 'job')} stay, {size}; --checkpoints removes them too.")


def _goes_on(phase: str) -> str:
    if phase == "failed":
        return "it failed, and `chipwise retry` continues from them"
    return "it was stopped and can be resumed"


def _give_up(jobs: tuple[str, ...], dry_run: bool) -> None:
    from chipwise.api.running import giving_up
    from chipwise.api.session.wiring import open_session

    for one in giving_up.give_up(open_session(), jobs, dry_run=dry_run):
        told = one.instead or f"{'would be given up' if dry_run else 'given up'}: {one.damaged.sentence}"
        click.echo(f"{one.damaged.id} {told}")
