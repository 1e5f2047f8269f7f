"""Secrets that submitters hand in: each lies in a folder of its submitter that only the controller's user can read as well.

One that comes from another system user is taken over when its job begins. The folder may be anybody's who knows the id of the
job: links in it are not followed, and where the owner of the job is a system user by that name, nobody else hands in for it.
"""

from __future__ import annotations

import os
import pwd
import shutil
from contextlib import suppress
from pathlib import Path

from chipwise.runner.job import Job

from . import folder


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
                _copy(place, own)
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


def _copy(place: int, own: Path) -> None:
    """What lies in an open folder."""
    own.mkdir(parents=True, exist_ok=True, mode=0o700)
    own.parent.chmod(0o700)
    for name in os.listdir(place):
        with suppress(OSError, ValueError):  # a link, a pipe or a folder is no secret
            content = folder.regular_bytes(name, follows_links=False, folder_handle=place)
            handle = os.open(own / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
