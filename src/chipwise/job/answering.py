"""A call of a store that may never return: it is made in a thread of its own, and given up when nothing comes of it.

Reading a large checkpoint takes long, and each file and chunk is an answer. So the limit is on silence, with an allowance for
what is read in one go.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from chipwise.job.background import SAYS_AFTER_S, GivenUp

Result = TypeVar("Result")
Expects = Callable[[int], None]  # called before each request, with the bytes that come in one go
SLOWEST_BYTES_S = 10e6


class _Silence:
    def __init__(self) -> None:
        self._since, self._allowed_s = time.monotonic(), 0.0

    def expects(self, size: int) -> None:
        self._since, self._allowed_s = time.monotonic(), size / SLOWEST_BYTES_S

    def left_s(self, limit_s: float) -> float:
        return self._since + self._allowed_s + limit_s - time.monotonic()


def answered(call: Callable[[Expects], Result], limit_s: float, say: Callable[[float], None]) -> Result:
    """What it returns or raises; GivenUp after `limit_s` without an answer. `say`: called once in a wait that is long."""
    silence, finished = _Silence(), threading.Event()
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call(silence.expects))
        except BaseException as error:
            errors.append(error)
        finished.set()

    threading.Thread(target=run, name="chipwise-checkpoints-answer", daemon=True).start()
    begun, said = time.monotonic(), False
    while not finished.wait(min(max(silence.left_s(limit_s), 0.0), SAYS_AFTER_S)):
        if silence.left_s(limit_s) <= 0.0:
            raise GivenUp(limit_s)
        if not said and time.monotonic() - begun >= SAYS_AFTER_S:
            said = True
            say(limit_s)
    if errors:
        raise errors[0]
    return results[0]
