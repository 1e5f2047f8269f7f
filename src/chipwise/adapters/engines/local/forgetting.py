"""Removes what a job that is over left on this disk: logs, checkpoints, orders.

Of each attempt two small files stay: that it began, and that it ended. An order to start it that comes late would otherwise
find nothing, and start it once more.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from chipwise.runner.permits import is_file_name

from . import folder

STAYS = frozenset({folder.STATE, folder.ENDED})


CHECKPOINTS = "checkpoints"


def forget(root: Path, id: str, *, checkpoints: bool = True, dry_run: bool = False) -> int | None:
    """The bytes that were removed, or would be in a dry run; None: some of its processes still run, and nothing was touched.
    Without `checkpoints` those stay."""
    home = root / id  # ids come from a record that others may write to
    if not is_file_name(id) or home.is_symlink() or not home.is_dir():
        return 0
    attempts = [one for one in home.iterdir() if one.name.isdecimal() and one.is_dir() and not one.is_symlink()]
    locks: list[int] = []
    try:
        for attempt in attempts:  # held meanwhile: no supervisor begins beside us
            if dry_run:
                if folder.locked(attempt / folder.LOCK):
                    return None
                continue
            lock = folder.lock(attempt / folder.LOCK)
            if lock is None:
                return None
            locks.append(lock)
        files = [one for one in home.iterdir() if one not in attempts and (checkpoints or one.name != CHECKPOINTS)]
        inside = [one for at in attempts for one in at.iterdir() if one.name not in STAYS]
        return sum(map(size_of if dry_run else _remove, [*files, *inside]))
    finally:
        for lock in locks:
            os.close(lock)


def checkpoints_of(root: Path, id: str) -> int:
    """The bytes of those that are here."""
    return size_of(root / id / CHECKPOINTS) if is_file_name(id) else 0


def _remove(path: Path) -> int:
    size = size_of(path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return size


def size_of(path: Path) -> int:
    """Links count as themselves."""
    total = 0
    with suppress(OSError):
        total += path.lstat().st_size if not path.is_dir() or path.is_symlink() else 0
    if path.is_dir() and not path.is_symlink():
        for parent, _, names in os.walk(path):
            for name in names:
                with suppress(OSError):
                    total += os.lstat(os.path.join(parent, name)).st_size
    return total
