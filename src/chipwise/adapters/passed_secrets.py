"""Secrets of a submitter, laid where only the controller of this machine looks."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from chipwise.adapters.state_files import give_to
from chipwise.errors import NotAllowed, OutsideFailed


def lay(folder: Path, values: Mapping[str, str]) -> None:
    """For the controller alone: of this user, or of the one to whom the directory above belongs."""
    above = folder.parent.stat() if folder.parent.is_dir() else None
    theirs = above is not None and above.st_mode & stat.S_ISGID and above.st_uid not in (0, os.geteuid())
    controller = above.st_uid if theirs and above is not None else None
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    if above is None or not above.st_mode & stat.S_ISGID:
        with suppress(OSError):
            folder.parent.chmod(0o700)
    place = _own_folder(folder)
    try:
        _give(place, controller, 7, folder)  # the controller removes it
        for name, value in values.items():
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=place)
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=place)
            with os.fdopen(handle, "w") as file:
                _give(handle, controller, 4, folder)
                file.write(value)
    finally:
        os.close(place)


def _own_folder(folder: Path) -> int:
    """Open. Whoever knows the id of a job that is tried again could have made it first, to read what comes in."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if os.fstat(handle).st_uid == os.geteuid():
        return handle
    os.close(handle)
    raise NotAllowed(
        f"{folder} belongs to another user, who could read the secrets.", remedy="Submit the job again with `chipwise run`."
    )


def _give(handle: int, controller: int | None, rights: int, folder: Path) -> None:
    if controller is None:
        return
    try:
        give_to(handle, controller, rights)
    except OSError as error:
        raise OutsideFailed(
            f"A secret cannot be passed to the controller privately: {error.strerror} ({folder.parent}).",
            remedy="Keep the data directory on a file system with ACLs, or let the controller's user store the secret,"
            " and write --secret NAME=STORED.",
        ) from error
