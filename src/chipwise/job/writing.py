"""Writing one checkpoint: data, then (sharded) the word of every rank, then the manifest.

The order is the promise: whatever is interrupted, either the manifest is there and all it names is on the disk, or the
checkpoint does not exist and the one before it does.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chipwise.errors import ChipwiseError, OutsideFailed
from chipwise.job import claiming, names, tree
from chipwise.job.errors import CannotSave
from chipwise.job.local import Local
from chipwise.job.manifest import Entry, Manifest
from chipwise.job.store import Buffer, Store
from chipwise.job.tree import Snapshot
from chipwise.job.writer import Writer, fresh_mark

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_LOOK_S = (0.01, 0.5)  # first and longest pause between looks for other ranks; twenty times longer where a look is a request


def write(
    store: Store, writer: Writer, session: str, patience_s: float, origin: int, step: int, shot: Snapshot
) -> Manifest | None:
    """The manifest where this rank committed it, None where another did. `origin`: the step that this run went on from."""
    with save_errors(store, step, shot):
        claiming.check_fence(store, writer)
        name = names.data(step, writer.attempt, writer.rank, 1 if writer.replicated else writer.world, fresh_mark())
        entry = put_measured(store, writer, name, tree.parts(shot))
        if not writer.sharded:
            return commit(store, writer, step, [entry])
        if not writer.commits:
            _announce_until_committed(store, writer, patience_s, origin, step, entry)
            return None
        return commit(store, writer, step, [entry, *_collect(store, writer, session, patience_s, origin, step)])


def put_measured(store: Store, writer: Writer, name: str, parts: Iterable[Buffer]) -> Entry:
    digest, size = hashlib.sha256(), 0

    def measured() -> Iterator[Buffer]:
        nonlocal size
        for part in parts:
            digest.update(part)
            size += memoryview(part).nbytes
            yield part

    store.put(name, measured(), writer.temporary())
    return Entry(name, size, digest.hexdigest(), writer.rank)


def commit(store: Store, writer: Writer, step: int, entries: list[Entry], folder: str | None = None) -> Manifest:
    claiming.check_fence(store, writer)
    manifest = Manifest(
        step=step,
        attempt=writer.attempt,
        world=writer.world,
        replicated=writer.replicated or writer.world == 1,
        folder=folder,
        created=time.time(),
        files=tuple(entries),
    )
    store.put(names.manifest(step, writer.attempt), [manifest.to_bytes()], writer.temporary())
    return manifest


def _pauses(store: Store, patience_s: float) -> Iterator[None]:
    """Sleeps between looks until patience ends."""
    pause, longest = (each * (1 if store.quick else 20) for each in _LOOK_S)
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        yield
        time.sleep(min(pause, longest))
        pause *= 1.5


def _collect(store: Store, writer: Writer, session: str, patience_s: float, origin: int, step: int) -> list[Entry]:
    missing = set(range(1, writer.world))
    entries: dict[int, Entry] = {}
    for _ in _pauses(store, patience_s):
        for rank in sorted(missing):
            told_by_rank = _read_shard(store, names.shard(step, writer.attempt, rank, writer.world))
            if told_by_rank.get("session") != session:
                continue  # not there, or left by a run that is gone
            if told_by_rank["origin"] != origin:
                raise CannotSave(
                    f"Rank {rank} went on from step {told_by_rank['origin']} and rank 0 from step {origin}: their states do "
                    f"not belong together, and step {step} was not committed.",
                    remedy="Start all ranks again.",
                )
            entries[rank] = Entry(**told_by_rank["entry"])
            missing.discard(rank)
        if not missing:
            return [entries[rank] for rank in sorted(entries)]
    listed = ", ".join(map(str, sorted(missing)[:20])) + (", ..." if len(missing) > 20 else "")
    raise CannotSave(
        f"Step {step} was not committed: of {writer.world} ranks, rank {listed} did not write its part in {patience_s:.0f} s.",
        remedy="Do all ranks save at the same steps, into the same directory, with the same CHIPWISE_ATTEMPT?",
    )


def _read_shard(store: Store, name: str) -> dict[str, Any]:
    try:
        return dict(json.loads(bytes(store.read(name))))
    except (FileNotFoundError, ValueError, TypeError):
        return {}


def _announce_until_committed(store: Store, writer: Writer, patience_s: float, origin: int, step: int, entry: Entry) -> None:
    """Rank 0 may come later than this rank: its session is looked for until it has committed."""
    announced = None
    for _ in _pauses(store, patience_s):
        session = claiming.read_session(store, writer)
        if session is not None and session != announced:
            word = {"session": session, "origin": origin, "entry": asdict(entry)}
            claiming.put_json(store, names.shard(step, writer.attempt, writer.rank, writer.world), word, writer)
            announced = session
        if announced is not None and _names_file(store, step, writer, entry.name):
            return
    raise _uncommitted(step, patience_s)


def _names_file(store: Store, step: int, writer: Writer, file: str) -> bool:
    try:
        return file.encode() in store.read(names.manifest(step, writer.attempt))
    except FileNotFoundError:
        newest = max(
            (name.order for name in map(names.read, store.names()) if name and name.kind is names.Kind.MANIFEST), default=None
        )
        return newest is not None and newest > (step, writer.attempt)  # it was committed, and rank 0 has gone on


def await_commit(store: Store, writer: Writer, step: int, patience_s: float) -> None:
    """For ranks that write nothing: until rank 0 has committed this step."""
    for _ in _pauses(store, patience_s):
        if _names_file(store, step, writer, ""):
            return
    raise _uncommitted(step, patience_s)


def _uncommitted(step: int, patience_s: float) -> CannotSave:
    return CannotSave(f"Rank 0 did not commit step {step} within {patience_s:.0f} s.", remedy="Its own log says why.")


@contextlib.contextmanager
def save_errors(store: Store, step: int | None, shot: Snapshot | None = None) -> Iterator[None]:
    """Errors while saving (or, without a step, while claiming the place), with the numbers; what is ours passes."""
    try:
        yield
    except ChipwiseError:
        raise
    except OSError as error:
        if step is None:
            raise CannotSave(
                f"Checkpoints cannot be written to {store.location}: {error}.", remedy="Give another directory."
            ) from error
        if error.errno in _FULL and isinstance(store, Local):
            raise _full(store.directory, step, shot.about_bytes if shot else 0, error) from error
        raise CannotSave(
            f"The checkpoint of step {step} could not be written to {store.location}: {error}. Earlier ones are untouched."
        ) from error
    except Exception as error:
        raise CannotSave(f"The checkpoint of step {step} could not be made: {type(error).__name__}: {error}") from error


def _full(directory: Path, step: int, needed: int, error: OSError) -> OutsideFailed:
    disk = os.statvfs(directory)
    free = disk.f_bavail * disk.f_frsize
    if error.errno == errno.ENOSPC:
        reason = f"it has {needed:,} bytes and {directory} has {free:,} free"
        reason += f": {needed - free:,} are missing" if needed > free else " for now"
    else:
        reason = (
            f"it has {needed:,} bytes, and {os.strerror(error.errno or 0).lower()} in {directory} ({free:,} bytes are free)"
        )
    return CannotSave(
        f"The checkpoint of step {step} was not written: {reason}. Earlier ones are untouched.",
        remedy="Make room for one checkpoint more than `keep`, lower keep=, or give another directory.",
    )


def in_folder(
    store: Local, writer: Writer, step: int, fill: Callable[[Path], None], mark: str, together: Callable[[], None]
) -> Manifest | None:
    """Files that another library writes, from all ranks into one folder (`mark` is the same on all), committed like our own.
    `together` returns when all ranks have called it."""
    folder = names.folder(step, writer.attempt, mark)
    with save_errors(store, step):
        claiming.check_fence(store, writer)
        path = store.directory / folder
        path.mkdir(exist_ok=True)
        fill(path)
        together()
        if not writer.commits:
            await_commit(store, writer, step, 600.0)
            return None
        entries = [_entry_of(store, folder, file, at) for at, file in enumerate(sorted(path.rglob("*"))) if file.is_file()]
        for directory in {file.parent for file in path.rglob("*")} | {path, path.parent}:
            store.files.sync_directory(directory)
        return commit(store, writer, step, entries, folder)


def _entry_of(store: Local, folder: str, file: Path, rank: int) -> Entry:
    name = f"{folder}/{file.relative_to(store.directory / folder).as_posix()}"
    descriptor = os.open(file, os.O_RDONLY)
    try:
        store.files.sync(descriptor)
    finally:
        os.close(descriptor)
    digest = hashlib.sha256()
    for chunk in store.chunks(name):
        digest.update(chunk)
    return Entry(name, store.size(name), digest.hexdigest(), rank)
