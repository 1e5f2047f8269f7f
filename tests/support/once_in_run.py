"""What takes long to make is made by one worker of a test run, and read by the others."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")
_folder: Path | None = None


def share_in(folder: Path | None) -> None:
    """A folder of this run that all its workers know; None: what is made stays in this process."""
    global _folder
    _folder = folder
    if folder is not None:
        folder.mkdir(mode=0o700, exist_ok=True)


def once_in_run(question: object, make: Callable[[], Value]) -> Value:
    """A value that can be written down, by a question whose text is its own. Two workers may make it at the same time."""
    if _folder is None:
        return make()
    path = _folder / sha256(repr(question).encode()).hexdigest()
    if path.exists():
        value: Value = pickle.loads(path.read_bytes())
        return value
    value = make()
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_bytes(pickle.dumps(value))
    beside.replace(path)
    return value
