"""Kills the processes of jobs on this machine at random moments: the program, its supervisor, the controller.

    python benchmarks/faults/local.py --kills 300
    python benchmarks/faults/local.py --kills 300 --postgres

With `--postgres` the record is a real PostgreSQL server of its own, and connections to it are ended as well.

Each job trains a little and keeps its state with `chipwise.job`. Afterwards it is counted what must never happen: a result that
differs from that of an undisturbed run, two copies of a job at once, a step repeated that was saved, an orphan. The faults are
bounded by their number, and the whole by `--minutes`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from chipwise.adapters.engines.local import folder, processes
from chipwise.api.running import asking, controlling, submitting
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.runner.job import Job, Needs, Phase, Retry, Spec

if TYPE_CHECKING:
    from figure import Figure

EVERY = 5  # steps between checkpoints
PROGRAM = f"""
import fcntl, json, os, sys, time
import numpy as np
import chipwise.job as job

alone = open("alone.lock", "w")
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open("two-at-once", "w").close()
    sys.exit(1)
state = {{"w": np.zeros(16), "sum": 0}}
total = int(sys.argv[1])
with open("steps.log", "a", buffering=1) as log:
    for step in job.steps(state, total=total, every={EVERY}):
        state["w"] = state["w"] * 0.99 + np.sin(np.arange(16.0) + step)
        state["sum"] += step
        log.write(f"{{os.environ['CHIPWISE_ATTEMPT']}} {{step}}\\n")
        time.sleep(0.01)
with open("result.json.new", "w") as file:
    json.dump([state["sum"], state["w"].tolist()], file)
os.replace("result.json.new", "result.json")
"""


@dataclass
class Counted:
    kills: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    attempts: int = 0
    wrong_results: int = 0
    two_at_once: int = 0
    overlapping: int = 0
    gaps: int = 0  # steps that were left out
    most_redone: int = 0  # steps between a checkpoint and a kill
    orphans: int = 0
    not_done: list[str] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        bad = self.wrong_results + self.two_at_once + self.overlapping + self.gaps + self.orphans + len(self.not_done)
        return bad == 0 and self.most_redone <= 3 * EVERY


def play(
    home: Path, kills: int, jobs: int, steps: int, seed: int, seconds: float, pause_s: float = 0.4, database: str = ""
) -> Counted:
    """Jobs on a record of their own in `home`, or in a database of PostgreSQL, and `kills` faults among them."""
    rng, counted = random.Random(seed), Counted()
    if database:
        os.environ["CHIPWISE_RECORD"] = database
    session = Session(Config(home / "config", home / "data"), date(2026, 1, 1), [])
    os.environ |= {
        "CHIPWISE_DATA_DIR": str(home / "data"),
        "CHIPWISE_CONFIG_DIR": str(home / "config"),
        "CHIPWISE_GPUS": "none",
    }
    (home / "config").mkdir(parents=True)
    (home / "train.py").write_text(PROGRAM)
    with asking.opened(session, makes=True) as held:
        names = [_named(home, number, steps, held) for number in range(jobs)]
        submitting.submit(held.record, names)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            controlling.awake(session)
            live = [job for id, _ in names if not (job := held.job(id)).phase.over]
            if not live:
                break
            time.sleep(rng.uniform(0.05, pause_s))
            if sum(counted.kills.values()) < kills:
                _kill(rng, live, held, home, counted, database)
        ended = [held.job(id) for id, _ in names]
        _count(ended, home, steps, counted)
        _leave(home, held, counted, ended)
    return counted


def _named(home: Path, number: int, steps: int, held: asking.Runtime) -> tuple[str, Spec]:
    work = home / f"job{number}"
    work.mkdir()
    env = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH", "CHIPWISE_DATA_DIR") if name in os.environ}
    spec = Spec(
        command=(sys.executable, str(home / "train.py"), str(steps)),
        name=f"train{number}",
        place=held.engine.place,
        folder=str(work),
        env={**env, "OMP_NUM_THREADS": "1"},
        needs=Needs(cpus=1),
        retry=Retry(failures=100, same_step=100, losses=1000, wait_s=0.05, longest_wait_s=0.2),
    )
    return submitting.new_id(spec.name), spec


def _kill(rng: random.Random, live: list[Job], held: asking.Runtime, home: Path, counted: Counted, database: str) -> None:
    connections = ("connection", "connection") if database else ()
    what = rng.choice(("program", "program", "supervisor", "supervisor", "controller", *connections))
    if what == "connection":
        counted.kills[what] += _cut(rng, database)
        return
    pid: int | None = None
    if what == "controller":
        pid = controller_pid(home / "data")
    else:
        job = rng.choice(live)
        at = held.engine.folder(job.id, len(job.attempts))
        state = folder.read(at, folder.STATE) or {}
        if what == "supervisor" and processes.lives(state.get("pid"), state.get("identity")):
            pid = state["pid"]
        elif what == "program" and job.attempts and (found := held.engine.processes_of(job.id, len(job.attempts))):
            pid = rng.choice(found).pid
    if pid is not None:
        with suppress(OSError, psutil.Error):
            os.kill(pid, signal.SIGKILL)
            counted.kills[what] += 1


def _cut(rng: random.Random, database: str) -> int:
    """Ends one of the connections to the database, whosever it is: the controller's, or that of whoever asks."""
    import psycopg

    with psycopg.connect(database, autocommit=True) as admin:
        others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        found = [pid for (pid,) in admin.execute(others)]
        return len(found) and admin.execute("SELECT pg_terminate_backend(%s)", (rng.choice(found),)).rowcount


