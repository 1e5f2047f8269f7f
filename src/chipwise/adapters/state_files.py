"""Small files of state that several processes share: each is whole or not there, and a lock lives as long as its holder.

What is read may have been written by anybody: a field is taken only where it holds what it should.

In a directory of a group (readable by it, with the setgid bit) what is written can be read by the group, as people need who
submit to a controller of another system user. Nobody but the owner ever writes here: an order is a command.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import stat
import struct
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from chipwise.runner.writing import LARGEST_COUNT, LARGEST_NUMBER

_OF_A_GROUP = stat.S_ISGID | stat.S_IRGRP | stat.S_IXGRP
MOST_BYTES = 64 << 20  # of one file
STATUS_BYTES = 64 << 10  # of one that a program writes: it is read at every look, for all jobs of the place


def read(folder: Path, name: str, *, follows_links: bool = True, max_bytes: int = MOST_BYTES) -> dict[str, Any] | None:
    """None: it is not there, or no longer what we wrote. Numbers in it are finite, since a record takes no others."""
    try:
        text = regular_bytes(folder / name, follows_links=follows_links, max_bytes=max_bytes).decode()
        value = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def regular_bytes(
    path: Path | str, *, follows_links: bool = True, folder_handle: int | None = None, max_bytes: int = MOST_BYTES
) -> bytes:
    """Of a file and of nothing else, and not more than `max_bytes`. `folder_handle`: an open folder in which it lies."""
    with os.fdopen(open_regular(path, follows_links=follows_links, folder_handle=folder_handle), "rb") as file:
        return file.read(max_bytes)


def open_regular(path: Path | str, *, follows_links: bool = True, folder_handle: int | None = None) -> int:
    """A descriptor to read from. Reading a pipe that a program put there would wait for ever, and a link may name a file that
    only we can read: ValueError."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        handle = os.open(path, flags if follows_links else flags | os.O_NOFOLLOW, dir_fd=folder_handle)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device without its driver
            raise ValueError(f"{path} is no file") from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError(f"{path} is no file")
    return handle


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a usable number")
    return value


def number(fields: Mapping[str, Any], name: str) -> float | None:
    """A field that holds one; whoever writes into the folder may have put anything there."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -LARGEST_NUMBER <= value <= LARGEST_NUMBER else None


def integer(fields: Mapping[str, Any], name: str) -> int | None:
    """A field that holds a count or a code, within what a database takes."""
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_COUNT else None


def words(fields: Mapping[str, Any], name: str) -> str:
    """A field that holds some, as a record takes them."""
    value = fields.get(name)
    return value[:2000].encode(errors="replace").decode().replace("\0", "") if isinstance(value, str) else ""


def is_shared(folder: Path) -> bool:
    """Whether it belongs to a group that may read what is in it."""
    try:
        mode = os.stat(folder).st_mode
    except OSError:
        return False
    return mode & _OF_A_GROUP == _OF_A_GROUP


def make_folder(folder: Path) -> None:
    """With those above it that are missing: for the owner, and for the group to read where the one above is the group's."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    if is_shared(folder.parent):
        folder.chmod(0o2750)


def file_mode(folder: Path) -> int:
    return 0o640 if is_shared(folder) else 0o600


def write(
    folder: Path,
    name: str,
    content: Mapping[str, object],
    *,
    private: bool = False,
    owner: tuple[int, int] | None = None,
    durable: bool = True,
) -> None:
    """Whole, and on the disk when this returns; where it need not be `durable`, only whole. `owner`: user and group to whom it
    is given."""
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    try:
        os.fchmod(handle, 0o600 if private else file_mode(folder))
        if owner is not None:
            os.fchown(handle, *owner)
        with os.fdopen(handle, "w") as file:
            json.dump(content, file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, folder / name)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync(folder)


def taken_over(passing: Path) -> Path:
    """Where secrets are kept that other system users left in `passing`, once their job has begun."""
    return passing.with_name("taken")


def give_to(handle: int, user: int, rights: int) -> None:
    """Lets one other system user at an open file or folder of ours, by an access list, and nobody else: OSError where the file
    system keeps none."""
    if not hasattr(os, "setxattr"):
        raise OSError(errno.ENOTSUP, "no access lists")
    none = 0xFFFFFFFF  # the tags: its owner, that user, its group, what of these counts, all others
    entries = ((0x01, rights | 6, none), (0x02, rights, user), (0x04, 0, none), (0x10, rights, none), (0x20, 0, none))
    os.setxattr(handle, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries))


def sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(path: Path) -> int | None:
    """A lock that lives as long as somebody holds the descriptor; None: it is taken."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_mode(path.parent))
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def locked(path: Path) -> bool:
    """Whether somebody holds it now; whoever can read the file can ask."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
