"""Several files that belong together, written all or none.

A directory that is new appears in one step. Into one that is there, each file is put in one step, one writer at a time: whoever
looks, or pulls the plug, finds every file either as it was or as it is to be, never half of one.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from chipwise.adapters.stores.whole import move_new
from chipwise.errors import BadInput

PREFIX = ".chipwise-"  # of a directory in which files are made ready; one that is left belongs to a writer that was killed


def existing_files(folder: Path, names: Sequence[str]) -> list[str]:
    """Those of the files that are there already."""
    return [name for name in names if (folder / name).exists() or (folder / name).is_symlink()]


def check(folder: Path) -> None:
    """Tells what no choice of files could help: that it is a file, or that one may not write there."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file.", remedy="Give a directory with --out.")
    nearest = next((one for one in (folder, *folder.parents) if one.exists()), Path())
    if not nearest.is_dir():
        raise BadInput(f"{nearest} is a file, so that {folder} cannot be made.", remedy="Give another directory with --out.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise BadInput(f"{nearest} cannot be written to.", remedy="Give another directory with --out.")


def write(folder: Path, files: Sequence[tuple[str, str, bool]], force: bool) -> None:
    """Each as (path below `folder`, text, executable). Old files are put back when anything fails on the way."""
    names = [name for name, _, _ in files]
    refuse(folder, names, force)
    new, created = not folder.exists(), _missing(folder)
    fresh = (folder.parent if new else folder) / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        fresh.mkdir(parents=True)
        for name, text, executable in files:
            _put(fresh / "new" / name, text, executable)
        if new:
            _appear(fresh / "new", folder)
        else:
            with _alone(folder):
                _swap(folder, fresh, names, created, force)
    except BaseException as error:
        shutil.rmtree(fresh, ignore_errors=True)
        for directory in reversed(created):
            with suppress(OSError):  # somebody else has put something there
                directory.rmdir()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), str(folder)) from error
        raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def refuse(folder: Path, names: Sequence[str], force: bool) -> None:
    """Tells which of the files cannot be put there."""
    existing = existing_files(folder, names)
    if existing and not force:
        raise _in_the_way(folder, existing)
    for name in existing:
        if not (folder / name).is_file():
            raise BadInput(f"{folder / name} is not a file.", remedy="Write elsewhere with --out.")
    for parent in dict.fromkeys(folder / above for name in names for above in Path(name).parents):
        if (parent.exists() or parent.is_symlink()) and not parent.is_dir():
            raise BadInput(f"{parent} is not a directory.", remedy="Write elsewhere with --out.")


def _in_the_way(folder: Path, names: Sequence[str]) -> BadInput:
    return BadInput(
        f"{', '.join(names[:5])}{' and others' if len(names) > 5 else ''} in {folder} would be overwritten.",
        remedy="Write elsewhere with --out, or overwrite them with --force.",
    )


def _put(path: Path, text: str, executable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if executable:
        path.chmod(path.stat().st_mode | 0o111)


def _appear(ready: Path, folder: Path) -> None:
    try:
        ready.rename(folder)
    except OSError:
        if folder.is_dir():  # somebody made it in the meantime, and put something there
            raise _in_the_way(folder, sorted(path.name for path in folder.iterdir())) from None
        raise


def _swap(folder: Path, fresh: Path, names: Sequence[str], created: list[Path], force: bool) -> None:
    placed: list[str] = []
    try:
        for name in names:
            ready, target, old = fresh / "new" / name, folder / name, fresh / "old" / name
            created.extend(_missing(target.parent))
            target.parent.mkdir(parents=True, exist_ok=True)
            if force and (target.exists() or target.is_symlink()):
                _keep(target, old)
            placed.append(name)
            if force:
                ready.replace(target)
            elif not move_new(ready, target):
                raise _in_the_way(folder, [name])
    except BaseException:
        _put_back(folder, fresh, placed)
        raise


def _keep(target: Path, old: Path) -> None:
    """A second name for what is there, so that it never is without its first."""
    old.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        old.symlink_to(target.readlink())
        return
    try:
        old.hardlink_to(target)
    except OSError:  # a file system without second names
        shutil.copy2(target, old)


def _put_back(folder: Path, fresh: Path, names: Sequence[str]) -> None:
    """By what is found rather than by what was done: a file that is not ours stays."""
    for name in reversed(names):
        ready, target, old = fresh / "new" / name, folder / name, fresh / "old" / name
        if old.exists() or old.is_symlink():
            old.replace(target)
        elif not ready.exists() or (target.exists() and ready.samefile(target)):
            target.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One writer at a time, where the system knows locks; the lock ends with the process, however that ends."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have none
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _missing(folder: Path) -> list[Path]:
    """Directories that must be made for `folder`, the outermost first."""
    folders = []
    while not folder.exists() and folder != folder.parent:
        folders.append(folder)
        folder = folder.parent
    return folders[::-1]
