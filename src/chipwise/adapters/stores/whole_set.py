"""Several files that belong together, written all or none."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from chipwise.errors import BadInput


def taken(folder: Path, names: Sequence[str]) -> list[str]:
    """Those of the files that are there already."""
    return [name for name in names if (folder / name).exists() or (folder / name).is_symlink()]


def write(folder: Path, files: Sequence[tuple[str, str, bool]], force: bool) -> None:
    """Each as (path below `folder`, text, executable). Old files are put back when anything fails on the way."""
    there = taken(folder, [name for name, _, _ in files])
    if there and not force:
        raise BadInput(
            f"{', '.join(there[:5])}{' and others' if len(there) > 5 else ''} in {folder} would be overwritten.",
            remedy="Write elsewhere with --out, or allow it with --force.",
        )
    for name in there:
        if not (folder / name).is_file():
            raise BadInput(f"{folder / name} is not a file.", remedy="Write elsewhere with --out.")
    made = _missing(folder)
    fresh = folder / f".chipwise-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        fresh.mkdir(parents=True)
        for name, text, executable in files:
            _put(fresh / "new" / name, text, executable)
        _swap(folder, fresh, [name for name, _, _ in files], made)
    except OSError as error:
        for directory in reversed(made):
            shutil.rmtree(fresh, ignore_errors=True)
            _rmdir(directory)
        raise OSError(error.errno, error.strerror or str(error), str(folder)) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _put(path: Path, text: str, executable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if executable:
        path.chmod(path.stat().st_mode | 0o111)


def _swap(folder: Path, fresh: Path, names: Sequence[str], made: list[Path]) -> None:
    moved: list[str] = []
    try:
        for name in names:
            target = folder / name
            made.extend(_missing(target.parent))
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() or target.is_symlink():
                old = fresh / "old" / name
                old.parent.mkdir(parents=True, exist_ok=True)
                target.replace(old)
            moved.append(name)
            (fresh / "new" / name).replace(target)
    except BaseException:
        for name in reversed(moved):
            (folder / name).unlink(missing_ok=True)
            if (fresh / "old" / name).exists():
                (fresh / "old" / name).replace(folder / name)
        raise


def _missing(folder: Path) -> list[Path]:
    """Directories that must be made for `folder`, the outermost first."""
    found = []
    while not folder.exists():
        found.append(folder)
        folder = folder.parent
    return found[::-1]


def _rmdir(directory: Path) -> None:
    try:
        directory.rmdir()
    except OSError:  # somebody else has put something there
        return
