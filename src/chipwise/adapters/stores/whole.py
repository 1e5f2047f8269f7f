"""Text files that are written whole or not at all: beside their place first, then moved over the old one in one step.

Files of ours (`write`) are replaced. Where a person names the file (`write_named`), what is there may be theirs: it stays,
unless they say so, and nothing is ever written through a link.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from chipwise.errors import BadInput

_STREAM = re.compile(r"/dev/(?:null|stdout|stderr|fd/\d+)|/proc/self/fd/\d+")


def write(path: Path, text: str) -> Path:
    """Whatever happens, the old file is whole until the new one is. Raises OSError that names `path`."""
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        _replace(target, text)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    return path


def check_named(path: Path, force: bool) -> None:
    """Raises what `write_named` would raise for reasons that are known beforehand."""
    if _is_stream(path):
        return
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    if mode is not None and stat.S_ISLNK(mode) and not _of_system(path):
        if not force:
            raise BadInput(
                f"{path} is a link, and was left as it is.",
                remedy="Name another file, or replace the link by a file with --force; what it leads to is not touched.",
            )
    elif mode is not None and not stat.S_ISREG(mode):
        raise BadInput(f"{path} is not a file, and cannot be written.", remedy="Give the name of a file that is not there yet.")
    elif mode is not None and not force:
        raise in_the_way(path)
    if not path.parent.is_dir():
        raise BadInput(
            f"{path} cannot be written: there is no directory {path.parent}.", remedy="Create it, or write elsewhere."
        )


def write_named(path: Path, text: str, force: bool) -> Path:
    """As `write`, to a place that a person named. Raises BadInput where something is there and `force` is not given."""
    check_named(path, force)
    try:
        if _is_stream(path):
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOCTTY), "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
        else:
            _replace(path, text, force)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    return path


def in_the_way(path: Path) -> BadInput:
    return BadInput(f"{path} exists already, and was left as it is.", remedy="Name another file, or overwrite it with --force.")


def _is_stream(path: Path) -> bool:
    """What a shell passes as a place to write to, and the null device: nothing is there to be lost, and somebody reads."""
    if not _STREAM.fullmatch(str(path)):
        return False
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _of_system(path: Path) -> bool:
    """Links there are the system's own, and not for us to replace."""
    return str(path.absolute()).startswith(("/dev/", "/proc/"))


def _replace(target: Path, text: str, force: bool = True) -> None:
    temporary = target.parent / f".{target.name[:60]}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if not force:
            if not move_new(temporary, target):
                raise in_the_way(target)
            return
        if target.is_file() and not target.is_symlink():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def move_new(ready: Path, target: Path) -> bool:
    """Moves what is ready to where nothing is. False: another writer was faster."""
    try:
        target.hardlink_to(ready)
    except FileExistsError:
        return False
    except OSError:  # a file system without second names
        if target.exists() or target.is_symlink():
            return False
        ready.replace(target)
    return True


def remove(path: Path) -> bool:
    """False where there was nothing to remove."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
