"""What a job on this machine printed: the files of all its attempts in order, and on as they grow."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from chipwise.adapters import state_files
from chipwise.errors import OutsideFailed
from chipwise.runner.job import Job

CHUNK = 1 << 16
LOOK_S = 0.1


def parts(folder: Path) -> list[Path]:
    """Of one attempt, the oldest first."""
    numbered = sorted((int(path.suffix[1:]), path) for path in folder.glob("log.*") if path.suffix[1:].isdecimal())
    return [*(path for _, path in reversed(numbered)), *([folder / "log"] if os.path.lexists(folder / "log") else [])]


def attempts(root: Path, job: Job, number: int | None) -> list[Path]:
    wanted = range(1, len(job.attempts) + 1) if number is None else [number]
    return [root / job.id / str(one) for one in wanted]


def printed(root: Path, job: Job, number: int | None = None) -> Iterator[bytes]:
    for folder in attempts(root, job, number):
        for path in parts(folder):
            with os.fdopen(_opened(path), "rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk


def tail(root: Path, job: Job, number: int | None, lines: int) -> bytes:
    """The last lines, without reading what comes before."""
    chunks: list[bytes] = []
    count = 0
    for folder in reversed(attempts(root, job, number)):
        for path in reversed(parts(folder)):
            with os.fdopen(_opened(path), "rb") as file:
                size, rest = os.fstat(file.fileno()).st_size, b""
                while size > 0 and count + rest.count(b"\n") <= lines:
                    start = max(size - CHUNK, 0)
                    file.seek(start)
                    rest = file.read(size - start) + rest
                    size = start
            chunks.insert(0, rest)
            count += rest.count(b"\n")
            if count > lines:
                return b"".join(b"".join(chunks).splitlines(keepends=True)[-lines:]) if lines else b""
    return b"".join(b"".join(chunks).splitlines(keepends=True)[-lines:]) if lines else b""


def follow(root: Path, look: Callable[[], Job], from_end: bool = False) -> Iterator[bytes]:
    """Until the job is over and all of it was read. A file that is rotated away is read to its end first."""
    job = look()
    number = max(len(job.attempts), 1) if from_end else 1
    handle: int | None = None
    at_end = from_end
    try:
        while True:
            folder = root / job.id / str(number)
            if handle is None:
                with suppress(OSError):  # nothing was printed yet
                    handle = _opened(folder / "log")
                if handle is not None and at_end:
                    os.lseek(handle, 0, os.SEEK_END)
                at_end = False
            chunk = os.read(handle, CHUNK) if handle is not None else b""
            if chunk:
                yield chunk
                continue
            if handle is not None and _rotated(handle, folder):
                os.close(handle)
                handle = None
                continue
            finished = job.phase.over or len(job.attempts) > number
            if finished and not chunk:
                if len(job.attempts) > number:
                    _closed(handle)
                    number, handle = number + 1, None
                    continue
                return
            time.sleep(LOOK_S)
            job = look()
    finally:
        _closed(handle)


def _opened(path: Path) -> int:
    """The folder is its program's to write: what it put in place of a log is not waited for, and a link may lead to a file of
    whoever reads."""
    if path.is_symlink():
        raise _no_log(path)
    try:
        return state_files.open_regular(path, follows_links=False)
    except ValueError:
        raise _no_log(path) from None


def _no_log(path: Path) -> OutsideFailed:
    return OutsideFailed(f"{path} is not a file, so it is not shown.", remedy="The program replaced it; check the path.")


def _closed(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


def _rotated(handle: int, folder: Path) -> bool:
    try:
        return os.fstat(handle).st_ino != (folder / "log").stat().st_ino
    except OSError:
        return False
