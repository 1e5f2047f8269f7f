"""A directory as a place for checkpoints.

Written under a temporary name, flushed to the disk, renamed, and the directory flushed: after a crash or a loss of power a name
holds all of its content or does not exist. Every operation that changes the disk goes through `Files`, a seam thin enough
to be replaced by one that fails or stops anywhere, which is how the tests prove the order of operations.

A living writer holds a POSIX record lock: the kernel frees it when the process ends in whatever way, children made by fork do
not inherit it, and it reaches over hosts on NFS. Where locks do not work, age decides (`sweeping.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from chipwise.job.store import Buffer

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

_CHUNK = 4 << 20
_PATIENCE_S = 2.0  # for a lock: one that sweeps holds it for a moment, and one that was killed is soon gone
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_locks: dict[tuple[int, str], tuple[int, int]] = {}  # (process, path) -> (descriptor, holders); a forked child holds nothing


class Files:
    """The operations that change a disk, one call each."""

    def create(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)

    def write(self, descriptor: int, data: Buffer) -> int:
        return os.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            import shutil

            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def sync_directory(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Local:
    quick = True

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        self.directory = directory.absolute()
        self.location = str(self.directory)
        self.files = files or Files()

    def prepare(self) -> None:
        missing = []
        path = self.directory
        while not path.exists() and path != path.parent:
            missing.append(path)
            path = path.parent
        self.directory.mkdir(parents=True, exist_ok=True)
        for new in missing:
            self.files.sync_directory(new.parent)

    def names(self) -> list[str]:
        try:
            return os.listdir(self.directory)
        except FileNotFoundError:
            return []

    def age_s(self, name: str) -> float | None:
        try:
            return time.time() - os.stat(self.directory / name).st_mtime
        except OSError:
            return None

    def size(self, name: str) -> int:
        return os.stat(self.directory / name).st_size

    def read(self, name: str) -> bytearray:
        with open(self.directory / name, "rb", buffering=0) as file:
            content = bytearray(os.fstat(file.fileno()).st_size)
            view, filled = memoryview(content), 0
            while filled < len(content):
                size = file.readinto(view[filled : filled + _CHUNK])
                if not size:
                    break
                filled += size
        view.release()
        del content[filled:]
        return content

    def chunks(self, name: str) -> Iterator[bytes]:
        with open(self.directory / name, "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    def put(self, name: str, parts: Iterable[Buffer], temporary: str, *, lasting: bool = True) -> None:
        path = self.directory / temporary
        descriptor = self.files.create(path)
        try:
            try:
                for part in parts:
                    view = memoryview(part).cast("B")
                    while view.nbytes:
                        view = view[self.files.write(descriptor, view[:_CHUNK]) :]
                if lasting:
                    self.files.sync(descriptor)
            finally:
                os.close(descriptor)
            self.files.rename(path, self.directory / name)
        except Exception:
            with contextlib.suppress(OSError):
                self.files.remove(path)
            raise
        if lasting:
            self.files.sync_directory(self.directory)

    def remove(self, *names: str) -> None:
        for name in names:
            self.files.remove(self.directory / name)
        if names:
            self.files.sync_directory(self.directory)

    def hold(self, lock: str) -> bool:
        path = str(self.directory / lock)
        key = (os.getpid(), path)
        if key in _locks:
            _locks[key] = (_locks[key][0], _locks[key][1] + 1)
            return True
        until = time.monotonic() + _PATIENCE_S
        while (locked := self._try_lock(path, create=True)) is None:
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        if locked >= 0:
            os.ftruncate(locked, 0)
            os.pwrite(locked, f"{os.uname().nodename} {os.getpid()}\n".encode(), 0)
        _locks[key] = (locked, 1)
        return True

    def free(self, lock: str) -> None:
        path = str(self.directory / lock)
        key = (os.getpid(), path)
        descriptor, holders = _locks.get(key, (-1, 0))
        if holders > 1:
            _locks[key] = (descriptor, holders - 1)
        elif holders:
            del _locks[key]
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                os.close(descriptor)

    def abandoned(self, lock: str) -> bool | None:
        path = str(self.directory / lock)
        if (os.getpid(), path) in _locks:
            return False
        try:
            host = Path(path).read_text().partition(" ")[0]
        except FileNotFoundError:
            return True  # a writer makes its lock first and removes it last
        except OSError:
            return None
        descriptor = self._try_lock(path, create=False)
        if descriptor is None:
            return False
        if descriptor < 0:
            return None
        with contextlib.suppress(OSError):
            if host == os.uname().nodename:
                os.unlink(path)
        os.close(descriptor)
        return True if host == os.uname().nodename else None  # not every shared file system shares its locks

    def _try_lock(self, path: str, *, create: bool) -> int | None:
        """A descriptor that holds the lock; None where another process does; -1 where there are no locks."""
        if fcntl is None:
            return -1
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
        except FileNotFoundError:
            return -1
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_ino == os.stat(path).st_ino:  # else it was swept between opening and locking
                return descriptor
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in _NO_LOCKS:
                os.close(descriptor)
                return -1
        os.close(descriptor)
        return None
