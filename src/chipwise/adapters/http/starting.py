"""Waits for a replica that starts, and measures the parts of its start: connections, readiness, the first token."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from contextlib import suppress

from chipwise.adapters.http.answer_count import has_content
from chipwise.serving.engine import FirstRequest
from chipwise.serving.replica import Address

PAUSE_S = 0.01
LONGEST_PAUSE_S = 0.25
FIRST_TOKEN_WITHIN_S = 600.0


def ready_times(address: Address, health: str, carries_on: Callable[[], None]) -> tuple[float, float]:
    """Seconds since 1970 at which it took the first connection, and at which it said that it is ready. `carries_on` is asked
    between tries, and raises when there is no use in waiting."""
    listening: float | None = None
    pause_s = PAUSE_S
    while True:
        connection = http.client.HTTPConnection(address.host, address.port, timeout=5.0)
        with suppress(OSError, http.client.HTTPException):
            try:
                connection.connect()
                listening = listening or time.time()
                connection.request("GET", health)
                if connection.getresponse().status < 400:
                    return listening, time.time()
            finally:
                connection.close()
        carries_on()
        time.sleep(pause_s)
        pause_s = min(1.2 * pause_s, LONGEST_PAUSE_S)


def first_token_s(address: Address, first: FirstRequest) -> float | None:
    """From the request to the first event with content, or to the end; None: it answered with an error, or not at all."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=FIRST_TOKEN_WITHIN_S)
    begun = time.monotonic()
    try:
        connection.request("POST", first.path, json.dumps(first.body), {"content-type": "application/json"})
        answer = connection.getresponse()
        if answer.status >= 400 or not _read_content(answer):
            return None
        return time.monotonic() - begun
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _read_content(answer: http.client.HTTPResponse) -> bool:
    """Up to the first event with content, else to the end; False: there was nothing."""
    size = 0
    for line in answer:
        size += len(line)
        if line.startswith(b"data:") and has_content(line):
            break
    return size > 0
