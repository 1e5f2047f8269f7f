"""The system user as whom the program of a job runs, where its place is set up so: another than that of the controller.

The supervisor stays with the controller's user, who must be root: nobody else can start, read and end processes of others
without help. The program gets two folders of its own, which belong to its user: one for what it and its supervisor tell each
other, and one for its checkpoints. All else of an attempt stays the controller's, and cannot be read by the program.

A folder of a program is written by its user: whoever works in it as root takes no link for a file, and makes nothing below it
but whole files by new names.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chipwise.adapters.environment import OUR_FOLDERS
from chipwise.errors import BadInput, NotAllowed

FORMER = "run_as.json"  # beside the folders of jobs: what was set when a controller last began
EVERYBODY = ""  # stands for owners that are not named
_OF_A_LOGIN = ("TMPDIR", *OUR_FOLDERS)  # settings of the controller that mean folders of its user


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    def written(self) -> dict[str, Any]:
        return asdict(self)


def from_order(fields: Mapping[str, Any] | None) -> Account | None:
    return Account(**{**fields, "groups": tuple(fields["groups"])}) if fields else None


def account(name: str) -> Account:
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise BadInput(f"There is no system user {name[:60]}, to run jobs as.", remedy="Make it, or name another.") from None
    if user.pw_uid == 0:
        raise BadInput(f"Jobs cannot run as {name}, which is root.", remedy="Name a system user that owns nothing else.")
    groups = tuple(os.getgrouplist(name, user.pw_gid))
    return Account(name, user.pw_uid, user.pw_gid, groups, home=user.pw_dir, shell=user.pw_shell)


def account_of(run_as: Mapping[str, str], owner: str) -> Account | None:
    """None: the controller's own user, since nobody is named."""
    if not run_as:
        return None
    name = run_as.get(owner) or run_as.get(EVERYBODY)
    if name is None:
        raise NotAllowed(
            f"No system user is named for jobs of {owner or 'nobody'} at this place.",
            remedy=f"Its administrator can: run_as: {{{owner}: NAME}} in engines.yaml.",
        )
    return account(name)


def check(run_as: Mapping[str, str], root: Path) -> None:
    """Raises where programs could not be started so, or could not reach their folders below `root`."""
    if not run_as:
        return
    if os.geteuid() != 0:
        raise BadInput(
            "Only a root controller can run jobs as another system user, which run_as in engines.yaml asks for.",
            remedy="Start it as root; or take run_as out, and jobs run as the controller's own user.",
        )
    for user in {name: account(name) for name in run_as.values()}.values():
        try:
            with acting_as(user):
                closed = next((one for one in (*reversed(root.parents), root) if not _passes(one)), None)
        except PermissionError as error:
            raise BadInput(
                f"Jobs cannot be started as {user.name}: {error.strerror}.",
                remedy="The controller needs the capabilities CAP_SETUID, CAP_SETGID, CAP_CHOWN and CAP_KILL.",
            ) from error
        if closed is not None:
            raise BadInput(
                f"Jobs of {user.name} could not reach their folders below {root}: {closed} is closed to others.",
                remedy=f"chmod o+x {closed}, or set CHIPWISE_DATA_DIR to a folder that others can pass through.",
            )


def check_former(folder: Path) -> None:
    """A configuration that was lost, or is another, must not make jobs run as root."""
    if os.geteuid() == 0 and (folder / FORMER).exists():
        raise BadInput(
            "Jobs of this place ran as another system user so far, and engines.yaml does not name one any more.",
            remedy=f"Put run_as back; or remove {folder / FORMER}, and they run as root.",
        )


def _passes(folder: Path) -> bool:
    return os.access(folder, os.X_OK, effective_ids=True)


@contextmanager
def acting_as(user: Account | None) -> Iterator[None]:
    """For files only: all threads of this process act so meanwhile."""
    if user is None:
        yield
        return
    uid, gid, groups = os.geteuid(), os.getegid(), os.getgroups()
    try:
        os.setgroups(user.groups)
        os.setegid(user.gid)
        os.seteuid(user.uid)
        yield
    finally:
        os.seteuid(uid)
        os.setegid(gid)
        os.setgroups(groups)


def environment(inherited: Mapping[str, str], ordered: Mapping[str, str], user: Account | None) -> dict[str, str]:
    """What a program is started with. A submitter's or a controller's home is not that of the program's user."""
    if user is None:
        return {**inherited, **ordered}
    env = {name: value for name, value in inherited.items() if name not in _OF_A_LOGIN} | dict(ordered)
    env = {name: value for name, value in env.items() if not name.startswith("XDG_")}
    return env | {"HOME": user.home, "USER": user.name, "LOGNAME": user.name, "SHELL": user.shell}


def let_pass(*folders: Path) -> None:
    """Through folders of ours, to those that are the program's; what is in them stays closed."""
    for folder in folders:
        folder.chmod(folder.stat().st_mode & 0o7777 | 0o011)


def give(folder: Path, user: Account) -> None:
    """A folder of the program's own, in one of ours."""
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not any(folder.iterdir()):
        folder.chmod(0o700)
        os.chown(folder, user.uid, user.gid, follow_symlinks=False)
    elif not stat.S_ISDIR(state.st_mode) or state.st_uid != user.uid:
        raise BadInput(
            f"{folder} does not belong to {user.name}, the system user of the job.",
            remedy=f"chown -R {user.name} {folder}, and `chipwise retry` it.",
        )
