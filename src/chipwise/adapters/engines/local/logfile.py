"""What a job prints, kept in files of limited size. Values of secrets are blotted out before anything is written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from chipwise.adapters.state_files import file_mode
from chipwise.errors import BadInput

SHORTEST_SECRET = 4  # shorter values would blot out most of what is printed
ANYWHERE = 6  # so long, a value is blotted out inside words too; one that is shorter stands in ordinary words by chance
LONGEST_LINE = 64 * 1024  # after which a line is written though it has not ended


class LogFile:
    """Rotates from `log` to `log.1` and on when `most_bytes` are reached; `copies` old ones stay."""

    def __init__(self, path: Path, most_bytes: int, copies: int, secrets: Iterable[str] = ()) -> None:
        self.path = path
        self.most_bytes = max(most_bytes, 1024)
        self.kept = max(copies, 0)
        self.secrets = _pieces(secrets)
        self.lost = 0  # bytes that could not be written
        self._open()

    def write(self, text: bytes) -> None:
        rest = memoryview(self.blotted(text))
        try:
            if self.size and self.size + len(rest) > self.most_bytes:
                self._rotate()
            while rest:  # a disk that is nearly full takes a part
                written = os.write(self.handle, rest)
                self.size += written
                rest = rest[written:]
        except OSError:  # a full disk must not end the job
            self.lost += len(rest)

    def blotted(self, text: bytes) -> bytes:
        return _blotted(self.secrets, text)

    def close(self) -> None:
        if self.lost:
            note = f"[{self.lost:,} bytes of output could not be written]\n".encode()
            with suppress(OSError):
                os.write(self.handle, note)
        os.close(self.handle)

    def _open(self) -> None:
        self.handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, file_mode(self.path.parent))
        self.size = os.fstat(self.handle).st_size

    def _rotate(self) -> None:
        """The old file is closed last: where a step fails, what comes next is still written to it and to nothing else."""
        for number in range(self.kept - 1, 0, -1):
            older = self._old(number)
            if older.exists():
                os.replace(older, self._old(number + 1))
        if self.kept and self.path.exists():  # not where the last try failed behind this
            os.replace(self.path, self._old(1))
        elif not self.kept:
            self.path.unlink(missing_ok=True)
        former = self.handle
        self._open()
        os.close(former)

    def _old(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def refuse_short(setting: str, value: str) -> None:
    """Raises where a value could not be hidden in what a job prints. An empty one is no secret."""
    if 0 < len(value) < SHORTEST_SECRET:
        raise BadInput(
            f"The secret {setting} is too short to redact: it has fewer than {SHORTEST_SECRET} characters.",
            remedy=f"Use a longer one, or pass it as a plain variable: --env {setting}.",
        )


def _blotted(pieces: Iterable[bytes], text: bytes) -> bytes:
    for value in pieces:
        if len(value) >= ANYWHERE:
            text = text.replace(value, b"[secret]")
        elif value in text:
            text = re.sub(_alone(value), b"[secret]", text)
    return text


def _alone(value: bytes) -> bytes:
    """Not inside a word or number; where the value begins or ends with another character, that is its border."""
    before, after = (rb"(?<!\w)" if re.match(rb"\w", value) else b""), (rb"(?!\w)" if re.search(rb"\w\Z", value) else b"")
    return before + re.escape(value) + after


def _pieces(secrets: Iterable[str]) -> list[bytes]:
    """The longest first, since one may begin like another; of a key of several lines each line too: lines come alone."""
    pieces = {piece for value in secrets for piece in (value, *value.splitlines()) if len(piece) >= SHORTEST_SECRET}
    return sorted((piece.encode(errors="surrogateescape") for piece in pieces), key=lambda piece: (-len(piece), piece))


class Lines:
    """Output of one process, written line by line: lines of several processes do not mix, and no secret is cut in two."""

    def __init__(self, log: LogFile, prefix: bytes) -> None:
        self.log, self.prefix, self.rest = log, prefix, b""

    def take(self, chunk: bytes) -> None:
        self.rest += chunk
        *lines, self.rest = self.rest.split(b"\n")
        block: list[bytes] = []
        size = 0
        for line in lines:
            if (
                size and self.log.size + size + len(self.prefix) + len(line) + 1 > self.log.most_bytes
            ):  # so that a file ends with a whole line
                self.log.write(b"".join(block))
                block, size = [], 0
            block.append(self.prefix + line + b"\n")
            size += len(block[-1])
        if block:
            self.log.write(b"".join(block))
        if len(self.rest) > LONGEST_LINE:
            self._cut()

    def _cut(self) -> None:
        """All but what may be the beginning of a secret."""
        text, tail = self.log.blotted(self.rest), max(map(len, self.log.secrets), default=1) - 1
        self.rest = text[: len(text) - tail]
        self.finish()
        self.rest = text[len(text) - tail :]

    def finish(self) -> None:
        if self.rest:
            self.log.write(self.prefix + self.rest + b"\n")
            self.rest = b""
