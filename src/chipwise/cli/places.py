"""`chipwise places`: who may run jobs at which place of a team's record."""

from __future__ import annotations

from dataclasses import asdict

import click

USER = click.option("--user", "login", default="", help="Select a database login.")
TEAM = click.option("--team", default="", help="Select everyone in this team.")


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def places(ctx: click.Context, as_json: bool) -> None:
    """List places where you may run jobs of a team, or let others run jobs at your place.

    A place is a machine with a data directory, a cluster, or an account in a region; `chipwise describe JOB` shows its name.
    Jobs run as the system user of its controller (or as run_as says), so others need permission to run jobs there.

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
        text.show_lines(
            "You may not run jobs at any place. Its controller can allow it: chipwise places allow PLACE --user YOU"
        )
        return
    columns = [text.Column("place", flexible=True), text.Column("user"), text.Column("team"), text.Column("secrets")]
    text.show_table(columns, [[grant.place, grant.login, grant.team, ", ".join(grant.secrets)] for grant in grants])


@places.command()
@click.argument("place")
@USER
@TEAM
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME", help="Let their jobs read a stored secret; may be repeated."
)
def allow(place: str, login: str, team: str, secrets: tuple[str, ...]) -> None:
    """Let a user or a team run jobs at a place that you control."""
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
    """Withdraw that permission. Running jobs continue; waiting jobs stay in the queue."""
    from chipwise.api.running import membership
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    membership.refuse(open_session(), place, login, team)
    text.say(f"{login or f'Team {team}'} may no longer run jobs at {place}, unless another entry allows it.")
