"""Secrets that submitters hand in: each lies in a folder of its submitter that only the controller's user can read as well.

One that comes from another system user is taken over when its job begins. The folder may be anybody's who knows the id of the
job: links in it are not followed, and where the owner of the job is a system user by that name, nobody else hands in for it.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.runner.job import Job
from chipwise.runner.permits import is_file_name

from . import folder

LONGEST_BYTES = 128 << 10  # of one: Linux takes no longer variable
ALL_BYTES = 1 << 20


def file_of(passing: Path, job: Job, setting: str) -> Path:
    """Where the value of a setting is, if it was handed in."""
    handed, own = passing / job.id, folder.taken_over(passing) / job.id
    with suppress(OSError):
        place = os.open(handed, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            user = os.fstat(place).st_uid
            if user == os.geteuid() and not folder.is_shared(handed):
                return own / setting if own.is_dir() else handed / setting
            if _may_hand_in(user, job.spec.owner):
                _copy(place, own, job.spec.secrets)
        finally:
            os.close(place)
        shutil.rmtree(handed)
    return own / setting


def _may_hand_in(user: int, owner: str) -> bool:
    """Anybody, where no system user is called as the record calls the owner."""
    try:
        return user in (pwd.getpwnam(owner).pw_uid, os.geteuid(), 0)
    except (KeyError, ValueError):
        return True


def _copy(place: int, own: Path, settings: Iterable[str]) -> None:
    """What lies in an open folder of the settings that a job has, one byte more than may be: who reads it says so."""
    own.mkdir(parents=True, exist_ok=True, mode=0o700)
    own.parent.chmod(0o700)
    left = ALL_BYTES
    for name in settings:
        if left < 0 or not is_file_name(name):
            continue
        with suppress(OSError, ValueError):  # a link, a pipe or a folder is no secret
            content = folder.regular_bytes(name, follows_links=False, folder_handle=place, max_bytes=LONGEST_BYTES + 1)
            left -= len(content)
            handle = os.open(own / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)


def size_within(setting: str, value: str, before: int) -> int:
    """With those before it, in bytes. Raises beyond what a system passes to a program: cut short it would be another secret."""
    size = len(value.encode(errors="surrogateescape"))
    if size > LONGEST_BYTES:
        raise BadInput(
            f"The secret {setting} is too long for a variable: it has more than {LONGEST_BYTES:,} bytes.",
            remedy="Store it as a file, and pass its path.",
        )
    if before + size > ALL_BYTES:
        raise BadInput(
            f"The secrets of the job have more than {ALL_BYTES:,} bytes together.",
            remedy="Store them as files, and pass paths.",
        )
    return before + size
