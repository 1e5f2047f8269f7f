"""The folder of one attempt: what it is ordered to do, and what it says of itself. Every file is whole or not there.

order.json     what to run; written by the engine before the supervisor starts
lock           held (flock) while the supervisor or a process of the job lives
state.json     written once, before the first process starts: the attempt has begun, and never begins again
leave.json     somebody wants it to save and go: until when, and why
notice.json    the same, for the program itself to read
progress.json  how far it is, as its program tells
ended.json     written last, when nothing of it runs any more
log, log.1 ... what it printed, the newest in `log`
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

ORDER, LOCK, STATE, LEAVE, NOTICE, PROGRESS, ENDED, LOG = (
    "order.json", "lock", "state.json", "leave.json", "notice.json", "progress.json", "ended.json", "log",
)  # fmt: skip


def read(folder: Path, name: str) -> dict[str, Any] | None:
    """None: it is not there, or no longer what we wrote."""
    try:
        found = json.loads((folder / name).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write(folder: Path, name: str, content: Mapping[str, object]) -> None:
    """Whole, and on the disk when this returns."""
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / name)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync(folder)


def sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(path: Path) -> int | None:
    """A lock that lives as long as somebody holds the descriptor; None: it is taken."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def locked(path: Path) -> bool:
    """Whether somebody holds it now."""
    if not path.exists():
        return False
    handle = lock(path)
    if handle is None:
        return True
    os.close(handle)
    return False
