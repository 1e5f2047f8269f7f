"""What SQLite complains of, in our words: one table, by its codes; and what is looked at before it is asked."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chipwise.errors import BadInput, ChipwiseError, NotAllowed, NotFound, OutsideFailed, TryLater

_ELSEWHERE = "Name another file, or use a PostgreSQL database (postgresql://user@host/database)."
_COPY = "Restore a backup, or move it away and start a new one; `sqlite3 FILE .recover` may save what is in it."

# By the beginning of the code's name, the longest first.
TROUBLES: tuple[tuple[str, Callable[..., ChipwiseError], str, str], ...] = (
    (
        "SQLITE_BUSY",
        TryLater,
        "is held by another process for longer than {wait:g} s",
        "Try again; `fuser FILE` tells who has it.",
    ),
    (
        "SQLITE_CANTOPEN",
        NotAllowed,
        "cannot be opened, or the files that SQLite keeps next to it (-wal, -shm) cannot",
        "Check that the file and its folder can be written by you.",
    ),
    ("SQLITE_CONSTRAINT_TRIGGER", NotAllowed, "refuses: {said}", "Recorded events are never changed."),
    ("SQLITE_CORRUPT", OutsideFailed, "is damaged or cut off", _COPY),
    ("SQLITE_FULL", OutsideFailed, "cannot grow: the disk is full", "Free some space; nothing was half written."),
    ("SQLITE_IOERR", OutsideFailed, "could not be read or written by the system ({code})", f"Look at the disk. {_ELSEWHERE}"),
    ("SQLITE_LOCKED", TryLater, "is held by another part of this process", "Try again."),
    ("SQLITE_NOTADB", BadInput, "is not a SQLite database", _ELSEWHERE),
    ("SQLITE_PERM", NotAllowed, "may not be used by you", _ELSEWHERE),
    (
        "SQLITE_PROTOCOL",
        OutsideFailed,
        "is on a disk where locks do not work",
        f"The database needs a local disk. {_ELSEWHERE}",
    ),
    ("SQLITE_READONLY", NotAllowed, "can only be read", "Give yourself the right to write the file and its folder."),
    ("SQLITE_TOOBIG", BadInput, "takes no text of that length", "Keep large things in files, and their names in the database."),
)
_SYSTEM: tuple[tuple[type[OSError], Callable[..., ChipwiseError], str], ...] = (
    (PermissionError, NotAllowed, "may not be made by you"),
    (NotADirectoryError, BadInput, "is inside something that is not a folder"),
    (IsADirectoryError, BadInput, "is a folder"),
    (FileExistsError, BadInput, "is inside something that is not a folder"),
    (FileNotFoundError, NotFound, "no longer exists"),
)
# Write-ahead logging shares memory between processes, which no network file system does; their locks fail silently, too.
_NETWORK = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs"),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone"),
        *("fuse.goofys", "fuse.mount-s3", "fuse.mountpoint-s3", "fuse.juicefs", "fuse.blobfuse", "fuse.blobfuse2"),
    )
)
_MOUNTS = Path("/proc/self/mounts")


class Unsound(sqlite3.DatabaseError):
    """What SQLite reads without complaint, and cannot be of a record that is whole."""

    sqlite_errorname = "SQLITE_CORRUPT"


@contextmanager
def translated(path: Path, wait_s: float) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise translated_error(error, path, wait_s) from error


def translated_error(error: sqlite3.Error, path: Path, wait_s: float) -> ChipwiseError:
    code = getattr(error, "sqlite_errorname", None) or ""
    for begins, kind, text, remedy in TROUBLES:
        if code.startswith(begins):
            return kind(f"The database {path} {text.format(wait=wait_s, said=error, code=code)}.", remedy=remedy)
    return OutsideFailed(f"The database {path} failed: {error} ({code or type(error).__name__}).")


def of_system(error: OSError, path: Path) -> ChipwiseError:
    if error.errno == errno.EROFS:
        return NotAllowed(f"The database {path} is on a read-only file system.", remedy=_ELSEWHERE)
    for family, kind, text in _SYSTEM:
        if isinstance(error, family):
            return kind(f"The database {path} {text}.", remedy=_ELSEWHERE)
    return OutsideFailed(f"The database {path} could not be created: {error.strerror or error}.", remedy=_ELSEWHERE)


def refuse_network(path: Path, mounts: str | None = None) -> None:
    """Where the system can tell (Linux); elsewhere SQLite's own locks are what there is."""
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
    real = os.path.realpath(path)
    deepest, kind = "", ""
    for line in mounts.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        mount = parts[1].replace("\\040", " ")
        if (real == mount or real.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(deepest):
            deepest, kind = mount, parts[2]
    if kind in _NETWORK:
        raise BadInput(
            f"The database {path} is on a network file system ({kind} at {deepest}), where SQLite can lose what is written.",
            remedy=f"The database needs a local disk. {_ELSEWHERE}",
        )
