"""`chipwise members`: who may see and do what in a team's record."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

ROLE = click.option("--role", default="member", show_default=True, help="member, lead, controller or admin.")
TEAM = click.option("--team", default="", help="Whose jobs they submit, or lead.")
PLACE = click.option("--place", default="", help="Of a controller: the only place for which it acts.")


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def members(ctx: click.Context, as_json: bool) -> None:
    """List or change the roles of people in a team's database.

    CHIPWISE_RECORD names the PostgreSQL database; people are its logins. A member sees and stops their own jobs, a lead those
    of the team. A controller runs the jobs of a place, and an admin assigns roles. The list also shows privileges that the
    server needs so that nobody can block the jobs of a team with an open transaction.

    \b
    Examples:
      chipwise members
      chipwise members add mia --team vision
      chipwise members add robot --role controller --place kubernetes:HOST/train
      chipwise members protect
    """
    if ctx.invoked_subcommand is not None:
        return
    from chipwise.api.running import membership
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    session = open_session()
    listed = membership.listed(session)
    for line in membership.unprotected(session):
        text.say(f"{line}.")
    if as_json:
        text.show_json([asdict(one) for one in listed])
        return
    if not listed:
        text.show_lines("No members are listed; the owner of the tables is always an admin.")
        return
    columns = [text.Column("login"), text.Column("team"), text.Column("role"), text.Column("place", flexible=True)]
    text.show_table(columns, [[one.login, one.team, one.role, one.place] for one in listed])


@members.command()
@click.argument("login")
@TEAM
@ROLE
@PLACE
def add(login: str, **role: Any) -> None:
    """Give a person a role. The login must exist in the database."""
    from chipwise.api.running import membership
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    session = open_session()
    membership.add(session, login, **role)
    text.say(f"{login} is {role['role']}{_scope_text(role)}.")
    for line in membership.unprotected(session):
        text.say(f"{line}.")


@members.command()
@click.argument("login")
@TEAM
@ROLE
@PLACE
def remove(login: str, **role: Any) -> None:
    """Remove a role from a person."""
    from chipwise.api.running import membership
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    membership.remove(open_session(), login, **role)
    text.say(f"{login} is no longer {role['role']}{_scope_text(role)}.")


@members.command()
def protect() -> None:
    """Keep any login from stopping the server by taking all its locks.

    Revokes temporary tables, advisory locks and large objects from PUBLIC in this database. CHIPWISE_RECORD must name a
    superuser of the server. Other databases of the server need the same; their names are printed.
    """
    from chipwise.api.running import membership
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    open_databases = membership.protect(open_session())
    text.show_lines("Advisory locks, large objects and temporary tables are revoked from PUBLIC in this database.")
    if open_databases:
        text.say(
            f"Every login can still connect to {', '.join(open_databases)}. Run it for each, or as a superuser: "
            "REVOKE CONNECT ON DATABASE name FROM PUBLIC."
        )


def _scope_text(what: dict[str, Any]) -> str:
    return f"{' of ' + what['team'] if what['team'] else ''}{' at ' + what['place'] if what['place'] else ''}"
