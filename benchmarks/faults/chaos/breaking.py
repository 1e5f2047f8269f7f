"""What goes wrong during the chaos run: each fault is a function of the scene, and says by its return whether it happened."""

from __future__ import annotations

import os
import random
import signal
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil

from cutting_proxy import Proxy
from faults.local import controller_pid
from postgres_server import Server
from shared_machine import Shared

DAY_S = 86_400.0


@dataclass
class Scene:
    """The parts that a fault can reach."""

    shared: Shared
    server: Server
    proxy: Proxy
    rng: random.Random
    clock: Path | None  # the offset of the stepped clock; None where there is none
    later: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    happened: list[tuple[float, str]] = field(default_factory=list)  # faults, with their time

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        self.later.append((time.monotonic() + seconds, act))

    def due(self, everything: bool = False) -> None:
        now = time.monotonic()
        ready = [act for moment, act in self.later if everything or moment <= now]
        self.later = [] if everything else [one for one in self.later if one[0] > now]
        for act in ready:
            with suppress(OSError):
                act()

    @property
    def controller(self) -> int | None:
        return controller_pid(self.shared.data)

    def processes(self, word: str) -> list[int]:
        """Of this run alone: they have its data directory in their environment."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            with suppress(psutil.Error):
                named = any(word in part for part in process.info["cmdline"] or ())
                if named and process.environ().get("CHIPWISE_DATA_DIR") == str(self.shared.data):
                    found.append(process.pid)
        return found

    def signal(self, pid: int | None, number: int) -> bool:
        with suppress(OSError):
            if pid is not None:
                os.kill(pid, number)
                return True
        return False


def program(scene: Scene) -> bool:
    return scene.signal(_any(scene, "train.py"), signal.SIGKILL)


def supervisor(scene: Scene) -> bool:
    return scene.signal(_any(scene, "engines.local"), signal.SIGKILL)


def controller(scene: Scene) -> bool:
    return scene.signal(scene.controller, signal.SIGKILL)


def whole_job_and_controller(scene: Scene) -> bool:
    killed = [program(scene), supervisor(scene), controller(scene)]
    return any(killed)


def controller_stands_still(scene: Scene) -> bool:
    pid = scene.controller
    stopped = scene.signal(pid, signal.SIGSTOP)
    scene.after(60.0, lambda: scene.signal(pid, signal.SIGCONT))
    return stopped


def supervisor_stands_still(scene: Scene) -> bool:
    pid = _any(scene, "engines.local")
    stopped = scene.signal(pid, signal.SIGSTOP)
    scene.after(3.0, lambda: scene.signal(pid, signal.SIGCONT))
    return stopped


def connections(scene: Scene) -> bool:
    scene.proxy.cut_all()
    return True


def database_away(scene: Scene) -> bool:
    scene.proxy.refuses = True
    scene.proxy.cut_all()
    scene.after(scene.rng.uniform(1, 8), lambda: setattr(scene.proxy, "refuses", False))
    return True


def database_restarts(scene: Scene) -> bool:
    scene.server.stop()
    scene.server.start()
    return True


def clock_steps(scene: Scene) -> bool:
    if scene.clock is None:
        return False
    step = scene.rng.choice((-2 * DAY_S, -3600.0, -30.0, 30.0, 3600.0, 2 * DAY_S))
    _set_clock(scene.clock, step)
    scene.after(scene.rng.uniform(5, 20), partial(_set_clock, scene.clock, 0.0))
    return True


def _set_clock(file: Path, offset: float) -> None:
    """In place: whoever has the file in memory would die of one that is shorter for a moment."""
    with file.open("r+b") as opened:
        opened.write(struct.pack("d", offset))


def disk_is_full(scene: Scene) -> bool:
    if not os.path.ismount(scene.shared.data):
        return False
    filler = scene.shared.data / "filler"
    with suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
    scene.after(scene.rng.uniform(1, 5), filler.unlink)
    return True


FAULTS: dict[str, tuple[Callable[[Scene], bool], int]] = {
    "program": (program, 12),
    "supervisor": (supervisor, 8),
    "controller": (controller, 6),
    "program, supervisor and controller": (whole_job_and_controller, 3),
    "controller stands still": (controller_stands_still, 1),
    "supervisor stands still": (supervisor_stands_still, 2),
    "connections": (connections, 4),
    "database away": (database_away, 2),
    "database restarts": (database_restarts, 1),
    "clock steps": (clock_steps, 3),
    "disk full": (disk_is_full, 2),
}


def pick(rng: random.Random) -> str:
    names = list(FAULTS)
    return rng.choices(names, [FAULTS[name][1] for name in names])[0]


def _any(scene: Scene, word: str) -> int | None:
    found = scene.processes(word)
    return scene.rng.choice(found) if found else None
