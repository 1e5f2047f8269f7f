"""The access log: one JSON line per request, written in batches. Prompts, answers, queries and keys are not in it."""

from __future__ import annotations

import json
from collections.abc import Callable

from chipwise.serving.metrics import Finished

MOST_LINES = 10_000  # that wait to be written; when the disk is slower, lines are dropped and counted


class AccessLog:
    def __init__(self, write: Callable[[bytes], object] | None, wall_time: Callable[[], float]) -> None:
        self._write = write
        self._wall_time = wall_time
        self._lines: list[str] = []
        self._dropped = 0

    def add(self, request: Finished) -> None:
        if self._write is None:
            return
        if len(self._lines) >= MOST_LINES:
            self._dropped += 1
            return
        # Paths, statuses and identifiers have been checked: nothing in them needs escaping.
        first, gap, queue = request.first_token_s, request.per_token_s, request.queue_s
        self._lines.append(
            f'{{"time":{self._wall_time():.3f},"id":"{request.id}","path":"{request.path}","status":{request.status},'
            f'"key":{_quoted[request.key]},"pool":{_quoted[request.pool]},"replica":{_quoted[request.replica]},'
            f'"attempts":{request.attempts},"queue_us":{"null" if queue is None else int(1e6 * queue)},'
            f'"first_token_us":{"null" if first is None else int(1e6 * first)},'
            f'"per_token_us":{"null" if gap is None else int(1e6 * gap)},"us":{int(1e6 * request.total_s)},'
            f'"prompt_tokens":{int(request.prompt_tokens)},"answer_tokens":{int(request.answer_tokens)},'
            f'"bytes":{request.sent_bytes},"error":"{request.error}"}}\n'
        )

    def flush(self) -> None:
        if self._write is None or not self._lines:
            return
        if self._dropped:
            self._lines.append(f'{{"time":{self._wall_time():.3f},"dropped_lines":{self._dropped}}}\n')
            self._dropped = 0
        lines, self._lines = self._lines, []
        self._write("".join(lines).encode())


class _Quoted(dict[str, str]):
    """Names as JSON. They come from the configuration, so there are few."""

    def __missing__(self, name: str) -> str:
        quoted = self[name] = json.dumps(name)
        return quoted


_quoted = _Quoted()
