"""What libpq says on several lines is told in one sentence."""

from __future__ import annotations

import pytest

psycopg = pytest.importorskip("psycopg")

from chipwise.adapters.stores.record import postgres_troubles  # noqa: E402
from chipwise.errors import TryLater  # noqa: E402

AT = 'connection to server at "127.0.0.1", port 1 failed: Connection refused'
ASKS = "\n\tIs the server running on that host and accepting TCP/IP connections?"
AGAIN = (
    f"\nMultiple connection attempts failed. All failures were:\n- host: '127.0.0.1', port: '1': connection failed: {AT}{ASKS}"
)
CLOSED = "server closed the connection unexpectedly"
GUESSES = "\n\tThis probably means the server terminated abnormally\n\tbefore or while processing the request."


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"connection failed: {AT}{ASKS}", AT),
        (f"connection failed: {AT}{ASKS}{AGAIN}", AT),
        ("connection is bad: no answer?", "no answer"),
        ("", "OperationalError"),
    ],
)
def test_a_server_that_cannot_be_reached_is_told_in_one_sentence(said: str, told: str) -> None:
    error = postgres_troubles.of_connecting(psycopg.OperationalError(said), "HERE", "mia")
    assert isinstance(error, TryLater)
    assert str(error) == f"The database HERE cannot be reached: {told}. Check that the server runs, and try again."


def test_a_connection_that_breaks_is_told_in_one_sentence() -> None:
    error = postgres_troubles.translated_error(psycopg.OperationalError(CLOSED + GUESSES), "HERE", "mia")
    assert str(error) == f"The database HERE does not answer: {CLOSED}. Check that the server runs, and try again."
