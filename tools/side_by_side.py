"""Run parts of the Makefile beside each other, in lanes: what waits for servers leaves the processors to what computes.

    python tools/side_by_side.py proofs "lint types arrows long"

An argument is a lane: targets of make, one after another. The first lane prints as it goes and comes first; the others take
what it leaves of the processors, and each of their targets prints all it has to say when it ends. Every target is run, whatever
becomes of the others. The last lines have the time of each. Exit code 1 when one failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import IO

NICENESS = 10  # a tenth of the processors when the first lane wants them all, so that what is waited for still comes


@dataclass(frozen=True, slots=True)
class Part:
    target: str
    code: int
    wall_s: float
    cpu_s: float

    def line(self) -> str:
        how = "failed" if self.code else "ended well"
        return f"make {self.target}: {how} after {self.wall_s:.0f} s, with {self.cpu_s:.0f} s of CPU"


@dataclass
class Run:
    parts: list[Part] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def lane(self, targets: list[str], first: bool) -> None:
        for target in targets:
            if first:
                self.parts.append(self.part(target, None))
            else:
                with tempfile.TemporaryFile() as output:
                    part = self.part(target, output)
                    output.seek(0)
                    with self.lock:
                        self.parts.append(part)
                        _print(f"\n===== make {target}\n{output.read().decode(errors='replace')}===== {part.line()}\n")

    def part(self, target: str, output: IO[bytes] | None) -> Part:
        """Its CPU time is that of all it waited for."""
        command = ["make", "--no-print-directory", target]
        if output is not None:
            command = ["nice", "-n", str(NICENESS), *command]
        with self.lock:
            if self.stopped:
                return Part(target, 1, 0.0, 0.0)
            begun = perf_counter()
            error = subprocess.STDOUT if output else None
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=error, start_new_session=True)
            self.running.add(process.pid)
        if self.stopped:  # since it was looked at
            self.stop()
        _, status, usage = os.wait4(process.pid, 0)
        self.running.discard(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Part(target, process.returncode, perf_counter() - begun, usage.ru_utime + usage.ru_stime)

    def stop(self) -> None:
        self.stopped = True
        for pid in tuple(self.running):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)  # with all that it started


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main(lanes: list[str]) -> int:
    run = Run()
    for ending in (signal.SIGTERM, signal.SIGINT):  # an exception in `join` would call a thread ended that runs
        signal.signal(ending, lambda *_: run.stop())
    threads = []
    for number, targets in enumerate(lanes):
        threads.append(threading.Thread(target=run.lane, args=(targets.split(), number == 0), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = [target for targets in lanes for target in targets.split()]
    _print("\n" + "".join(f"{part.line()}\n" for part in sorted(run.parts, key=lambda part: wanted.index(part.target))))
    return int(run.stopped or not wanted or len(run.parts) < len(wanted) or any(part.code for part in run.parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
