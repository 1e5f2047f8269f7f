"""What PostgreSQL complains of, in our words: one table by its codes, and what is worth another try.

Before a session there are no codes but sentences of libpq and of the server, so those are looked at for what they speak of.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from chipwise.errors import BadInput, ChipwiseError, NotAllowed, NotFound, OutsideFailed, TryLater
from chipwise.runner.record import Stale

_ASK = "Ask an admin of the database; `chipwise.members` in the database says who may do what."
_LOGIN = "Check the login, and its password in PGPASSWORD, ~/.pgpass or the service file."

_HOARD = (
    "Try again. If it stays so, a session holds them: the server's admin finds it (SELECT pid, count(*) FROM pg_locks GROUP BY "
    "pid ORDER BY 2 DESC) and ends it; where nobody can connect any more, by ending its process on the server."
)

# By the beginning of the code, the longest first.
TROUBLES: tuple[tuple[str, Callable[..., ChipwiseError], str, str], ...] = (
    ("22021", BadInput, "takes no such text: {said}", "Leave that character out."),
    ("22P05", BadInput, "takes no such text: {said}", "Leave that character out."),
    ("23505", Stale, "has a job of that id already, which is not for {login} to see", "Submit it under another id."),
    ("23", BadInput, "takes no such value: {said}", "Submit what `chipwise run` writes."),
    ("25006", OutsideFailed, "can only be read (is it a standby?)", "Name the primary server."),
    ("28", NotAllowed, "does not let {login} in", _LOGIN),
    ("3D000", NotFound, "does not exist", "Create the database (createdb NAME), or name another."),
    ("40", TryLater, "was too busy: {said}", "Try again."),
    ("42501", NotAllowed, "refuses this to {login}: {said}", _ASK),
    ("42P01", NotAllowed, "shows {login} no tables ({said}): they are gone, or {login} is no member any more", _ASK),
    ("42883", NotAllowed, "shows {login} no tables ({said}): they are gone, or {login} is no member any more", _ASK),
    ("42704", BadInput, "does not know that login: {said}", "Create it in the database first: CREATE ROLE name LOGIN."),
    ("53100", OutsideFailed, "cannot grow: the server's disk is full", "Free some space there; nothing was half written."),
    ("53200", TryLater, "has no room for locks left: {said}", _HOARD),
    ("53300", TryLater, "has no connection left", "Try again, or raise max_connections on the server."),
    ("53400", TryLater, "takes no more jobs now: {said}", "Wait until some of these jobs are over, or stop some."),
    ("53", TryLater, "has run out of something: {said}", "Try again."),
    ("54", BadInput, "takes nothing that large: {said}", "Keep large things in files, and their names in the database."),
    (
        "55P03",
        TryLater,
        "is locked by another program for longer than the time limit",
        "Try again. The server's admin finds its session in pg_stat_activity and ends it: SELECT pg_terminate_backend(pid).",
    ),
    ("57014", TryLater, "took longer than we wait", "Try again."),
    ("57", TryLater, "is stopping or starting: {said}", "Try again."),
    ("58", OutsideFailed, "had trouble with its own disk: {said}", "Look at the server's log."),
    ("P0001", BadInput, "takes no such value: {said}", "Look at the rules that were added to the tables."),
    ("XX001", OutsideFailed, "is damaged: {said}", "Look at the server's log; put back a copy."),
)
_BEFORE: tuple[tuple[tuple[str, ...], Callable[..., ChipwiseError], str, str], ...] = (
    (("password", "authentication", "pg_hba", "no password supplied"), NotAllowed, "does not let {login} in", _LOGIN),
    (("role ", "is not permitted to log in"), NotAllowed, "does not let {login} in", _LOGIN),
    (("database ", "does not exist"), NotFound, "does not exist", "Create the database (createdb NAME), or name another."),
    (("definition of service",), NotFound, "names a service that no service file defines", "Look at PGSERVICEFILE."),
    (
        ("translate host name", "resolve host", "name resolution"),
        NotFound,
        "is on a host that cannot be found",
        "Check the host's name.",
    ),
    (("out of shared memory",), TryLater, "has no room for locks left", _HOARD),
    (("too many", "remaining connection slots"), TryLater, "has no connection left", "Try again later."),
)
_AGAIN = ("08", "40", "53300", "57P")  # connections lost, deadlocks, servers that restart


def translated_error(error: psycopg.Error, label: str, login: str) -> ChipwiseError:
    code, message = error.sqlstate or "", _message(error)
    for begins, kind, text, remedy in TROUBLES:
        if code.startswith(begins):
            hint = error.diag.message_hint if code == "42501" else None  # of our own triggers
            return kind(f"The database {label} {text.format(said=message, login=login)}.", remedy=hint or remedy)
    if isinstance(error, psycopg.DataError):
        return BadInput(f"The database {label} takes no such value: {message}.")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return TryLater(
            f"The database {label} does not answer: {message}.", remedy="Check that the server runs, and try again."
        )
    return OutsideFailed(f"The database {label} failed: {message} ({code or type(error).__name__}).")


def of_connecting(error: psycopg.Error, label: str, login: str) -> ChipwiseError:
    if error.sqlstate:
        return translated_error(error, label, login)
    message = str(error)
    for words, kind, text, remedy in _BEFORE:
        wanted = all if words[0].endswith(" ") else any
        if wanted(word in message for word in words):
            return kind(f"The database {label} {text.format(login=login)}.", remedy=remedy)
    return TryLater(
        f"The database {label} cannot be reached: {_short(_of_libpq(message)) or type(error).__name__}.",
        remedy="Check that the server runs, and try again.",
    )


def passing(error: psycopg.Error) -> bool:
    """Whether the same may go well in a moment."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(_AGAIN)


def _message(error: psycopg.Error) -> str:
    return _short(error.diag.message_primary or _of_libpq(str(error)) or type(error).__name__)


def _of_libpq(text: str) -> str:
    """What happened. On further lines it guesses why, asks back, and says the same of every host once more."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first.removeprefix("connection failed: ").removeprefix("connection is bad: ").rstrip(".?!: ")


def _short(text: str) -> str:
    return " ".join(text.split())[:200].rstrip(".")
