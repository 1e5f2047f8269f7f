"""This machine: each attempt has a folder and a supervisor; devices are given out by id.

What is seen is read from the folders and from the system's own list of processes. An attempt counts as over when its supervisor
said so, or when the supervisor is gone and no process of the attempt lives any more; what still lives then is ended here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from chipwise.adapters import clock, process_tag
from chipwise.adapters.private_environment import handed_over
from chipwise.errors import BadInput, NotFound, TryLater
from chipwise.runner import hand_off
from chipwise.runner.engine import Clear, End, Leave, Order, Room, Seen, Sight, Start, State
from chipwise.runner.job import Job, Lack
from chipwise.runner.permits import is_file_name

from . import NAME, SECRETS, accounts, descendants, drained, folder, handed_in, processes, sights
from .forgetting import CHECKPOINTS
from .logfile import refuse_short

STARTS_AT_MOST = 10  # of a supervisor that says nothing, after which it is the job's failure
ORPHANED = "its supervisor is gone"
STOPPED = "its supervisor is stopped (SIGSTOP), and sees neither its exit nor a request"
LISTENS_WITHIN_S = 10.0  # a supervisor that is asked to end all now
SUPERVISOR = (sys.executable, "-P", "-m", __package__)


@dataclass(frozen=True, slots=True)
class Config:
    root: Path  # where folders of attempts are
    gpus: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    place: str = field(default_factory=lambda: f"{NAME}:{socket.gethostname()}")
    secrets: Path | None = None  # files by name/key, readable by their owner only
    passing: Path | None = None  # secrets of submitters, in memory where there is such a file system
    controller: Mapping[str, object] = field(default_factory=dict)  # how a supervisor wakes one
    run_as: Mapping[str, str] = field(default_factory=dict)  # by owner, the system user of their programs; empty: ours
    pin: bool = True
    log_bytes: int = 64 << 20
    logs_kept: int = 3


def connect(config: Config) -> Local:
    return Local(config)


@dataclass(slots=True)
class Local:
    config: Config
    name: str = NAME
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)  # by us, to be waited for when they end

    @property
    def place(self) -> str:
        return self.config.place

    def folder(self, id: str, number: int) -> Path:
        return self.config.root / id / str(number)

    def close(self) -> None:
        """Supervisors live on without us; those that ended are waited for, so that they do not stay as zombies."""
        self._started = [one for one in self._started if one.poll() is None]

    def ready(self, owner: str | None = None) -> None:
        """Raises where no job could be started as this place is set up, or none of this owner."""
        root, run_as = self.config.root, self.config.run_as
        if not run_as:
            accounts.check_former(root.parent)
            return
        folder.make_folder(root)
        if os.geteuid() == 0:
            accounts.let_pass(root.parent, root)
        accounts.check(run_as, root)
        folder.write(root.parent, accounts.FORMER, run_as)
        if owner is not None:
            accounts.account_of(run_as, owner)

    # Looking

    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        self._started = [one for one in self._started if one.poll() is None]
        attempts = {(job.id, len(job.attempts)): self._sight(job.id, len(job.attempts), now) for job in jobs}
        for job in jobs:
            key = (job.id, len(job.attempts))
            if job.wish.stops and attempts[key].ended:
                self._leave(job, now, "stopped")  # nobody tells it otherwise: there is no program to leave
            if not job.attempts[-1].cpus and not job.attempts[-1].devices:
                attempts[key] = replace(attempts[key], holds=sights.ordered(self.folder(*key)))
        goes = folder.goes(self.config.root, now)  # what would start here would have to leave at once
        room = Room((), ()) if goes else Room(drained.usable(self.config.root, self.config.gpus), self.config.cpus)
        return Seen(now, attempts, room)

    def glance(self, jobs: Sequence[Job], now: float) -> Mapping[tuple[str, int], Sight]:
        """Without a list of all processes: what is left of an attempt holds its lock. An attempt that has not begun is not
        looked at, since asking for its lock would be in the way of its supervisor."""
        return {key: self._sight(*key, now, only_looks=True) for key in ((job.id, len(job.attempts)) for job in jobs)}

    def _sight(self, id: str, number: int, now: float, *, only_looks: bool = False) -> Sight:
        path = self.folder(id, number)
        state = folder.read(path, folder.STATE)
        lives = state is not None and processes.lives(state.get("pid"), state.get("identity"))
        ended = folder.read(path, folder.ENDED)  # a supervisor writes it before it goes, so it is read after that
        notice, begun = sights.notice_of(path), folder.number(state, "begun") if state else None
        progress = sights.progress_of(path)  # last: an end is told with the step that it had reached
        if ended is not None:
            return replace(sights.ended_sight(ended, begun, path, notice), **progress)
        if state is None:
            return Sight(State.PENDING if only_looks or sights.is_starting(path, now) else State.ABSENT)
        if lives and only_looks and not self._works(state, sights.mark_of(id, number, self.config.root)):
            if sights.may_start_yet(state):
                return Sight(State.PENDING, since=begun, **progress)
            return Sight(
                State.EXITED, reason="its program ended", since=begun, until=folder.last_seen(path, begun, now), **progress
            )
        if lives:
            is_silent = folder.is_silent(path, now)
            if is_silent and not only_looks:
                self._signal(path, signal.SIGCONT)  # whoever stopped it: it would not notice that its program ended
                if processes.any_lives(sights.sessions_of(state)):
                    with suppress(OSError):
                        os.utime(path / folder.LOCK)  # its supervisor was stopped or hangs, and its program goes on
            if (state or {}).get("looks"):
                return Sight(State.RUNNING, reason=hand_off.LOOKS, since=begun, handle=str(path), ended=True, **progress)
            deadline, reason = notice
            unanswered = sights.unanswered(path) if deadline is None else ""
            if only_looks and is_silent and processes.is_stopped(state.get("pid")):
                reason = STOPPED
            began = folder.number(state or {}, "boottime")
            until = folder.number(folder.read(path, folder.LEAVE) or {}, "boottime")
            return Sight(
                state=State.RUNNING,
                reason=unanswered or reason,
                lack=Lack.CHECK if unanswered else None,
                since=begun,
                handle=str(path),
                leave_by=deadline,
                lasted_s=None if began is None else clock.boottime() - began,
                overstays=None if until is None else clock.boottime() >= until,
                **progress,
            )
        if only_looks:
            if folder.locked(path / folder.LOCK):
                return Sight(State.RUNNING, reason=ORPHANED, since=begun, **progress)
        elif processes.end_marked(sights.mark_of(id, number, self.config.root), sights.sessions_of(state)):
            with suppress(OSError):
                os.utime(path / folder.LOCK)  # seen alive, though without its supervisor
            return Sight(State.RUNNING, reason=f"{ORPHANED}; its remaining processes are being killed", since=begun, **progress)
        seen, reason = folder.last_seen(path, begun, now), "its supervisor was killed"
        if not folder.has_begun(state, path):
            begun, reason = None, f"{reason} before it started anything{folder.last_words(path)}"
        return Sight(state=State.LOST, reason=reason, since=begun, until=seen, handle=str(path), **progress)

    @staticmethod
    def _works(state: Mapping[str, Any], mark: str) -> bool:
        """Whether its program lives below its supervisor; what the program left behind is not the program."""
        below, sessions = processes.below(int(state["pid"]), mark), sights.sessions_of(state)
        return any(process.pid in sessions for process in below) if sessions else bool(below)

    def living(self) -> list[tuple[str, int]]:
        """Those that have begun: asking for the lock of another would be in the way of its supervisor. What is left of one
        without a supervisor may have closed the lock."""
        keys, tags = [], descendants.tags()
        for lock in self.config.root.glob(f"*/[0-9]*/{folder.LOCK}"):
            path = lock.parent
            if not path.name.isdecimal() or not (path / folder.STATE).exists() or (path / folder.ENDED).exists():
                continue
            key = (path.parent.name, int(path.name))
            tag = process_tag.tag_of(sights.mark_of(*key, self.config.root))
            if folder.locked(lock) or (tag in tags and descendants.living(descendants.with_tag(tag))):
                keys.append(key)
        return keys

    def processes_of(self, id: str, number: int) -> list[psutil.Process]:
        mark, supervisor = sights.mark_of(id, number, self.config.root), self.supervisor_of(id, number)
        if supervisor is not None and (below := processes.below(supervisor, mark)):
            return below
        return processes.marked(mark, sights.sessions_of(folder.read(self.folder(id, number), folder.STATE) or {}))

    def supervisor_of(self, id: str, number: int) -> int | None:
        state = folder.read(self.folder(id, number), folder.STATE) or {}
        return state["pid"] if processes.lives(state.get("pid"), state.get("identity")) else None

    # Doing

    def do(self, order: Order) -> None:
        match order:
            case Start(job):
                self._start(job)
            case Leave(job, deadline, reason):
                self._leave(job, deadline, reason)
            case End(job):
                self._end(job)
            case Clear(handle, goes_on):
                if not goes_on:
                    self._clear(Path(handle))

    def _start(self, job: Job) -> None:
        from chipwise.money.carbon import WORLD_G_PER_KWH  # takes long to import, and most who look at jobs start none

        number, attempt = len(job.attempts), job.attempts[-1]
        path = self.folder(job.id, number)
        if (path / folder.STATE).exists() or (path / folder.ENDED).exists() or folder.locked(path / folder.LOCK):
            return
        if any(int(one.name) > number for one in path.parent.glob("[0-9]*") if one.name.isdecimal()):
            return  # a newer attempt was ordered: this one has no say any more
        spec, starts = job.spec, folder.integer(folder.read(path, folder.ORDER) or {}, "starts") or 0
        if starts >= STARTS_AT_MOST and self._never(path):
            raise BadInput(f"its supervisor was started {starts} times and never began{folder.last_words(path)}")
        user = accounts.account_of(self.config.run_as, spec.owner)
        hidden = self._secrets(job)
        env = {**spec.env, "CHIPWISE_JOB": job.id, "CHIPWISE_ATTEMPT": str(number)}
        env["CHIPWISE_CHECKPOINTS"] = spec.checkpoints or str(path.parent / CHECKPOINTS)
        if spec.interruptions_per_hour is not None:
            env["CHIPWISE_INTERRUPTIONS_PER_HOUR"] = f"{spec.interruptions_per_hour:g}"
        order = {
            "command": list(spec.command),
            "env": env,
            "folder": spec.folder,
            "processes": spec.needs.processes_on(len(attempt.devices)),
            "ranked": spec.needs.processes > 1,
            "gpus": list(attempt.devices),
            "gpu_machine": bool(self.config.gpus),
            "cpus": list(attempt.cpus),
            "pin": self.config.pin and len(attempt.cpus) < len(self.config.cpus),
            "grace_s": spec.grace_s,
            "produces": list(hand_off.by_engine(spec)),
            "health": spec.health,
            "mark": sights.mark_of(job.id, number, self.config.root),
            "log_bytes": self.config.log_bytes,
            "logs_kept": self.config.logs_kept,
            "root": str(self.config.root),
            "starts": starts + 1,
            "controller": dict(self.config.controller),
            "account": user.written() if user is not None else None,
            "watch": {
                "labels": {"job": job.id, "attempt": str(number), "owner": spec.owner, "team": spec.team, "engine": self.name},
                "predicted": dict(spec.predicted),
                "usd_per_hour": attempt.where.usd_per_hour,
                "kg_per_kwh": WORLD_G_PER_KWH / 1000.0,  # where this machine is, nobody says
            },
        }
        try:
            folder.make_folder(path)
            if user is not None:
                accounts.let_pass(self.config.root, path.parent, path)
                accounts.give(path / folder.PROGRAM, user)
                if not spec.checkpoints:
                    accounts.give(path.parent / CHECKPOINTS, user)
            folder.write(path, folder.ORDER, order, private=True)
            self._supervise(path, hidden)
        except OSError as error:
            raise TryLater(f"The supervisor of {job.id} could not be started: {error}.") from error

    def _supervise(self, path: Path, hidden: Mapping[str, str]) -> None:
        """Detached, so that it outlives whoever starts it; what it has to say of itself goes into its folder."""
        own = os.open(path / folder.OWN_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, folder.file_mode(path))
        try:
            # Under one name of ours: what submitters call their secrets must not set the search paths of the supervisor.
            with handed_over({**os.environ, SECRETS: json.dumps(hidden)}) as (visible, inherited):
                started = subprocess.Popen(
                    [*SUPERVISOR, str(path)],
                    env=visible,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=own,
                    start_new_session=True,
                    pass_fds=inherited,
                )
        finally:
            os.close(own)
        self._started = [one for one in (*self._started, started) if one.poll() is None]

    def _secrets(self, job: Job) -> dict[str, str]:
        values: dict[str, str] = {}
        size = 0
        for setting, name in job.spec.secrets.items():
            value = self._secret(job, setting, name)
            if value is None:
                source = f"{self.config.secrets}/{name}" if self.config.secrets and name else f"your environment as {setting}"
                raise NotFound(
                    f"The secret for {setting} is not there.", remedy=f"Put it into {source}, and `chipwise retry {job.id}`."
                )
            refuse_short(setting, value)
            size = handed_in.size_within(setting, value, size)
            values[setting] = value
        return values

    def _secret(self, job: Job, setting: str, name: str) -> str | None:
        handed = handed_in.file_of(self.config.passing, job, setting) if self.config.passing and is_file_name(setting) else None
        inside = not Path(name).is_absolute() and ".." not in Path(name).parts  # others may write to the record, too
        stored = self.config.secrets / name if self.config.secrets and name and inside else None
        for path in filter(None, (handed, stored)):
            with suppress(OSError, ValueError):  # a pipe or a folder is no secret
                return folder.regular_bytes(path, max_bytes=handed_in.LONGEST_BYTES + 1).decode().rstrip("\n")
        return None  # never of this process's own environment: that is the controller's, and this job may be another's

    def _leave(self, job: Job, deadline: float, reason: str) -> None:
        path = self.folder(job.id, len(job.attempts))
        if (path / folder.ENDED).exists() or not (path / folder.STATE).exists():
            return
        if not (path / folder.LEAVE).exists():
            folder.write(path, folder.LEAVE, folder.wish(deadline, reason))
        self._signal(path, signal.SIGTERM)

    def _end(self, job: Job) -> None:
        """Asks the supervisor to end all now; if it does not listen, without it."""
        path = self.folder(job.id, len(job.attempts))
        if (path / folder.ENDED).exists() or self._never(path):
            return
        wish = folder.read(path, folder.LEAVE)
        if wish is None or folder.number(wish, "by") != 0.0:
            folder.write(path, folder.LEAVE, {**folder.wish(0.0, "ended"), "asked": clock.boottime()})
            self._signal(path, signal.SIGTERM)
        elif clock.boottime() - (folder.number(wish, "asked") or 0.0) > LISTENS_WITHIN_S:
            self._signal(path, signal.SIGKILL)

    def _never(self, path: Path) -> bool:
        """One that has not begun never will: whoever holds the lock finds that it is over."""
        folder.make_folder(path)
        lock = folder.lock(path / folder.LOCK)
        if lock is None:
            return False
        try:
            if (path / folder.STATE).exists():
                return False
            folder.write(path, folder.ENDED, {"code": None, "reason": "stopped before it started", "at": time.time()})
            return True
        finally:
            os.close(lock)

    def _signal(self, path: Path, number: int) -> None:
        state = folder.read(path, folder.STATE) or {}
        if processes.lives(state.get("pid"), state.get("identity")):
            with suppress(OSError):
                os.kill(state["pid"], number)

    def _clear(self, path: Path) -> None:
        """What must not stay: secrets that were passed on. Logs and results stay until `chipwise forget`."""
        if self.config.passing is not None and path.parent.parent == self.config.root:
            for secrets_folder in (self.config.passing, folder.taken_over(self.config.passing)):
                with suppress(OSError):
                    shutil.rmtree(secrets_folder / path.parent.name)
