"""Recordings on a disk: written line by line, so that nothing is lost when the writer is killed, and followed while they grow.

Each group of samples is one write, which the system has when it returns. A write that a full disk cuts is taken back. A file
that grows beyond its bound is written again with its older samples coarser, beside the old one, and takes its place at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.observe.recording import MOST_LINE, Decoder, Encoder, header_line, thinned
from chipwise.observe.sample import Recording, Sample

NAME = "recording.jsonl"  # in the folder of an attempt
MOST_BYTES = 16 << 20
# What stays as it was, in seconds before now, and how long the spans are to which older samples are joined; until it is small.
_COARSER = ((3600.0, 30.0), (3600.0, 120.0), (1800.0, 600.0), (600.0, 3600.0), (120.0, 6 * 3600.0))


class Appender:
    def __init__(self, path: Path, header: Recording, most_bytes: int = MOST_BYTES, mode: int = 0o600) -> None:
        """Makes the file; raises OSError where it cannot, or where it is there."""
        self._path, self._most_bytes, self._header, self._mode = path, most_bytes, header_line(header), mode
        self._encoder = Encoder()
        self._newest_s = 0.0
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, mode)
        self._size = 0
        self._write(self._header)

    def add(self, samples: Sequence[Sample]) -> None:
        """Raises OSError where the disk is full; what was written before stays whole."""
        if not samples:
            return
        self._write("".join(map(self._encoder.line, samples)))
        self._newest_s = max(self._newest_s, samples[-1].at_s)
        if self._size > self._most_bytes:
            self._rewrite()

    def _write(self, text: str) -> None:
        content = text.encode(errors="replace")
        try:
            written = os.write(self._handle, content)
            if written < len(content):
                written += os.write(self._handle, content[written:])
            if written < len(content):
                raise OSError("the disk is full")
        except OSError:
            self._encoder = Encoder()  # what changed since then is not in the file: the next lines have all of it
            with suppress(OSError):
                os.ftruncate(self._handle, self._size)
            raise
        self._size += len(content)

    def _rewrite(self) -> None:
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        try:
            for window_s, span_s in _COARSER:
                encoder = Encoder()
                size = self._written_coarser(temporary, encoder, self._newest_s - window_s, span_s)
                if size <= self._most_bytes // 2:
                    break
            handle = os.open(temporary, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            os.replace(temporary, self._path)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            self._most_bytes += self._most_bytes // 4  # the disk has no room for two; it is tried again later
            return
        os.close(self._handle)
        self._handle, self._size, self._encoder = handle, size, encoder
        self._most_bytes = max(self._most_bytes, 2 * size)  # else the next sample would write it again

    def _written_coarser(self, path: Path, encoder: Encoder, before_s: float, span_s: float) -> int:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, self._mode)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(self._header)
            for sample in thinned(_samples(self._path), before_s, span_s):
                file.write(encoder.line(sample))
            file.flush()
            return os.fstat(file.fileno()).st_size

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _samples(path: Path) -> Iterator[Sample]:
    decoder = Decoder(str(path))
    with open(path, "rb") as file:
        while line := file.readline(MOST_LINE + 2):
            if (sample := decoder.take(line)) is not None:
                yield sample


class Follower:
    """A recording that another process writes: each look has what came since the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self._decoder = Decoder(str(self._path))
        self._place = 0
        self._file_id: tuple[int, int] | None = None
        self._rest = b""

    @property
    def header(self) -> Recording | None:
        return self._decoder.header

    def look(self) -> tuple[list[Sample], bool]:
        """What came, and whether all of it came once more: the file was written coarser meanwhile. Raises OSError where it is
        not there, and BadInput where it is no recording."""
        is_new = False
        with open(self._path, "rb") as file:
            state = os.fstat(file.fileno())
            if self._file_id != (state.st_dev, state.st_ino):
                is_new = self._file_id is not None
                self._begin()
                self._file_id = (state.st_dev, state.st_ino)
            file.seek(self._place)
            content = file.read()
        self._place += len(content)
        lines = (self._rest + content).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MOST_LINE:
            raise BadInput(f"{self._path} is not a recording of chipwise.", remedy="Name another file.")
        try:
            return [sample for line in lines if (sample := self._decoder.take(line)) is not None], is_new
        except ValueError:
            raise BadInput(f"{self._path} is not a recording of chipwise.", remedy="Name another file.") from None
