"""Who is what in a team's record, and who may run jobs at which place, as verbs."""

from __future__ import annotations

import shlex
from contextlib import closing
from typing import TYPE_CHECKING

from chipwise.api.running.place import record_url
from chipwise.errors import NotFound

if TYPE_CHECKING:
    from chipwise.adapters.stores.record.grants import Grant, Grants
    from chipwise.adapters.stores.record.members import Member, Members
    from chipwise.api.session.wiring import Session


def _members(session: Session) -> closing[Members]:
    from chipwise.adapters.stores.record.members import connect_members

    return closing(connect_members(record_url(session)))


def listed(session: Session) -> list[Member]:
    """As far as whoever asks may see them."""
    with _members(session) as members:
        return members.all()


def unprotected(session: Session) -> list[str]:
    """What a member could do to the others as the server is set up, each with what ends it."""
    with _members(session) as members:
        return members.unprotected()


def protect(session: Session) -> list[str]:
    """Takes from every login what could stop the server, in this database; the names of those that are still open."""
    with _members(session) as members:
        return members.protect()


def add(session: Session, login: str, team: str, role: str, place: str) -> None:
    from chipwise.adapters.stores.record.members import Member

    with _members(session) as members:
        members.add(Member(login, team, role, place))


def remove(session: Session, login: str, team: str, role: str, place: str) -> None:
    from chipwise.adapters.stores.record.members import Member

    with _members(session) as members:
        if not members.remove(Member(login, team, role, place)):
            roles = [_removal(one) for one in members.all() if one.login == login]
            raise NotFound(
                f"{login} has no role {role}{f' of {team}' if team else ' without a team' if roles else ''}"
                f"{f' at {place}' if place else ''} that you may remove.",
                remedy=f"Their roles are removed with {' and '.join(roles)}." if roles else "chipwise members lists the roles.",
            )


def _removal(member: Member) -> str:
    """The command that takes this role away."""
    options = (("team", member.team), ("role", member.role if member.role != "member" else ""), ("place", member.place))
    written = "".join(f" --{name} {shlex.quote(value)}" for name, value in options if value)
    return f"`chipwise members remove {shlex.quote(member.login)}{written}`"


def _grants(session: Session) -> closing[Grants]:
    from chipwise.adapters.stores.record.grants import connect_grants

    return closing(connect_grants(record_url(session)))


def grants(session: Session) -> list[Grant]:
    """Those that concern whoever asks, and those of places for which they act."""
    with _grants(session) as granted:
        return granted.all()


def allow(session: Session, place: str, login: str, team: str, secrets: tuple[str, ...]) -> None:
    from chipwise.adapters.stores.record.grants import Grant

    with _grants(session) as granted:
        granted.allow(Grant(place, login, team, secrets))


def refuse(session: Session, place: str, login: str, team: str) -> None:
    from chipwise.adapters.stores.record.grants import Grant

    with _grants(session) as granted:
        if not granted.refuse(Grant(place, login, team)):
            raise NotFound(
                f"{login or f'Team {team}'} has no permission at {place}, or you do not control it.",
                remedy="chipwise places lists the permissions.",
            )
