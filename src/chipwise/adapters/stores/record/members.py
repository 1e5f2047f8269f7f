"""Who is what in a team's record: the list that its admins keep, and that the database itself goes by (`roles`)."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass

from chipwise.adapters.stores.record import hoarding
from chipwise.adapters.stores.record.address import File, read_address
from chipwise.adapters.stores.record.database import Database
from chipwise.adapters.stores.record.roles import ROLES
from chipwise.adapters.stores.record.rows import speakable
from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import nearest

LONGEST_LOGIN = 63
_COLUMNS = "login, team, role, place"
_RIGHTS = ("pg_signal_backend", "pg_read_all_stats")  # of the owner of the tables: to end sessions, and to see which are old
_PROTECTION = f"""SELECT r.rolname, {", ".join(f"pg_has_role(r.oid, '{right}', 'USAGE')" for right in _RIGHTS)},
    current_setting('max_prepared_transactions')::int > 0
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_roles r ON r.oid = c.relowner WHERE c.oid = 'chipwise.meta'::regclass"""


@dataclass(frozen=True, slots=True)
class Member:
    login: str  # of PostgreSQL
    team: str = ""
    role: str = "member"
    place: str = ""  # of a controller; empty: all places


class Members:
    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Member]:
        """As far as whoever asks may see them."""
        rows = self._database.read(lambda tx: tx.rows(f"SELECT {_COLUMNS} FROM members ORDER BY team, login, role, place"))
        return [Member(*values) for values in rows]

    def add(self, member: Member) -> None:
        """Somebody who is that already stays it."""
        if member.role not in ROLES:
            raise UnknownName("role", member.role, nearest(member.role, ROLES), remedy=f"There are {', '.join(ROLES)}.")
        if not member.login or not all(text.isprintable() for text in astuple(member)):
            raise BadInput("A member is a login of the database, on one line.", remedy="Write its name as the database has it.")
        if len(member.login.encode()) > LONGEST_LOGIN:
            raise BadInput(f"No login of PostgreSQL is longer than {LONGEST_LOGIN} bytes.", remedy="Write its name as it is.")
        if member.place and member.role != "controller":
            raise BadInput(f"A {member.role} is not tied to a place.", remedy="Only a controller acts for a place.")
        if member.role == "lead" and not member.team:
            raise BadInput("The role lead needs a team.", remedy="Name the team.")
        values = [speakable(text, "A member") for text in astuple(member)]
        sql = f"INSERT INTO members ({_COLUMNS}) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._database.write(lambda tx: tx.execute_many(sql, [values]))

    def remove(self, member: Member) -> bool:
        sql = "DELETE FROM members WHERE login = ? AND team = ? AND role = ? AND place = ?"
        return self._database.write(lambda tx: tx.execute_many(sql, [astuple(member)])) > 0

    def unprotected(self) -> list[str]:
        """What a member could do as this server is set up, each with what ends it."""
        [[owner, *has, prepared]] = self._database.read(lambda tx: tx.rows(_PROTECTION))
        missing = [right for right, granted in zip(_RIGHTS, has, strict=True) if not granted]
        warnings = []
        if missing:
            warnings.append(
                f"A member who leaves a transaction open can hold up changes to their jobs by others: {owner}, who owns the "
                "tables, lacks a right to end such sessions. An administrator of the server gives it: "
                f"GRANT {', '.join(missing)} TO {quoted(owner)}"
            )
        if prepared:
            warnings.append(
                "A member can hold up changes to their jobs by others with a prepared transaction, which belongs to no session."
                " An administrator of the server sets max_prepared_transactions to 0, its default"
            )
        if hoarding.is_open(self._database):
            warnings.append(
                "Every login of the server can take all its locks, so that nobody can connect any more. A superuser of the "
                "server prevents it: chipwise members protect"
            )
        return warnings

    def protect(self) -> list[str]:
        """Takes from everybody in this database what would stop the server; the databases that are still open."""
        return hoarding.close(self._database)

    def close(self) -> None:
        self._database.close()


def quoted(login: str) -> str:
    """As SQL has it."""
    return login if re.fullmatch("[a-z_][a-z0-9_]*", login) else '"' + login.replace('"', '""') + '"'


def connect_members(url: str) -> Members:
    return Members(team_database(url))


def team_database(url: str) -> Database:
    """Of a record that has logins."""
    address = read_address(url)
    if isinstance(address, File):
        raise BadInput(
            f"The database {address} is a file: everyone who can read it sees everything.", remedy="A team uses PostgreSQL."
        )
    from chipwise.adapters.stores.record.postgres import PostgresDatabase

    return PostgresDatabase(address)
