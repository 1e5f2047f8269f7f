"""Starts the processes of one attempt, keeps what they print, passes on the wish to leave, and says how it ended.

It is started detached, and lives until the attempt is over. It decides nothing but this: when one process of several fails the
others are ended, and when the time to leave is over all are.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from chipwise.adapters import clock
from chipwise.adapters.environment import of_supervisor
from chipwise.adapters.notices.watching import Watch
from chipwise.adapters.waking import Waker, user_name
from chipwise.runner import hand_off

from . import accounts, folder, outputs, processes
from .health import EVERY_S, Health
from .logfile import Lines, LogFile
from .samples import Samples

GRACE_S = 30.0
TICK_S = 0.5
TRIES_AGAIN_S = 5.0  # to write what a full disk did not take
DRAIN_S = 0.5  # for output that is still on its way when all processes have ended
SWEEPS_S = 10.0  # until processes that are killed have ended; one that waits for a dead disk does not
NOT_FOUND, NOT_ALLOWED, SICK = 127, processes.NOT_ALLOWED, 70


class Supervisor:
    def __init__(self, path: Path, order: dict[str, Any], lock: int, secrets: dict[str, str]) -> None:
        self.at, self.order, self.lock, self.secrets = path, order, lock, secrets
        self.grace_s = float(order.get("grace_s", GRACE_S))
        self.log = LogFile(
            path / folder.LOG, int(order.get("log_bytes", 64 << 20)), int(order.get("logs_kept", 3)), secrets.values()
        )
        self.account = accounts.from_order(order.get("account"))
        self.children: list[subprocess.Popen[bytes]] = []
        self.codes: dict[int, int] = {}  # by rank
        self.state: dict[str, object] = {}  # as it is written
        self.verdict: int | None = None  # ours, which stands above what the processes say
        self.reason = ""
        self.leave_by: float | None = None  # as all durations, by the clock that nobody sets
        self.wish: dict[str, Any] | None = None  # to leave, as it was read last
        self.own_wish: dict[str, Any] | None = None  # to leave: the cloud's or the system's, which we pass on
        self.unwritten: dict[str, Callable[[], None]] = {}  # what a full disk did not take, by file
        self.writes_after = 0.0
        self.asked = False  # to leave
        self.noticed = False  # by the cloud that the machine goes away
        self.choose = selectors.DefaultSelector()
        self.health = Health(order.get("health") or "", float(order.get("health_every_s", EVERY_S)))
        self.told_health: dict[str, object] = {}
        self.waker = Waker(order.get("controller") or {})
        self.notices = Watch()
        self.beat = folder.Beat(lock)
        self.samples = Samples(path, order)

    def run(self) -> int:
        self._signals()
        processes.adopt()
        self.state = {"pid": os.getpid(), "identity": processes.identity(os.getpid()), "begun": time.time()}
        self.state["boottime"] = clock.boottime()
        folder.write(self.at, folder.STATE, self.state)
        if self._start():
            self.state["sessions"] = [child.pid for child in self.children]
            with suppress(OSError):  # a full disk must not end what has begun; the sessions only help to find it
                folder.write(self.at, folder.STATE, self.state)
            while len(self.codes) < len(self.children):
                self._turn()
            self._drain()
        code = self._code()
        self.samples.end()
        self._sweep()
        if code == 0 and (missing := self._missing()):
            code, self.reason = hand_off.CODE, hand_off.failure_reason(missing)
        self.log.close()
        self._say({"code": code, "reason": self.reason, "at": time.time()})
        if self.noticed and os.environ.get("CHIPWISE_ACKNOWLEDGE") == "yes" and self._last_here():
            self.notices.acknowledge()
        self.waker.wake()
        return 0

    def _say(self, ended: dict[str, object]) -> None:
        """Until it is written: work that is done, and of which nobody knows, would be done once more. While the disk is full
        the attempt counts as under way, and only the end of this process ends the waiting."""
        pause_s = 0.1
        while self.at.is_dir():
            try:
                if (wish := self.unwritten.get(folder.LEAVE)) is not None:
                    wish()  # first: whether it was asked to leave is a part of how it ended
                folder.write(self.at, folder.ENDED, ended)
                return
            except OSError:
                time.sleep(pause_s)
                pause_s = min(2.0 * pause_s, TRIES_AGAIN_S)

    # Starting

    def _start(self) -> bool:
        count = int(self.order.get("processes", 1))
        devices, port = self.order.get("gpus", []), _free_port() if self._ranked(count) else 0
        for rank in range(count):
            env = self._env(rank, count, devices, port)
            try:
                if odd := _impossible(self.order["command"], env):
                    raise ValueError(odd)  # some of it the system would take, as something else
                # Another user's program could release the lock, and write into a file of ours.
                kept_open = [self.lock] if self.account is None else []
                child = processes.started(
                    self.order["command"], env, self.order.get("folder", ""), self._cpus(), kept_open, self.account
                )
            except (OSError, ValueError, TypeError, LookupError, subprocess.SubprocessError) as error:
                self._cannot(error, env)
                self._end_all()
                for sibling in self.children:
                    sibling.wait()
                return False
            self.children.append(child)
            assert child.stdout is not None
            os.set_blocking(child.stdout.fileno(), False)
            prefix = f"[{rank}] ".encode() if count > 1 else b""
            self.choose.register(child.stdout, selectors.EVENT_READ, Lines(self.log, prefix))
        self.health.begin()
        self.notices.begin()
        self.samples.begin([child.pid for child in self.children])
        return True

    def _cpus(self) -> list[int]:
        return [int(one) for one in self.order.get("cpus", [])] if self.order.get("pin", False) else []

    def _env(self, rank: int, count: int, devices: list[int], port: int) -> dict[str, str]:
        """What was asked for, on what the system needs to work; and what the program may want to know."""
        grace = {"CHIPWISE_GRACE_SECONDS": f"{self.grace_s:g}"}
        ordered = {**self.secrets, **grace, **self.order.get("env", {})}
        env = accounts.environment(of_supervisor(os.environ), ordered, self.account)
        env |= {processes.MARK: self.order["mark"], "CHIPWISE_RUN_DIR": str(folder.of_program(self.at))}
        share = max(len(devices) // count, 1)
        own = devices[rank * share : (rank + 1) * share] if count > 1 and len(devices) >= count else devices
        if self.order.get("gpu_machine", False):
            env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, devices))
        if own and count > 1:
            env["CHIPWISE_GPUS"] = ",".join(map(str, own))
        if "OMP_NUM_THREADS" not in env and self.order.get("cpus"):
            env["OMP_NUM_THREADS"] = str(max(len(self.order["cpus"]) // count, 1))
        if self._ranked(count):
            env |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
            env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        return env

    def _ranked(self, count: int) -> bool:
        """One of several that has only one process left is told so too: its program asks."""
        return count > 1 or bool(self.order.get("ranked", False))

    def _cannot(self, error: Exception, env: dict[str, str]) -> None:
        """Whatever keeps a program from being started is the job's own failure: trying it again would change nothing."""
        command, directory = self.order.get("command") or [], self.order.get("folder", "")
        self.verdict = NOT_ALLOWED
        if not command:
            self.reason = "it has no command to run"
        elif odd := _impossible(command, env):
            self.reason = odd
        elif directory and str(getattr(error, "filename", "")) == str(
            directory
        ):  # so it is told where the folder is what fails
            exists = not isinstance(error, FileNotFoundError | NotADirectoryError)
            cause = getattr(error, "strerror", None) or error
            trouble = f"cannot be entered by {user_name(os.geteuid())}: {cause}" if exists else "is not there"
            self.reason = f"the folder {directory} {trouble}"
        elif isinstance(error, FileNotFoundError):
            self.verdict, self.reason = NOT_FOUND, f"the command {command[0]!r} was not found"
        else:
            cause = getattr(error, "strerror", None) or error
            self.reason = f"the command {str(command[0])[:200]!r} cannot be started: {cause}"
        self.log.write(f"{self.reason}\n".encode(errors="replace"))

    # Watching

    def _turn(self) -> None:
        for key, _ in self.choose.select(TICK_S):
            self._take(key)
        for rank, child in enumerate(self.children):
            if rank not in self.codes and (code := child.poll()) is not None:
                self.codes[rank] = code if code >= 0 else 128 - code
                if code != 0 and not self.asked and len(self.children) > 1:
                    self.reason = self.reason or f"process {rank} of {len(self.children)} ended with {self.codes[rank]}"
                    self._ask(clock.boottime() + self.grace_s)
        self._reap()
        self.beat.turn()
        self.waker.turn()
        self._notice()
        self._write_rest()
        for wish in (self.own_wish, folder.read(self.at, folder.LEAVE)):
            if wish is not None and wish != self.wish:
                self.wish = wish
                self._leave(wish)
        if self.leave_by is not None and clock.boottime() >= self.leave_by:
            self._end_all()
        if not self.asked and (sick := self.health.trouble()):
            self.reason, self.verdict = sick, SICK
            self._ask(clock.boottime() + self.grace_s)
        self._tell_health()

    def _tell_health(self) -> None:
        """A service that runs and does not serve yet looks like one that does, to all but us."""
        if (health := self.health.standing()) != self.told_health:
            with suppress(OSError):  # a full disk: the next turn tries again
                folder.write(self.at, folder.HEALTH, health)
                self.told_health = health

    def _take(self, key: selectors.SelectorKey) -> None:
        try:
            chunk = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            key.data.take(chunk)
        else:
            key.data.finish()
            self.choose.unregister(key.fileobj)

    def _drain(self) -> None:
        """A process that they left behind may hold the pipe open for ever."""
        until = time.monotonic() + DRAIN_S
        while self.choose.get_map() and time.monotonic() < until:
            ready = self.choose.select(0.05)
            if not ready:
                break
            for key, _ in ready:
                self._take(key)
        for key in list(self.choose.get_map().values()):
            key.data.finish()

    def _reap(self) -> None:
        """Orphans that came to us, and a controller that we started: each that has ended is named by the system."""
        if sys.platform != "linux":
            return  # orphans go elsewhere
        known = {child.pid for child in self.children}
        with suppress(OSError):  # no child at all
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and ended.si_pid not in known:
                if not self.waker.reap(ended.si_pid):
                    os.waitpid(ended.si_pid, os.WNOHANG)

    # Leaving and ending

    def _signals(self) -> None:
        def woken(number: int, frame: object) -> None:
            """A turn looks at `leave.json`; the signal only ends the waiting. Without the file it is the system's own wish."""
            if folder.read(self.at, folder.LEAVE) is None and self.own_wish is None:
                self._pass_on(time.time() + self.grace_s, f"the supervisor got signal {number}")

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, woken)

    def _notice(self) -> None:
        """What the cloud says of this machine becomes a wish like any other, and the engine starts nothing more here."""
        notice = None if self.noticed else self.notices.due(self.grace_s)
        if notice is None:
            return
        self.noticed = True
        self.unwritten[folder.GOING] = lambda: folder.going(self.order.get("root", ""), notice.deadline, notice.reason)
        wish = folder.read(self.at, folder.LEAVE)
        own = wish is None and self.asked  # it leaves already, for a trouble of its own
        if not own and (wish is None or (folder.number(wish, "by") or 0.0) > notice.deadline):
            self._pass_on(notice.deadline, notice.reason)

    def _pass_on(self, deadline: float, reason: str) -> None:
        """To the program at the next turn, and to the engine by `leave.json`."""
        wish = {**folder.wish(deadline, reason), "notice": True}

        def write() -> None:
            before = folder.read(self.at, folder.LEAVE)
            if before is None or (folder.number(before, "by") or 0.0) > deadline:
                folder.write(self.at, folder.LEAVE, wish)

        self.own_wish, self.unwritten[folder.LEAVE] = wish, write
        self.writes_after = 0.0

    def _write_rest(self) -> None:
        """Each by itself, and again while the disk is full: what cannot be written keeps nobody from leaving."""
        if not self.unwritten or time.monotonic() < self.writes_after:
            return
        self.writes_after = time.monotonic() + TRIES_AGAIN_S
        for name, write in list(self.unwritten.items()):
            with suppress(OSError):
                write()
                del self.unwritten[name]

    def _last_here(self) -> bool:
        """Whether no other attempt runs on this machine, as far as this engine knows."""
        root = self.order.get("root", "")
        locks = Path(root).glob("*/*/lock") if root else ()
        return not any(folder.locked(one) for one in locks if one.parent != self.at)

    def _leave(self, wish: dict[str, Any]) -> None:
        """By the earliest of all wishes."""
        limit, deadline = folder.number(wish, "by"), folder.number(wish, "boottime")
        if deadline is None:
            deadline = clock.boottime() + GRACE_S if limit is None else clock.in_boottime(limit)
        if self.leave_by is not None and deadline >= self.leave_by:
            return
        until = time.time() + GRACE_S if limit is None else limit
        with suppress(OSError):
            owner = (self.account.uid, self.account.gid) if self.account is not None else None
            notice = {"until": until, "boottime": deadline, "reason": str(wish.get("reason", ""))}
            folder.write(folder.of_program(self.at), folder.NOTICE, notice, owner=owner)
        self._ask(deadline)

    def _ask(self, deadline: float) -> None:
        self.asked, self.leave_by = True, deadline
        for child in self.children:
            if child.poll() is None:
                with suppress(OSError):
                    os.killpg(child.pid, signal.SIGTERM)

    def _end_all(self) -> None:
        for child in self.children:
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)

    def _sweep(self) -> None:
        """Whatever is left of it: processes that went into the background, however they hide."""
        if left := processes.end_below(self.order["mark"], self._reap, SWEEPS_S, spares=self.account is None):
            self.log.write(f"These processes could not be killed: {', '.join(str(one.pid) for one in left)}\n".encode())

    # Ending well or not

    def _code(self) -> int:
        if self.verdict is not None:
            return self.verdict
        # In the order in which they ended: those after the first may have been ended by us.
        bad = [code for code in self.codes.values() if code not in (0, 128 + signal.SIGTERM)]
        return bad[0] if bad else max(self.codes.values(), default=0)

    def _missing(self) -> str:
        """Its devices are free meanwhile: as soon as the answer does not come at once, the engine is told so."""
        names, begun = self.order.get("produces", ()), time.monotonic()
        if not names:
            return ""
        look = outputs.Look(self._lacking, self.lock)
        while (answer := look.answer(TICK_S)) is None:
            self.beat.turn()
            if not self.state.get("looks"):
                self.state["looks"] = True
                with suppress(OSError):
                    folder.write(self.at, folder.STATE, self.state)
                self.waker.wake()
            asked = self.own_wish is not None or folder.read(self.at, folder.LEAVE) is not None
            if time.monotonic() - begun > (hand_off.TOLD_AFTER_S if asked else hand_off.PATIENCE_S):
                look.give_up()
                return "its output could not be checked: the disk of what it made does not answer"
        return answer

    def _lacking(self) -> str:
        with accounts.acting_as(self.account):  # it sees what its program sees
            return outputs.lacking(self.order["produces"], self.order.get("folder", ""))


def _impossible(command: list[Any], env: dict[str, str]) -> str:
    """What no program can be given: the system ends texts at a NUL, and names at an equals sign. Values are never repeated."""
    if any("\0" in str(word) for word in command):
        return "its command contains a NUL character, which cannot be passed to a program"
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            return f"{name[:60]!r} cannot be the name of a setting"
        if "\0" in str(value):
            return f"the setting {name[:60]} contains a NUL character, which cannot be passed to a program"
    return ""


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
