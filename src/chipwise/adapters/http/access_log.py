"""The access log: one JSON line per request, written in batches. Prompts, answers, queries and keys are not in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from chipwise.serve.metrics import Finished

MOST_LINES = 10_000  # that wait to be written; when the disk is slower, lines are dropped and counted


class Served(NamedTuple):
    """Who answered a request."""

    request_id: str
    pool: str = ""
    replica: str = ""
    attempts: int = 0
    sent_bytes: int = 0


class AccessLog:
    def __init__(self, write: Callable[[bytes], object] | None, wall_time: Callable[[], float]) -> None:
        self._write = write
        self._wall_time = wall_time
        self._lines: list[str] = []
        self._dropped = 0

    def add(self, request: Finished, served: Served) -> None:
        if self._write is None:
            return
        if len(self._lines) >= MOST_LINES:
            self._dropped += 1
            return
        first = "null" if request.first_token_s is None else f"{1e3 * request.first_token_s:.3f}"
        queue = "null" if request.queue_s is None else f"{1e3 * request.queue_s:.3f}"
        # Paths, statuses and identifiers have been checked: nothing in them needs escaping. Names are the operator's.
        self._lines.append(
            f'{{"time":{self._wall_time():.3f},"id":"{served.request_id}","path":"{request.path}","status":{request.status},'
            f'"key":{_text(request.key)},"pool":{_text(served.pool)},"replica":{_text(served.replica)},'
            f'"attempts":{served.attempts},"queue_ms":{queue},"first_token_ms":{first},"ms":{1e3 * request.total_s:.3f},'
            f'"prompt_tokens":{request.prompt_tokens:.0f},"answer_tokens":{request.answer_tokens:.0f},'
            f'"bytes":{served.sent_bytes},"error":"{request.error}"}}\n'
        )

    def flush(self) -> None:
        if self._write is None or not self._lines:
            return
        if self._dropped:
            self._lines.append(f'{{"time":{self._wall_time():.3f},"dropped_lines":{self._dropped}}}\n')
            self._dropped = 0
        lines, self._lines = self._lines, []
        self._write("".join(lines).encode())


_TEXTS: dict[str, str] = {}


def _text(name: str) -> str:
    """As JSON. Names come from the configuration, so there are few."""
    quoted = _TEXTS.get(name)
    if quoted is None:
        quoted = _TEXTS[name] = json.dumps(name)
    return quoted
