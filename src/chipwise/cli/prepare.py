"""`chipwise prepare`: what an account needs before the first machine."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.option("--engine", default="ec2", show_default=True, help="Set up this engine of engines.yaml.")
@click.option("--region", default=None, help="Start machines here, unless engines.yaml says.")
@click.option("--keep", default=None, metavar="s3://...", help="Store job specs, logs and checkpoints here.")
@click.option("--dry-run", is_flag=True, help="List what is missing; create nothing.")
@click.option("--policy", is_flag=True, help="Print the IAM policy for people who run jobs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def prepare(ctx: click.Context, /, engine: str, dry_run: bool, policy: bool, as_json: bool, **options: Any) -> None:
    """Set up an account before the first job: bucket, roles, security group, event queue.

    A second run creates only what is missing. It needs permissions that people who
    run jobs do not need.

    \b
    Examples:
      chipwise prepare --region eu-west-1 --keep s3://my-bucket/chipwise --dry-run
      chipwise prepare --policy > policy.json
    """
    from chipwise.api.running import preparing
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    options = {name: value for name, value in options.items() if value}
    result = preparing.prepare(open_session(), engine, options, dry_run=dry_run or policy)
    if policy:
        text.show_json(result.policy)
        return
    if as_json:
        parts = [{"state": state, "kind": kind, "name": name} for state, kind, name in result.parts]
        text.show_json(
            {
                "parts": parts,
                "engine": {engine: result.fields},
                "complete": result.complete,
                "warnings": list(result.warnings),
            }
        )
    else:
        text.show_table(
            [text.Column("state"), text.Column("what"), text.Column("name", flexible=True)], list(map(list, result.parts))
        )
        if not dry_run:
            import textwrap

            import yaml

            text.show_lines("", "engines.yaml of your config directory should say:", "")
            text.show_lines(
                *(f"# {line}" for line in textwrap.wrap(result.reason, text.width() - 2))
            )  # a comment, however folded
            text.show_lines(*yaml.safe_dump({engine: dict(result.fields)}, sort_keys=False).splitlines())
        text.say(*result.warnings)
    ctx.exit(0 if result.complete else 1)
