"""`chipwise reap`: what is left over at clusters and clouds."""

from __future__ import annotations

from dataclasses import asdict

import click

from chipwise.cli.options import CatalogName, Listing, reached


@click.command()
@click.option(
    "--engine",
    cls=Listing,
    names=reached,
    type=CatalogName("engine"),
    default=None,
    help="Check only this engine ({names}); default: all that your jobs used.",
)
@click.option("--dry-run", is_flag=True, help="List what would be deleted; delete nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def reap(ctx: click.Context, /, engine: str | None, dry_run: bool, as_json: bool) -> None:
    """Delete machines and Kubernetes objects that belong to no live job.

    Searches clusters and accounts for resources that are tagged with this database. Resources of other databases are not
    touched.

    \b
    Examples:
      chipwise reap --dry-run
      chipwise reap --engine ec2
    """
    from chipwise.api.running import reaping
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    result = reaping.reap(open_session(), engine, dry_run=dry_run)
    leftovers = result.left
    for reason in result.not_reached:
        text.say(f"Not checked: {reason}")
    if as_json:
        text.show_json([asdict(one) for one in leftovers])
    elif leftovers:
        columns = [*map(text.Column, ("what", "name", "type", "region", "job")), text.Column("place", flexible=True)]
        text.show_table(columns, [[one.kind, one.name, one.type, one.region, one.job, one.place] for one in leftovers])
        text.say(f"{text.plural(len(leftovers), 'thing')} {'would be' if dry_run else 'were'} ended.")
    elif not result.not_reached:
        text.show_lines("No leftovers.")
    ctx.exit(3 if result.not_reached else 0)
