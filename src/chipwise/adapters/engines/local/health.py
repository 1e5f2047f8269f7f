"""Asks a service whether it is well, beside the supervisor's own work."""

from __future__ import annotations

import http.client
import math
import threading
import time
from urllib.parse import urlsplit

EVERY_S, WITHIN_S = 5.0, 5.0
STARTING_EVERY_S = 1.0  # until it answers for the first time, which somebody waits for
FAILURES = 3  # in a row, once it has answered
STARTS_WITHIN_S = 1800.0  # large models take long to load
TOLD_AGAIN_S = 60.0  # what comes instead of an answer, where it changes: each time is an event in the record


class Health:
    """`url` is asked in a thread of its own; without one nothing is."""

    def __init__(self, url: str, every_s: float = EVERY_S, starts_within_s: float = STARTS_WITHIN_S) -> None:
        self.url, self.every_s, self.starts_within_s = url, every_s, starts_within_s
        self.answered: float | None = None  # when it did for the first time
        self.failures = 0
        self.last = ""
        self._told, self._changed_at = "", -math.inf
        self.begun = time.monotonic()

    def begin(self) -> None:
        self.begun = time.monotonic()
        if self.url:
            threading.Thread(target=self._ask_for_ever, daemon=True).start()

    def trouble(self) -> str:
        """Why it is not well; empty: it is, or it may still be starting."""
        if not self.url:
            return ""
        if self.answered is not None:
            return f"{self.url} failed {self.failures} times in a row: {self.last}" if self.failures >= FAILURES else ""
        waited = time.monotonic() - self.begun
        return f"{self.url} did not answer within {waited:.0f} s: {self.last}" if waited > self.starts_within_s else ""

    def standing(self) -> dict[str, object]:
        """Whether it ever answered, and what comes instead; empty where nobody asks."""
        if not self.url:
            return {}
        now = time.monotonic()
        if self.last != self._told and now - self._changed_at > TOLD_AGAIN_S:
            # The first change, such as from "refused" to what it answers, is told at once as well.
            self._changed_at = now if self._told else self._changed_at
            self._told = self.last
        return {"url": self.url, "answered": self.answered, "instead": "" if self.answered is not None else self._told}

    def _ask_for_ever(self) -> None:
        while True:
            if wrong := _failure(self.url):
                self.last = wrong
                self.failures += 1
            else:
                self.answered, self.failures = self.answered or time.time(), 0
            time.sleep(self.every_s if self.answered is not None else min(self.every_s, STARTING_EVERY_S))


def _failure(url: str) -> str:
    """What is wrong; empty: nothing."""
    try:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=WITHIN_S)
        try:
            connection.request("GET", parts.path or "/")
            status = connection.getresponse().status
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        return getattr(error, "strerror", None) or str(error) or type(error).__name__
    return "" if status < 400 else f"status {status}"
