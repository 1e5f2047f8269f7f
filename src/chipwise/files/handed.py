"""Files that a person names, opened so that nothing waits for ever: the one way in which handed-in files are read.

A regular file is read as it is. Of what else a path can name only the pipe of a shell is taken (`<(...)`, or `/dev/stdin` where
something is piped in), and it must send something now and then. A FIFO may never get a writer, a device may never end.
"""

from __future__ import annotations

import io
import re
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from chipwise.errors import BadInput

PATIENCE_S = 60.0  # without a byte from a pipe
_OF_A_SHELL = re.compile(r"/dev/(?:stdin|fd/\d+)|/proc/(?:self|\d+)/fd/\d+")
_KINDS = ((stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file. Raises OSError as opening it would, and BadInput where it is nothing that ends."""
    if not check_ends(path):
        with path.open("rb") as stream:
            yield stream
        return
    with path.open("rb", buffering=0) as raw, io.BufferedReader(cast(Any, _Pipe(raw, str(path)))) as stream:
        yield stream


def check_ends(path: Path) -> bool:
    """Whether it is the pipe of a shell, and no regular file. Raises as `opened`, for files that others open."""
    mode = path.stat().st_mode
    is_pipe = stat.S_ISFIFO(mode) and _OF_A_SHELL.fullmatch(str(path)) is not None
    kind = next((kind for test, kind in _KINDS if test(mode)), "")
    if not kind and _of_the_system(path):
        kind = "made up by the system as it is read"
    if kind and not is_pipe:
        raise BadInput(
            f"{str(path)[:200]!r} is {kind}, and no file.", remedy="Give a regular file, or let a shell pass it in: <(command)."
        )
    return is_pipe


def _of_the_system(path: Path) -> bool:
    """Such files look like regular ones, and reading some of them waits for ever."""
    return path.resolve().parts[:2] in (("/", "proc"), ("/", "sys"))


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """At most one byte more than `most_bytes`, by which the caller sees that it is too much."""
    with opened(path) as stream:
        return stream.read(most_bytes + 1)


class _Pipe(io.RawIOBase):
    """That of a shell, which is not waited for beyond all patience."""

    def __init__(self, raw: io.FileIO, name: str) -> None:
        self._raw, self._name = raw, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if not select.select([self._raw], [], [], PATIENCE_S)[0]:
            raise BadInput(
                f"Nothing came from {self._name} for {PATIENCE_S:g} s.", remedy="Write it into a file first, and give that."
            )
        return self._raw.readinto(buffer)
