"""Files that a program was to leave behind, looked for by a process of its own: a disk that does not answer (a file server that
is gone) keeps whoever asks waiting, and no thread can be told to stop."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 4000  # of an answer: below what a pipe takes at once


def lacking(names: Sequence[str], directory: str) -> str:
    """What is wrong with what should be there; empty where it is."""
    for name in names:
        path = Path(directory or ".") / name
        try:
            if not path.exists():
                return f"{name} is not there"
            if (path.is_file() and not path.stat().st_size) or (path.is_dir() and not any(path.iterdir())):
                return f"{name} is empty"
        except (OSError, ValueError) as error:  # a name that no file can have, or a folder that may not be read
            return f"{name[:200]} cannot be looked at: {getattr(error, 'strerror', None) or error}"
    return ""


class Look:
    """One question, and its answer when there is one."""

    def __init__(self, question: Callable[[], str], closes: int) -> None:
        """`closes`: a descriptor that a process without end must not keep open."""
        self._answer, to_write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _answered(question, to_write, (self._answer, closes))
        os.close(to_write)

    def answer(self, wait_s: float) -> str | None:
        """None: not yet."""
        if not select.select([self._answer], [], [], wait_s)[0]:
            return None
        text = os.read(self._answer, MOST_BYTES).decode(errors="replace")
        os.waitpid(self._pid, 0)
        os.close(self._answer)
        return text[1:] if text else "its output could not be looked at"

    def give_up(self) -> None:
        """It is not waited for: the system ends it when its disk lets it."""
        os.kill(self._pid, signal.SIGKILL)
        os.close(self._answer)


def _answered(question: Callable[[], str], to_write: int, unneeded: Sequence[int]) -> None:
    """In the process of the question, which ends here."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for descriptor in unneeded:
            with suppress(OSError):
                os.close(descriptor)
        os.write(to_write, f"={question()}".encode(errors="replace")[:MOST_BYTES])
    finally:
        os._exit(0)
