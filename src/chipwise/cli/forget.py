"""`chipwise forget`: room on the disk, and jobs that the record cannot read any more."""

from __future__ import annotations

import click

from chipwise.cli.parameter_types import Duration


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@click.option("--older-than", type=Duration(), default=None, help="Select jobs that ended at least this long ago: 30d.")
@click.option("--checkpoints", is_flag=True, help="Also delete checkpoints of failed and stopped jobs.")
@click.option("--damaged", is_flag=True, help="Give up damaged jobs: kill them, mark them failed.")
@click.option("--dry-run", is_flag=True, help="List what would be deleted; delete nothing.")
def forget(jobs: tuple[str, ...], older_than: float | None, checkpoints: bool, damaged: bool, dry_run: bool) -> None:
    """Delete logs, checkpoints and folders of finished jobs from this machine.

    JOB is an id, the beginning of an id, or a name (the newest job of that name). Without JOB, --older-than selects the jobs.
    Jobs that are not finished are skipped. A failed or stopped job can be resumed, so its checkpoints are kept, unless it is
    named or --checkpoints is given. Checkpoints stored elsewhere (run --checkpoints) are not touched. The database still lists
    the job, with its cost and hours.

    With --damaged the named jobs, whose database rows are damaged, are given up instead: their processes are killed, and they
    are listed as failed. Their files stay until you forget them. Processes on another machine or of another system user are
    listed, and the controller of their place kills them.
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
