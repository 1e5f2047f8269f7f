"""The chaos run itself: sets the scene, lets faults happen, and counts."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

import postgres_server
from chipwise.adapters.stores.record import connect
from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.runner.job import Phase
from chipwise.runner.record import Wanted
from cutting_proxy import cutting
from faults.chaos.breaking import FAULTS, Scene, pick
from faults.chaos.harm import Harm, statements
from faults.chaos.train import EVERY, STRAY, result
from faults.local import gaps_and_redone
from shared_machine import Shared, python_for_others

HERE = Path(__file__).resolve().parent
GPUS = "0,1,2,3"
UNTRUE_S = 5.0
BEFORE_S = 15.0  # that faults are named which came before a phase that was untrue
SETTLES = 3.0  # times the chaos, after which what is left counts as lost
LOGINS = ("alice", "bob", "eve", "robot")


@dataclass
class Counts:
    faults: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    attempts: int = 0
    lost: list[str] = field(default_factory=list)
    wrong: int = 0
    doubled: int = 0
    most_redone: int = 0
    orphans: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    looks: int = 0
    held_devices: int = 0
    statements: int = 0
    harmful: list[str] = field(default_factory=list)
    seconds: float = 0.0
    after_chaos_s: float = 0.0  # that the jobs which were left needed

    @property
    def fine(self) -> bool:
        bad = [self.lost, self.wrong, self.doubled, self.orphans, self.untrue, self.held_devices, self.harmful]
        return not any(bad) and self.looks > 0 and self.most_redone <= 3 * EVERY

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "faults": dict(self.faults), "fine": self.fine}


def play(home: Path, jobs: int, steps: int, seed: int, seconds: float, pause_s: float) -> Counts:
    counts, began = Counts(), time.monotonic()
    with ExitStack() as stack:
        scene, urls = stack.enter_context(_setting(home, seed))
        place = f"local:{os.uname().nodename}:{scene.shared.data}"
        (home / "work").mkdir()
        (home / "work").chmod(0o777)
        _allow(scene, urls["robot"], place, home)
        stack.enter_context(_controller(scene))
        _submit(scene, home, jobs, steps)
        watching = Watching(scene, stack)
        harm = Harm({"eve": urls["eve"], "mallory": urls["mallory"]}, statements(place, home / "canary"), seed)
        threading.Thread(target=harm.run, daemon=True).start()
        _harass(scene, urls["admin"], jobs, began + seconds, pause_s, counts)
        counts.after_chaos_s = _settle(scene, urls["admin"], jobs, began + SETTLES * seconds)
        scene.due(everything=True)
        harm.stop.set()
        time.sleep(UNTRUE_S)
        watching.stop()
        counts.untrue, counts.looks = watching.untrue(), watching.looks
        counts.statements, counts.harmful = harm.tried, harm.allowed
        counts.harmful += ["a hostile job ran"] * (home / "canary").exists()
        _count(urls["admin"], home, jobs, steps, counts)
        counts.orphans = _orphans(scene)
    counts.seconds = round(time.monotonic() - began, 1)
    return counts


@contextmanager
def _setting(home: Path, seed: int) -> Iterator[tuple[Scene, dict[str, str]]]:
    programs, python = postgres_server.programs(), python_for_others()
    if programs is None or python is None:
        raise SystemExit(postgres_server.MISSING if programs is None else "There is no Python that other users can start.")
    import psycopg

    with postgres_server.running(programs) as server, cutting(server.port, b"") as proxy:
        with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
            for login in LOGINS:
                admin.execute(f"CREATE ROLE {login} LOGIN".encode())
            admin.execute(b"CREATE ROLE mallory LOGIN PASSWORD 'mallory'")
            admin.execute(b"CREATE DATABASE jobs")
        urls = {login: server.url("jobs", login, port=proxy.port) for login in LOGINS}
        urls["mallory"] = server.url("jobs", "mallory", "mallory")
        urls["admin"] = server.url("jobs")
        connect(urls["admin"]).close()
        members = connect_members(urls["admin"])
        for member in (
            Member("alice", "vision"),
            Member("bob", "speech"),
            Member("eve", "speech"),
            Member("robot", "", "controller"),
        ):
            members.add(member)
        members.close()
        shared = Shared(home, python, urls.__getitem__)
        yield Scene(shared, server, proxy, random.Random(seed), home / "clock"), urls


def _allow(scene: Scene, url: str, place: str, home: Path) -> None:
    grants = connect_grants(url)
    for login in ("alice", "bob"):
        grants.allow(Grant(place, login))
    grants.close()


@contextmanager
def _controller(scene: Scene) -> Iterator[None]:
    """As a service manager keeps it: started again a second after it ended."""
    over = threading.Event()

    def keep() -> None:
        while not over.is_set():
            process = scene.shared.start("robot", "control", "--idle", "1h", CHIPWISE_GPUS=GPUS)
            while process.poll() is None and not over.wait(0.2):
                pass
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGTERM)
            process.communicate()
            over.wait(1.0)

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)


def _submit(scene: Scene, home: Path, jobs: int, steps: int) -> None:
    work = home / "work"
    for number in range(jobs):
        (work / f"job{number}").mkdir()
        (work / f"job{number}").chmod(0o777)
    halves = {"alice": (0, jobs // 2), "bob": (jobs // 2, jobs)}
    for login, (first, last) in halves.items():
        words = [str(HERE / "people.py"), "submit", str(first), str(last), str(steps), str(work)]
        process = scene.shared.start_python(login, *words, env={"CHIPWISE_GPUS": GPUS})
        out, err = process.communicate(timeout=120)
        if process.returncode:
            raise SystemExit(f"{login} could not submit: {out}{err}")


def _harass(scene: Scene, admin: str, jobs: int, until: float, pause_s: float, counts: Counts) -> None:
    """Faults until the time is over, or all jobs are."""
    while time.monotonic() < until and _finished(admin) < jobs:
        time.sleep(scene.rng.uniform(0.1, pause_s))
        scene.due()
        name = pick(scene.rng)
        if FAULTS[name][0](scene):
            counts.faults[name] += 1
            scene.happened.append((time.monotonic(), name))


def _settle(scene: Scene, admin: str, jobs: int, until: float) -> float:
    """Seconds until the jobs that are left came to an end, once nothing goes wrong any more."""
    began = time.monotonic()
    scene.due(everything=True)
    while time.monotonic() < until and _finished(admin) < jobs:
        time.sleep(1.0)
    return round(time.monotonic() - began, 1)


def _finished(url: str) -> int:
    import psycopg

    with suppress(psycopg.Error), psycopg.connect(url, options="-c search_path=chipwise", connect_timeout=5) as client:
        rows = client.execute("SELECT count(*) FROM jobs WHERE phase IN ('done', 'failed', 'stopped')").fetchall()
        return int(rows[0][0])
    return 0


class Watching:
    """What `ps` says, held against the processes that there are. A phase counts as untrue when nothing of the last seconds
    agrees with it."""

    def __init__(self, scene: Scene, stack: ExitStack) -> None:
        self._scene, self._over = scene, threading.Event()
        self._alive: list[tuple[float, frozenset[int]]] = []
        self._said: list[dict[str, object]] = []
        self._process = scene.shared.start_python("robot", str(HERE / "people.py"), "watch", env={"CHIPWISE_GPUS": GPUS})
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._look, self._listen, self._drain)]
        for thread in self._threads:
            thread.start()
        stack.callback(self.stop)

    def stop(self) -> None:
        self._over.set()
        self._process.kill()
        for thread in self._threads:
            thread.join(10)

    @property
    def looks(self) -> int:
        return sum("jobs" in said for said in self._said)

    def untrue(self) -> list[str]:
        wrong = []
        for said in self._said:
            moment = float(str(said["moment"]))
            seen = [alive for when, alive in self._alive if moment - UNTRUE_S - 1 <= when <= moment + 1]
            if not seen or "jobs" not in said:
                continue
            ever, always = frozenset.union(*seen), frozenset.intersection(*seen)
            lately = [f"{name} {moment - when:.1f} s" for when, name in self._scene.happened if 0 <= moment - when < BEFORE_S]
            context = f"{len(seen)} looks at processes; before it: {', '.join(lately) or 'nothing'}"
            for row in said["jobs"]:  # type: ignore[attr-defined]
                number, phase = int(row["name"].removeprefix("train")), row["phase"]
                asked = f"asked {moment - float(str(said['began'])):.1f} s before; {row['reason']!r}; {context}"
                if phase == "running" and number not in ever:
                    wrong.append(f"{row['name']} is called running and was not for {UNTRUE_S:g} s ({asked})")
                if phase in ("queued", "done", "failed", "stopped") and number in always:
                    wrong.append(f"{row['name']} is called {phase} and ran for {UNTRUE_S:g} s ({asked})")
        return sorted(set(wrong))

    def _look(self) -> None:
        while not self._over.wait(0.5):
            alive = set()
            for pid in self._scene.processes("train.py"):
                with suppress(psutil.Error, ValueError, IndexError):
                    alive.add(int(psutil.Process(pid).cmdline()[3]))
            self._alive.append((time.monotonic(), frozenset(alive)))

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with suppress(ValueError):
                self._said.append(json.loads(line))

    def _drain(self) -> None:
        assert self._process.stderr is not None
        self._errors = self._process.stderr.read()


def _count(url: str, home: Path, jobs: int, steps: int, counts: Counts) -> None:
    record = connect(url)
    try:
        found = {row.name: job for row in record.rows(Wanted()) if (job := record.job(row.id)) is not None}
    finally:
        record.close()
    expected = result(steps)
    for number in range(jobs):
        work, job = home / "work" / f"job{number}", found.get(f"train{number}")
        counts.jobs += 1
        if job is None or job.phase is not Phase.DONE:
            counts.lost.append(f"train{number}: " + (f"{job.phase}: {job.reason or job.waiting}" if job else "not recorded"))
            continue
        counts.attempts += len(job.attempts)
        kept = work / "result.json"
        counts.wrong += not kept.exists() or json.loads(kept.read_text()) != expected
        counts.doubled += (work / "two-at-once").exists()
        gaps, redone = gaps_and_redone(work / "steps.log", steps)
        counts.wrong += gaps
        counts.most_redone = max(counts.most_redone, redone)
        counts.held_devices += job.phase.placed


def _orphans(scene: Scene) -> list[str]:
    """Programs, strays and supervisors that are left when every job is over and everything had ten seconds."""
    until = time.monotonic() + 10.0
    while left := [*scene.processes("train.py"), *scene.processes("engines.local"), *_strays(scene)]:
        if time.monotonic() > until:
            break
        time.sleep(0.5)
    told = []
    for pid in left:
        with suppress(psutil.Error):
            told.append(" ".join(psutil.Process(pid).cmdline()))
            psutil.Process(pid).kill()
    return told


def _strays(scene: Scene) -> list[int]:
    words = subprocess.run(["pgrep", "-f", STRAY], capture_output=True, text=True).stdout.split()
    return [int(word) for word in words]
