"""The controller as a process: it holds the place's lock while it lives, turns until there is nothing left to do, and goes.

This machine is one place; each cluster and each account in a region is another, with a controller of its own.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.session.config import read_config
from chipwise.text import span

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

STARTS_WITHIN_S = 3.0
REPLACES_WITHIN_S = 6.0  # one that has not answered for long: whoever asks for it has so much time to be sure


_STARTED_AT: dict[Path, float] = {}  # by home: a controller needs a moment until it holds the lock


def awake(session: Session, place: str = "", wait_s: float = 0.0) -> None:
    """Starts a controller where none is, or where one does not answer any more (`waking.SILENT_S`), which is ended first. That
    it does not must be watched for a moment: by who asks again and again, or by who asks once and has `wait_s`."""
    from chipwise.adapters import state_files, waking
    from chipwise.api.running.place import controller_command, home_of, is_ours

    if not is_ours(session):
        return  # jobs here run as the user who owns the directory, and so does the controller
    home = home_of(session, place)
    state_files.make_folder(home)
    started = _STARTED_AT.get(home)
    if not place and _of_other_devices(session):
        _let_go(home / "controller.lock")
        started = None
    lock, log = home / "controller.lock", home / "controller.log"
    if started is not None and time.monotonic() - started <= STARTS_WITHIN_S:
        return
    if not waking.awake(lock) or waking.end_silent(lock, log, wait_s):
        _STARTED_AT[home] = time.monotonic()
        waking.start(controller_command(place), environment(session), log)


def lives(session: Session, place: str = "") -> bool:
    """Whether a controller of the place is on this machine."""
    from chipwise.adapters import waking
    from chipwise.api.running.place import home_of

    return waking.awake(home_of(session, place) / "controller.lock")


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A controller that lives on this machine and does not answer."""

    pid: int
    owner: str  # whose it is; empty: our own, which is replaced
    seconds: float
    limit_s: float

    @property
    def summary(self) -> str:
        """The same as long as it lasts."""
        return f"{self._name} does not answer"

    @property
    def sentence(self) -> str:
        outlook = f"it is replaced after {self.limit_s:.0f} s" if self.seconds < self.limit_s else "it is being replaced"
        remedy = f"only {self.owner} can kill it" if self.owner else outlook
        return f"{self._name} has not answered for {span(self.seconds)}; {remedy}"

    @property
    def _name(self) -> str:
        return f"the controller{f' of {self.owner}' if self.owner else ''} (process {self.pid})"


def unanswered(session: Session, place: str = "") -> Unanswered | None:
    from chipwise.adapters import waking
    from chipwise.api.running.place import home_of, is_ours

    silent = waking.silence(home_of(session, place) / "controller.lock")
    if silent is None:
        return None
    return Unanswered(silent.pid, "" if is_ours(session) else silent.user, silent.seconds, waking.SILENT_S)


def environment(session: Session) -> dict[str, str]:
    """That of this process, with the session's own directories where those are others. Whoever gets it stands elsewhere, so no
    path in it is relative."""
    from chipwise.api.running.place import URL, record_url

    usual, own = read_config(), session.config
    dirs = {"CHIPWISE_CONFIG_DIR": (usual.config_dir, own.config_dir), "CHIPWISE_DATA_DIR": (usual.data_dir, own.data_dir)}
    paths = {name: str(path) for name, (here, path) in dirs.items() if path != here or os.environ.get(name)}
    return {**os.environ, **paths, **({URL: record_url(session)} if os.environ.get(URL) else {})}


def _of_other_devices(session: Session) -> bool:
    """Whether this shell sets other devices than the living controller gives out: the newest word counts."""
    from chipwise.api.running import place

    if not os.environ.get(place.GPUS) and not os.environ.get(place.CPUS):
        return False
    published = place.given_out(session)
    return published is not None and (published["gpus"], published["cpus"]) != tuple(map(list, place.devices(session)))


def _let_go(lock: Path) -> None:
    """It leaves at once when it is asked to; jobs do not notice. Whose number stands in the lock lives, since it holds it."""
    from chipwise.adapters import state_files, waking

    until = time.monotonic() + STARTS_WITHIN_S
    with suppress(OSError, ValueError):
        os.kill(int(state_files.regular_bytes(lock)), signal.SIGTERM)
        while waking.awake(lock) and time.monotonic() < until:
            time.sleep(0.05)


def hide_environment() -> None:
    """First of all in a process of its own: it may be started again, with what no job should read handed over unseen."""
    from chipwise.adapters import private_environment

    private_environment.start_anew()
