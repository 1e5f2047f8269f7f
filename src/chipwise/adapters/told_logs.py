"""What engines elsewhere keep of a job's output: all attempts in order, and on as it grows, over broken connections."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from chipwise.errors import NotFound, OutsideFailed
from chipwise.runner.abilities import TellsLogs
from chipwise.runner.job import Job

SLOWLY_S = 0.5  # each look is a request


def attempt_logs(engine: TellsLogs, job: Job, number: int | None, rank: int | None = None) -> Iterator[bytes]:
    """All attempts in order, or one. An attempt of which nothing is left is passed over where others have something."""
    numbers = range(1, len(job.attempts) + 1) if number is None else [number]
    missing: NotFound | None = None
    any_output = False
    for attempt in numbers:
        try:
            for piece in engine.logs(job, attempt, follow=False, rank=rank):
                any_output = any_output or bool(piece)
                yield piece
        except NotFound as error:
            missing = error
    if missing is not None and not any_output:
        raise missing


def follow_told(
    engine: TellsLogs, look: Callable[[], Job], rank: int | None = None, first: int = 1, sent: int = 0
) -> Iterator[bytes]:
    """Until the job is over. A connection that breaks is taken up where it broke: what was read is not shown twice. `sent`:
    bytes of the first attempt that were shown before."""
    job, number = look(), first
    while True:
        if len(job.attempts) >= number:
            skip = sent
            try:
                for piece in engine.logs(job, number, follow=True, rank=rank):
                    new = piece[skip:]
                    skip = max(skip - len(piece), 0)
                    sent += len(new)
                    if new:
                        yield new
                    if not piece:
                        finished, job = _past(job, number), look()
                        if finished:
                            break
                        time.sleep(SLOWLY_S)
            except OutsideFailed:
                pass  # not begun yet, gone already, or out of reach for now
        if _past(job, number):
            if len(job.attempts) <= number:
                return
            number, sent = number + 1, 0
            continue
        time.sleep(SLOWLY_S)
        job = look()


def _past(job: Job, number: int) -> bool:
    return job.phase.over or len(job.attempts) > number


class LastLines:
    """The last lines of what comes in pieces."""

    def __init__(self, lines: int) -> None:
        self._kept, self._rest, self._lines = deque[bytes](maxlen=lines), b"", lines

    def add(self, piece: bytes) -> None:
        *whole, self._rest = (self._rest + piece).split(b"\n")
        self._kept.extend(line + b"\n" for line in whole)

    @property
    def text(self) -> bytes:
        """A last line may have no end yet."""
        lines = [*self._kept, *([self._rest] if self._rest else [])]
        return b"".join(lines[-self._lines :]) if self._lines else b""