def _expected(steps: int) -> list[object]:
    import numpy as np

    w, total = np.zeros(16), 0
    for step in range(steps):
        w = w * 0.99 + np.sin(np.arange(16.0) + step)
        total += step
    return [total, w.tolist()]


def _count(jobs: list[Job], home: Path, steps: int, counted: Counted) -> None:
    expected = _expected(steps)
    for number, job in enumerate(jobs):
        work = home / f"job{number}"
        counted.jobs += 1
        counted.attempts += len(job.attempts)
        if job.phase is not Phase.DONE:
            counted.not_done.append(f"{job.id} {job.phase}: {job.reason or job.waiting}")
            continue
        counted.wrong_results += json.loads((work / "result.json").read_text()) != expected
        counted.two_at_once += (work / "two-at-once").exists()
        for one, other in zip(job.attempts, job.attempts[1:], strict=False):
            counted.overlapping += one.ended is None or one.ended > other.placed + 1e-6
        gaps, redone = gaps_and_redone(work / "steps.log", steps)
        counted.gaps += gaps
        counted.most_redone = max(counted.most_redone, redone)


def gaps_and_redone(log: Path, steps: int) -> tuple[int, int]:
    """Each attempt goes on where a checkpoint was, without a gap; what it redoes, at most so many steps, was not saved yet."""
    reached, last, gaps, redone = -1, -1, 0, 0
    for line in log.read_text().splitlines():
        with suppress(ValueError):
            attempt, step = map(int, line.split())
            if attempt != last:
                gaps += step > reached + 1
                redone = max(redone, reached + 1 - step)
            else:
                gaps += step != reached + 1
            reached, last = step, attempt
    return gaps + (reached != steps - 1), redone


def controller_pid(data: Path) -> int | None:
    """Of the controller of a data directory, where one lives."""
    with suppress(OSError, ValueError, psutil.Error):
        pid = int((data / "run" / "controller.lock").read_text())
        return pid if "control" in psutil.Process(pid).cmdline() else None
    return None


def _leave(home: Path, held: asking.Runtime, counted: Counted, jobs: list[Job]) -> None:
    """The controller is asked to go; whatever of the jobs still lives is an orphan, and is ended."""
    time.sleep(0.5)
    for job in jobs:
        for number in range(1, len(job.attempts) + 1):
            left = held.engine.processes_of(job.id, number)
            counted.orphans += len(left)
            processes.end(left)
    if (pid := controller_pid(home / "data")) is not None:
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)


def figures(long: bool = False) -> Iterator[Figure]:
    """In a process of its own: it has a data directory of its own in its environment."""
    from figure import Figure

    words = [] if long else ["--kills", "12", "--jobs", "2", "--steps", "400", "--minutes", "1", "--pause", "2"]
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, timeout=1200 if long else 150)
    told = json.loads(done.stdout)
    wrong = told["wrong_results"] + told["gaps"] + len(told["not_done"])
    yield Figure("faults_local_kills", sum(told["kills"].values()), "kills", {"min": 1})
    yield Figure("faults_local_wrong_or_missing", wrong, "jobs", {"max": 0})
    yield Figure("faults_local_two_at_once", told["two_at_once"] + told["overlapping"], "jobs", {"max": 0})
    yield Figure("faults_local_orphans", told["orphans"], "processes", {"max": 0})
    yield Figure("faults_local_steps_redone", told["most_redone"], "steps", {"max": 3 * EVERY})


@contextmanager
def _server() -> Iterator[str]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
    import postgres_server

    if (found := postgres_server.programs()) is None:
        raise SystemExit(postgres_server.MISSING)
    with postgres_server.running(found) as server:
        yield server.url("postgres")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--kills", type=int, default=300)
    asked.add_argument("--jobs", type=int, default=4)
    asked.add_argument("--steps", type=int, default=1500)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--minutes", type=float, default=10.0)
    asked.add_argument("--pause", type=float, default=0.4, help="the longest between two kills, in seconds")
    asked.add_argument("--postgres", action="store_true", help="a record in a server of its own, whose connections are cut")
    given = asked.parse_args()
    home = Path(tempfile.mkdtemp(prefix="chipwise-faults-"))
    try:
        with _server() if given.postgres else nullcontext("") as database:
            counted = play(home, given.kills, given.jobs, given.steps, given.seed, 60.0 * given.minutes, given.pause, database)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(
        json.dumps(
            {
                "benchmark": "faults/local",
                **{k: v for k, v in vars(counted).items() if k != "kills"},
                "kills": dict(counted.kills),
                "fine": counted.fine,
            }
        )
    )
    return 0 if counted.fine else 1


if __name__ == "__main__":
    sys.exit(main())
