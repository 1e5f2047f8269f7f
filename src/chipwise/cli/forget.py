"""`chipwise forget`: room on the disk, and jobs that the record cannot read any more."""

from __future__ import annotations

import click

from chipwise.cli.parameter_types import Duration


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
    are listed as failed. What they left on this machine stays until it is forgotten. What belongs to another machine or to
    another system user is named, and is ended by the controller of its place.
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
    results = forgetting.forget(open_session(), jobs, older_than, checkpoints=checkpoints, dry_run=dry_run)
    verb = "would be forgotten" if dry_run else "forgotten"
    for result in results:
        note = f"; its checkpoints ({size_text(result.kept)}) stay, since {_goes_on(result.phase)}" if result.kept else ""
        outcome = f"left alone: {result.left}" if result.left else f"{verb}: {size_text(result.bytes)}"
        click.echo(f"{result.id} {outcome}{note}")
    removed = [one for one in results if not one.left]
    if len(results) != 1:  # of one alone, its line says it all
        text.say(f"{text.plural(len(removed), 'job')} {verb}, {size_text(sum(one.bytes for one in removed))}")
    if resumable := [one for one in results if one.kept]:
        size = size_text(sum(one.kept for one in resumable))
        text.say(f"Checkpoints of {text.plural(len(resumable), 'job')} stay, {size}; --checkpoints removes them too.")


def _goes_on(phase: str) -> str:
    if phase == "failed":
        return "it failed, and `chipwise retry` continues from them"
    return "it was stopped and can be resumed"


def _give_up(jobs: tuple[str, ...], dry_run: bool) -> None:
    from chipwise.api.running import giving_up
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    for result in giving_up.give_up(open_session(), jobs, dry_run=dry_run):
        outcome = result.instead or f"{'would be given up' if dry_run else 'given up'}: {result.damaged.sentence}"
        click.echo(f"{result.damaged.id} {outcome}")
        if result.left and not result.instead:
            text.say(f"{result.damaged.id}: {result.left}.")
