"""A disk that stops in the middle: after a given number of operations the process is as good as dead.

With `power` the machine is dead too: of what was not flushed, any part may be missing. Files that were not synced are cut
anywhere, renames and removals whose directory was not synced may or may not have happened, each by itself.
"""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

from chipwise.job import local
from chipwise.job.local import Files
from chipwise.job.store import Buffer


class Stopped(BaseException):
    """No `except Exception` tidies up after a dead process."""


class FragileFiles(Files):
    def __init__(self, after: int | None = None, power: random.Random | None = None) -> None:
        self.after = after
        self.power = power
        self.operations = 0
        self.dead = False
        self._open: dict[int, Path] = {}
        self._unsynced: set[Path] = set()
        self._renamed: list[tuple[Path, Path, bytes | None]] = []
        self._removed: list[tuple[Path, bytes]] = []

    def _next(self) -> None:
        if self.dead or self.operations == self.after:
            if not self.dead:
                self.dead = True
                if self.power:
                    self._lose_power(self.power)
            raise Stopped
        self.operations += 1

    def create(self, path: Path) -> int:
        self._next()
        descriptor = super().create(path)
        self._open[descriptor] = path
        self._unsynced.add(path)
        return descriptor

    def write(self, descriptor: int, data: Buffer) -> int:
        try:
            self._next()
        except Stopped:
            if not self.power and self.operations == self.after:
                super().write(descriptor, memoryview(data)[: len(data) // 2])
            raise
        return super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self._next()
        self._unsynced.discard(self._open.pop(descriptor))

    def rename(self, old: Path, new: Path) -> None:
        self._next()
        before = new.read_bytes() if new.exists() else None
        super().rename(old, new)
        self._renamed.append((old, new, before))
        if old in self._unsynced:
            self._unsynced = self._unsynced - {old} | {new}

    def remove(self, path: Path) -> None:
        self._next()
        if path.exists():
            self._removed.append((path, path.read_bytes()))
        super().remove(path)

    def sync_directory(self, path: Path) -> None:
        self._next()
        self._renamed.clear()
        self._removed.clear()

    def _lose_power(self, dice: random.Random) -> None:
        for path in self._unsynced:
            with contextlib.suppress(FileNotFoundError):
                os.truncate(path, dice.randint(0, path.stat().st_size))
        for old, new, before in reversed(self._renamed):
            if dice.random() < 0.5 and new.exists():
                old.write_bytes(new.read_bytes())
                new.unlink() if before is None else new.write_bytes(before)
        for path, content in self._removed:
            if dice.random() < 0.5:
                path.write_bytes(content)


def forget_locks() -> None:
    """What the kernel does when a process ends."""
    for key, (descriptor, _) in list(local._locks.items()):
        if descriptor >= 0:
            os.close(descriptor)
        del local._locks[key]
