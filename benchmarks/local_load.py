"""The local engine with 10,000 queued jobs: a real controller process, the real record, the real commands."""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import psutil

from chipwise.api.running import asking, place, submitting
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.runner.job import PLACED, Needs, Spec
from chipwise.runner.loop import Controller
from chipwise.runner.record import Wanted
from figure import CHIPWISE, Figure

JOBS = 10_000


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "config").mkdir()
        settings = {"CHIPWISE_DATA_DIR": str(home / "data"), "CHIPWISE_CONFIG_DIR": str(home / "config")}
        settings |= {"CHIPWISE_GPUS": "none", "CHIPWISE_CPUS": "0"}
        before = {name: os.environ.get(name) for name in settings}
        os.environ |= settings
        try:
            yield from _figures(Session(Config(home / "config", home / "data"), date(2026, 1, 1), []), home)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def _figures(session: Session, home: Path) -> Iterator[Figure]:
    with asking.opened(session, makes=True) as held:
        spec = Spec(
            (sys.executable, "-c", "import time; time.sleep(600)"),
            "load",
            place=held.engine.place,
            folder=str(home),
            env={"PATH": os.environ["PATH"]},
            needs=Needs(cpus=1),
            team="bench",
        )
        start = time.perf_counter()
        for _ in range(JOBS):
            submitting.submit(held.record, [(submitting.new_id(spec.name), spec)])
        yield Figure("local_submit", JOBS / (time.perf_counter() - start), "1/s", {"min": 500.0})
        controller = Controller(held.record, place.engine_here(session), "bench", held.rules)
        took = [_turn(controller) for _ in range(12)]
        yield Figure("local_controller_longest_turn_cpu", max(took), "s", {"max": 0.1})
        yield Figure("local_controller_usual_turn_cpu", statistics.median(took), "s", {"max": 0.1})
        controller.resign()
        yield from _beside(session)


def _turn(controller: Controller) -> float:
    start = time.process_time()
    turn = controller.turn(time.time())
    assert turn.leads, "somebody else leads: nothing was measured"
    return time.process_time() - start


def _ps(cpu: bool = False) -> float:
    found = []
    for _ in range(5):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([CHIPWISE, "ps"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found.append(used if cpu else time.perf_counter() - start)
    return statistics.median(found)


def _beside(session: Session) -> Iterator[Figure]:
    """A real controller process that has read all jobs, and `ps` beside it, which would start one. It and the one job that it
    started are ended by their ids."""
    controller = subprocess.Popen([sys.executable, "-P", "-m", "chipwise", "control"], start_new_session=True)
    try:
        time.sleep(8)
        yield Figure("local_ps_wall", _ps(), "s", {"max": 0.5})
        yield Figure("local_ps_cpu", _ps(cpu=True), "s", {"max": 0.5})
        assert controller.poll() is None, "the controller left: nothing was measured"
        process = psutil.Process(controller.pid)
        most = process.memory_info().rss
        for child in process.children(recursive=True):
            child.send_signal(signal.SIGKILL)
        yield Figure("local_controller_memory", most / 1e6, "MB", {"max": 300.0})
    finally:
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        with asking.opened(session, makes=True) as held:
            for row in held.record.rows(Wanted(phases=PLACED)):
                for one in held.engine.processes_of(row.id, row.attempts):
                    one.kill()
