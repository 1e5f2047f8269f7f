"""Removes what a job that is over left on this disk: logs, checkpoints, orders.

Of each attempt two small files stay: that it began, and that it ended. An order to start it that comes late would otherwise
find nothing, and start it once more.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from chipwise.adapters.supervising import folder

STAYS = frozenset({folder.STATE, folder.ENDED})


def forget(root: Path, id: str) -> int | None:
    """The bytes that were removed; None: something of it still runs, and nothing was touched."""
    home = root / id
    leads_out = id in ("", ".", "..") or os.sep in id  # ids come from a record that others may write to
    if leads_out or home.is_symlink() or not home.is_dir():
        return 0
    attempts = [one for one in home.iterdir() if one.name.isdecimal() and one.is_dir() and not one.is_symlink()]
    held: list[int] = []
    try:
        for at in attempts:  # held meanwhile: no supervisor begins beside us
            lock = folder.lock(at / folder.LOCK)
            if lock is None:
                return None
            held.append(lock)
        others = [one for one in home.iterdir() if one not in attempts]
        return sum(map(_remove, others)) + sum(map(_strip, attempts))
    finally:
        for lock in held:
            os.close(lock)


def _strip(at: Path) -> int:
    return sum(_remove(one) for one in list(at.iterdir()) if one.name not in STAYS)


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
        for at, _, names in os.walk(path):
            for name in names:
                with suppress(OSError):
                    total += os.lstat(os.path.join(at, name)).st_size
    return total
