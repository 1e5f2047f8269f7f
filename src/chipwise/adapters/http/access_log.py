"""The access log: one JSON line per request, written in batches. Prompts, answers, queries and keys are not in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from chipwise.serving.metrics import Finished

# Paths, statuses and identifiers have been checked: nothing in them needs escaping. Names are the operator's, as JSON.
_LINE = (
    '{"time":%.3f,"id":"%s","path":"%s","status":%d,"key":%s,"pool":%s,"replica":%s,"attempts":%d,"queue_us":%s,'
    '"first_token_us":%s,"us":%d,"prompt_tokens":%d,"answer_tokens":%d,"bytes":%d,"error":"%s"}\n'
)
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
        first, queue = request.first_token_s, request.queue_s
        self._lines.append(
            _LINE
            % (
                self._wall_time(),
                served.request_id,
                request.path,
                request.status,
                _text(request.key),
                _text(served.pool),
                _text(served.replica),
                served.attempts,
                "null" if queue is None else int(1e6 * queue),
                "null" if first is None else int(1e6 * first),
                int(1e6 * request.total_s),
                request.prompt_tokens,
                request.answer_tokens,
                served.sent_bytes,
                request.error,
            )
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
