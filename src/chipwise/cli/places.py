"""`chipwise places`: who may run jobs at which place of a team's record."""

from __future__ import annotations

from dataclasses import asdict

import click

USER = click.option("--user", "login", default="", help="A login of the record.")
TEAM = click.option("--team", default="", help="Everybody of this team.")


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="The list as JSON.")
@click.pass_context
def places(ctx: click.Context, as_json: bool) -> None:
    """List where you may run jobs of a team's record, or let others run jobs at a place of yours.

    A place is a machine with a data directory, a cluster, or an account in a region; `chipwise describe JOB` shows its name.
    Its controller runs jobs as its own system user (or as run_as says), so nobody runs jobs there whom it was not opened to.

    \b
    Examples:
      chipwise places
      chipwise places allow local:gpu1:/srv/chipwise --team vision
      chipwise places allow local:gpu1:/srv/chipwise --user mia --secret hub/token
      chipwise places refuse local:gpu1:/srv/chipwise --team vision
    """
    if ctx.invoked_subcommand is not None:
        return
    from chipwise.api.running import membership
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    grants = membership.grants(open_session())
    if as_json:
        text.show_json([asdict(grant) for grant in grants])
        return
    if not grants:
        text.show_lines("No place is opened to you. Its controller can do it: chipwise places allow PLACE --user YOU")
        return
    columns = [text.Column("place", flexible=True), text.Column("user"), text.Column("team"), text.Column("secrets")]
    text.show_table(columns, [[grant.place, grant.login, grant.team, ", ".join(grant.secrets)] for grant in grants])


@places.command()
@click.argument("place")
@USER
@TEAM
@click.option("--secret", "secrets", multiple=True, metavar="NAME", help="A stored secret that their jobs may read; repeat it.")
def allow(place: str, login: str, team: str, secrets: tuple[str, ...]) -> None:
    """Let a user or a team run jobs at a place for which you act."""
    from chipwise.api.running import membership
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    membership.allow(open_session(), place, login, team, secrets)
    text.say(f"{login or f'Team {team}'} may run jobs at {place}.")
    text.say(
        "Those jobs run as the system user of its controller, and can read every file that this user can read, unless run_as "
        "in the controller's engines.yaml names other users for them."
    )


@places.command()
@click.argument("place")
@USER
@TEAM
def refuse(place: str, login: str, team: str) -> None:
    """Take that right away again. Jobs that run go on; those that wait stay where they are."""
    from chipwise.api.running import membership
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    membership.refuse(open_session(), place, login, team)
    text.say(f"{login or f'Team {team}'} may no longer run jobs at {place}, unless another entry allows it.")
