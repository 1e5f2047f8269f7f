"""What a job printed: the files of all its attempts in order, and on as it grows."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.adapters import state_files
from chipwise.adapters.engines.local.folder import ORDER
from chipwise.api.running.installed import package_or_none
from chipwise.api.running.place import is_here
from chipwise.errors import NotFound, OutsideFailed
from chipwise.runner.abilities import NumbersRanks, TellsLogs
from chipwise.runner.job import Job

if TYPE_CHECKING:
    from chipwise.api.running.held import Runtime

CHUNK = 1 << 16
LOOK_S = 0.1
SLOWLY_S = 0.5  # where each look is a request


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


# What other engines keep.


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


# Wherever it runs.


def follow_job(runtime: Runtime, look: Callable[[], Job], rank: int | None = None) -> Iterator[bytes]:
    job = look()
    engine = _logs(runtime, job)
    if engine is None:
        _still_here(runtime, job, None)
        return follow(runtime.root, look)
    return follow_told(engine, look, rank)


def follow_from(runtime: Runtime, look: Callable[[], Job], lines: int, rank: int | None = None) -> Iterator[bytes]:
    """The last lines of the newest attempt, and on from there. Elsewhere of one machine or pod, the first unless another is
    named: what follows can only be of one."""
    job = look()
    engine, number = _logs(runtime, job), max(len(job.attempts), 1)
    if engine is None:
        if job.attempts:
            yield tail_of(runtime, job, number, lines)
        yield from follow(runtime.root, look, from_end=True)
        return
    rank, so_far = rank or 0, 0
    end = _Tail(lines)
    if job.attempts:
        with suppress(OutsideFailed):  # not begun yet, or its machine does not answer now: then from the beginning
            for piece in engine.logs(job, number, follow=False, rank=rank):
                so_far += len(piece)
                end.add(piece)
    yield end.text
    yield from follow_told(engine, look, rank, number, so_far)


def _logs(runtime: Runtime, job: Job) -> TellsLogs | None:
    """None: they are files of this machine."""
    engine = runtime.engine_of(job)
    if engine is not None and not isinstance(engine, TellsLogs):
        raise NotFound(
            f"{job.spec.engine} does not provide the output of jobs.", remedy="Let the job write it where you can read it."
        )
    return engine


class _Tail:
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


def check_rank(job: Job, number: int | None, rank: int | None) -> None:
    """Where that can be told before anything is asked for."""
    if rank is not None and isinstance(kind := package_or_none(job.spec.engine), NumbersRanks):
        kind.check_rank(job, number, rank)


def printed_by(runtime: Runtime, job: Job, number: int | None, rank: int | None = None) -> Iterator[bytes]:
    engine = _logs(runtime, job)
    if engine is None:
        _still_here(runtime, job, number)
        return printed(runtime.root, job, number)
    return attempt_logs(engine, job, number, rank)


def tail_of(runtime: Runtime, job: Job, number: int | None, lines: int, rank: int | None = None) -> bytes:
    engine = _logs(runtime, job)
    if engine is None:
        _still_here(runtime, job, number)
        return tail(runtime.root, job, number, lines)
    end = _Tail(lines)
    for piece in attempt_logs(engine, job, number, rank):
        end.add(piece)
    return end.text


def _still_here(runtime: Runtime, job: Job, number: int | None) -> None:
    """An empty output is one thing, one that somebody removed another: an attempt that is kept has its order."""
    folders = attempts(runtime.root, job, number)
    if not job.phase.over or not folders or any((one / ORDER).exists() or parts(one) for one in folders):
        return
    if not is_here(runtime.session, job.spec):
        raise NotFound(
            f"What {job.id} printed is not on this machine.", remedy=f"It ran at {job.spec.place}: run the command there."
        )
    if not any(one.begun is not None for one in job.attempts):
        reason = f": {job.reason}" if job.reason else ""
        raise NotFound(
            f"{job.id} never started, and printed nothing{reason}.", remedy=f"`chipwise describe {job.id}` shows why."
        )
    raise NotFound(f"What {job.id} printed was deleted.", remedy=f"`chipwise describe {job.id}` still shows what happened.")
