"""Ending a program with an error when its end has begun: its exit code is chosen, and handlers of others are still to run.

Python turns the exit code into 120 where a standard stream cannot be flushed at the very end (see `sys.exit`). That keeps all
that other libraries do at exit, which `os._exit` would skip.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any


def fail(message: str) -> None:
    """From a handler of `atexit`. The message goes to the standard error, whatever is logged where."""
    with suppress(Exception):  # there may be none
        print(message, file=sys.stderr, flush=True)
    sys.stderr = _Failing(sys.stderr, message)


class NotSaved(Exception):
    pass


class _Failing:
    """A stream as before, until the interpreter itself flushes it for the last time."""

    def __init__(self, stream: Any, message: str) -> None:
        self._stream, self._message = stream, message

    closed = False

    def flush(self) -> None:
        with suppress(Exception):
            self._stream.flush()
        if sys.is_finalizing():
            raise NotSaved(self._message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
