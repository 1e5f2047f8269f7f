"""Programs that a test starts: each writes a log, is waited for with a limit, and never outlives the test run."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from patience import deadline

T = TypeVar("T")

# Runs between fork and the program: the kernel is asked to end it with its parent, whatever ends the parent, so that not even a
# killed test run leaves a server behind. A `preexec_fn` would do the same, but Python warns about it once threads are running.
_TIED = (
    "import ctypes, os, sys\n"
    "if sys.platform == 'linux':\n"
    "    ctypes.CDLL(None).prctl(1, 9)\n"
    "    if os.getppid() != int(sys.argv[1]): sys.exit(1)\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)


class Ended(Exception):
    """A program that should run does not; no wait for it goes on."""


class NotInTime(AssertionError):
    """What was waited for, how long, and what was there instead."""


def wait_for(what: str, probe: Callable[[], T | None], seconds: float, every: float = 0.1) -> T:
    """The first answer of the probe that is neither None nor False; what it said last, where time runs out."""
    limit = deadline(seconds)
    last: object = None
    while True:
        try:
            answer = probe()
        except (OSError, AssertionError) as problem:
            last = problem
        else:
            if answer is not None and answer is not False:
                return answer
            last = answer
        if time.monotonic() > limit:
            raise NotInTime(f"{what}: not so after {seconds:.0f} s" + (f"; last seen: {last}" if last else ""))
        time.sleep(every)


def free_ports(count: int) -> list[int]:
    """Free ports below the range from which outgoing connections take theirs, so that none is lost before it is used."""
    held: list[socket.socket] = []
    try:
        for _ in range(1000):
            one = socket.socket()
            try:
                one.bind(("127.0.0.1", random.randrange(20000, 32000)))
            except OSError:
                one.close()
            else:
                held.append(one)
            if len(held) == count:
                return [int(one.getsockname()[1]) for one in held]
        raise NotInTime(f"no {count} free ports on the loopback")
    finally:
        for one in held:
            one.close()


class Running:
    """A started program with its log."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, environ: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = log
        self._started_as = (name, command, log, environ)
        # No proxy between parts of one cluster, and no settings of the person's own cluster.
        inherited = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR", "LANG") if key in os.environ}
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**inherited, **(environ or {})},
                cwd=log.parent,
                start_new_session=True,  # Ctrl-C goes to the test run alone, which then stops us in order
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self.code is None

    @property
    def code(self) -> int | None:
        """With which it ended, as a shell says it; None while it runs."""
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    def again(self) -> Running:
        """The same program with the same words, where this one has ended."""
        return Running(*self._started_as)

    def must_run(self) -> None:
        code = self._process.poll()
        if code is not None:
            raise Ended(f"{self.name} ended with {code}:\n{self.tail()}")

    def tail(self, lines: int = 25) -> str:
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def resident_bytes(self) -> int:
        """What it holds in memory now; 0 where there is no /proc."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        except OSError:
            return 0
        return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0)

    def stop(self, patience: float = 5.0) -> None:
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
        self._process.wait(patience)

    def ask(self) -> None:
        """To leave: itself, and none of those that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Without a word, as a lack of memory or a power cut does."""
        self._signal(signal.SIGKILL)
        self._process.wait(5.0)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)  # its own session, so the group is it and its children
