"""Who may run jobs at a place: the list that whoever acts for a place keeps, and that the database goes by (`place_rights`)."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.adapters.stores.record.database import Database
from chipwise.adapters.stores.record.members import team_database
from chipwise.adapters.stores.record.rows import key, speakable
from chipwise.errors import BadInput

_COLUMNS = "place, login, team, secrets"
_ALLOW = f"""INSERT INTO grants ({_COLUMNS}) VALUES (?, ?, ?, ?)
    ON CONFLICT (place, login, team) DO UPDATE SET secrets = excluded.secrets"""


@dataclass(frozen=True, slots=True)
class Grant:
    """To a login or to a team, never both."""

    place: str
    login: str = ""
    team: str = ""
    secrets: tuple[str, ...] = ()
    """Stored secrets that their jobs may read, by name."""


class Grants:
    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Grant]:
        """Those that concern whoever asks, and those of places for which they act."""
        sql = f"SELECT {_COLUMNS} FROM grants ORDER BY place, team, login"
        return [
            Grant(place, login, team, tuple(secrets))
            for place, login, team, secrets in self._database.read(lambda tx: tx.rows(sql))
        ]

    def allow(self, grant: Grant) -> None:
        """One that is there already has then these secrets."""
        values = (*_checked(grant), [speakable(name, "The name of a secret") for name in grant.secrets])
        self._database.write(lambda tx: tx.execute_many(_ALLOW, [values]))

    def refuse(self, grant: Grant) -> bool:
        """Whether there was such a grant. Jobs that run go on."""
        values = _checked(grant)
        [[was_there]] = self._database.write(lambda tx: tx.rows("SELECT close_place(?, ?, ?)", values))
        return bool(was_there)

    def close(self) -> None:
        self._database.close()


def _checked(grant: Grant) -> tuple[str, str, str]:
    if not grant.place:
        raise BadInput("The place is missing.", remedy="`chipwise places` lists them.")
    if bool(grant.login) == bool(grant.team):
        raise BadInput("A place is opened to a user or to a team.", remedy="Write --user LOGIN or --team TEAM.")
    return key(grant.place, "The place"), speakable(grant.login, "The login"), speakable(grant.team, "The team")


def connect_grants(url: str) -> Grants:
    return Grants(team_database(url))
