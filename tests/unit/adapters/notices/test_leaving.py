"""Real jobs on a machine whose cloud (a stand-in for its metadata server) takes it away: they save and exit in time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from chipwise.adapters.engines.local import folder, processes
from chipwise.adapters.engines.local.engine import Config, Local, connect
from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.runner.engine import Start, State
from chipwise.runner.events import Leaving
from chipwise.runner.job import Job, LeaveReason, Outcome, Phase, Spec
from chipwise.runner.loop import Controller
from metadata_stand_ins import StandIn, serving
from run_jobs import queued, starting

# Real processes that are killed and waited for: minutes of waiting, so `make e2e` runs it.
pytestmark = pytest.mark.e2e

TRAINS = """
import time
import chipwise.job as job
state = {"sum": 0}
for step in job.steps(state, total=TOTAL, every=1000):
    state["sum"] += step
    time.sleep(0.02)
print("all", state["sum"])
"""
# Knows nothing of us: saves at SIGTERM, and ends with 0 as many programs do.
SAVES = """
import signal, sys, time
def leave(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
for _ in range(600):  # a signal between the print and one long sleep would be heard at its end
    time.sleep(0.1)
"""


def spec(code: str) -> Spec:
    return Spec((sys.executable, "-u", "-c", code), "train", place="local:test", grace_s=10.0)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Local]:
    made = connect(Config(tmp_path / "jobs", cpus=(0, 1), place="local:test", pin=False))
    yield made
    for at in (tmp_path / "jobs").glob("*/[0-9]*"):
        state = folder.read(at, folder.STATE) or {}
        if processes.lives(state.get("pid"), state.get("identity")):
            os.kill(state["pid"], signal.SIGKILL)
        processes.end(processes.marked(str(at)))
    for one in made._started:
        one.wait(timeout=10)


@pytest.fixture
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with serving(request.param) as server:
        monkeypatch.setenv("CHIPWISE_CLOUD", request.param)
        monkeypatch.setenv("CHIPWISE_METADATA_URL", server.url)
        monkeypatch.setenv("CHIPWISE_NOTICE_S", "0.5")
        CALM[request.param](server)
        yield server


def _scheduled(server: StandIn, *events: Mapping[str, object]) -> None:
    server.say("scheduledevents", json.dumps({"DocumentIncarnation": 1, "Events": events}))


def _azure_calm(server: StandIn) -> None:
    server.say("instance/compute/name", "trainer-1")
    _scheduled(server)


def _azure_takes(server: StandIn) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    event = {"EventId": "e1", "EventType": "Preempt", "Resources": ["trainer-1"], "EventStatus": "Scheduled", "NotBefore": at}
    _scheduled(server, event)


def _ec2_takes(server: StandIn) -> None:
    at = datetime.now(UTC) + timedelta(seconds=120)
    server.say("spot/instance-action", json.dumps({"action": "terminate", "time": at.strftime("%Y-%m-%dT%H:%M:%SZ")}))


def _google_calm(server: StandIn) -> None:
    server.say("preempted", "FALSE")
    server.say("maintenance-event", "NONE")


CALM: dict[str, Callable[[StandIn], None]] = {"ec2": lambda server: None, "google": _google_calm, "azure": _azure_calm}
TAKES: dict[str, Callable[[StandIn], None]] = {
    "ec2": _ec2_takes,
    "google": lambda server: server.say("preempted", "TRUE"),
    "azure": _azure_takes,
}
REASONS = {"ec2": "AWS is reclaiming", "google": "Google is reclaiming", "azure": "Azure is reclaiming"}
each_cloud = pytest.mark.parametrize("cloud", list(TAKES), indirect=True)
on_ec2 = pytest.mark.parametrize("cloud", ["ec2"], indirect=True)


def until(what: Callable[[], object], seconds: float = 30.0) -> None:
    late = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < late
        time.sleep(0.05)


@each_cloud
def test_a_training_saves_and_leaves_in_time_and_goes_on_when_there_is_a_machine_again(
    engine: Local, cloud: StandIn, tmp_path: Path
) -> None:
    record = MemoryRecord()
    controller = Controller(record, engine, "test")
    record.submit([("j1", spec(TRAINS.replace("TOTAL", "150")))], time.time())

    def turned() -> Job:
        controller.turn(time.time())
        found = record.job("j1")
        assert found is not None
        return found

    def step() -> int:
        return int((folder.read(engine.folder("j1", 1), folder.PROGRESS) or {}).get("step") or 0)

    until(lambda: turned().phase is Phase.RUNNING and step() >= 5)
    TAKES[cloud.cloud](cloud)
    told = time.time()
    until(lambda: turned().attempts[0].outcome is not None)
    first = turned().attempts[0]
    assert first.outcome is Outcome.LEFT
    assert first.code == 75
    assert first.ended is not None
    assert first.ended - told < 25.0
    assert first.step is not None
    assert first.saved == first.step < 150, "it saved what it had done"
    for leaving in [one.event for one in record.events("j1") if isinstance(one.event, Leaving)]:  # or gone before a look
        assert leaving.why is LeaveReason.NOTICE
        assert leaving.reason.startswith(REASONS[cloud.cloud])
    late = time.monotonic() + 1.0
    while time.monotonic() < late:
        assert len(turned().attempts) == 1, "nothing starts on a machine that goes away"
        time.sleep(0.1)

    CALM[cloud.cloud](cloud)  # another machine, with the same disk
    cloud.say("spot/instance-action", None)
    going = folder.read(engine.config.root, folder.GOING)
    assert going is not None
    folder.write(engine.config.root, folder.GOING, {**going, "boot": "another"})
    until(lambda: turned().phase.over)
    done = turned()
    assert done.phase is Phase.DONE
    assert (engine.folder("j1", 2) / "log").read_text() == f"all {sum(range(150))}\n"


@each_cloud
def test_the_engine_tells_a_notice_with_its_time(engine: Local, cloud: StandIn) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    job = starting(queued("j1", spec(code)))
    engine.do(Start(job))
    until(lambda: _log(engine, job) == "ready\n")
    assert engine.look([job], time.time()).attempts[("j1", 1)].leave_by is None
    TAKES[cloud.cloud](cloud)
    until(lambda: engine.look([job], time.time()).attempts[("j1", 1)].leave_by is not None)
    sight = engine.look([job], time.time()).attempts[("j1", 1)]
    assert sight.state is State.RUNNING
    assert sight.reason.startswith(REASONS[cloud.cloud])
    assert sight.leave_by is not None
    assert 10.0 < sight.leave_by - time.time() <= 120.0
    until(lambda: folder.read(engine.folder("j1", 1), folder.NOTICE) is not None)  # the program is told after the engine is
    notice = folder.read(engine.folder("j1", 1), folder.NOTICE) or {}
    assert notice["until"] == sight.leave_by


@on_ec2
def test_a_program_that_ends_with_0_when_it_is_told_to_leave_is_not_done(engine: Local, cloud: StandIn) -> None:
    record = MemoryRecord()
    controller = Controller(record, engine, "test")
    record.submit([("j1", spec(SAVES))], time.time())

    def turned() -> Job:
        controller.turn(time.time())
        found = record.job("j1")
        assert found is not None
        return found

    until(lambda: turned().phase is Phase.RUNNING and _log(engine, turned()) == "ready\n")
    _ec2_takes(cloud)
    until(lambda: turned().attempts[0].outcome is not None)
    assert turned().attempts[0].outcome is Outcome.LEFT
    assert turned().phase is Phase.QUEUED


def test_a_signal_of_the_system_to_the_supervisor_is_a_notice(engine: Local) -> None:
    """As when a pod is evicted or a machine shuts down: nobody of ours asked."""
    job = starting(queued("j1", spec(SAVES)))
    engine.do(Start(job))
    until(lambda: _log(engine, job) == "ready\n")
    supervisor = engine.supervisor_of("j1", 1)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGTERM)
    until(lambda: engine.look([job], time.time()).attempts[("j1", 1)].state is State.EXITED)
    sight = engine.look([job], time.time()).attempts[("j1", 1)]
    assert sight.code == 0
    assert sight.leave_by is not None
    assert engine.look([], time.time()).room.cpus == (0, 1), "a signal says nothing of the machine"


@on_ec2
@pytest.mark.parametrize("trouble", ["hang", "garbage", 500])
def test_a_sick_metadata_server_changes_nothing_for_a_job(engine: Local, cloud: StandIn, trouble: int | str) -> None:
    cloud.trouble = trouble
    job = starting(queued("j1", spec("import time; time.sleep(1.0); print('well')")))
    begun = time.monotonic()
    engine.do(Start(job))
    until(lambda: engine.look([job], time.time()).attempts[("j1", 1)].state is State.EXITED)
    assert time.monotonic() - begun < 10.0
    sight = engine.look([job], time.time()).attempts[("j1", 1)]
    assert (sight.code, sight.leave_by) == (0, None)
    assert cloud.asked


@pytest.mark.parametrize("cloud", ["azure"], indirect=True)
def test_the_last_job_on_the_machine_acknowledges_where_that_is_wanted(
    engine: Local, cloud: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHIPWISE_ACKNOWLEDGE", "yes")
    slow = SAVES.replace('print("saved", flush=True)', "time.sleep(3)")
    jobs = [starting(queued(id, spec(code))) for id, code in (("j1", SAVES), ("j2", slow))]
    for job in jobs:
        engine.do(Start(job))
    until(lambda: all(_log(engine, job) == "ready\n" for job in jobs))
    _azure_takes(cloud)
    until(lambda: engine.look(jobs, time.time()).attempts[("j1", 1)].state is State.EXITED)
    assert cloud.acknowledged == []
    until(lambda: engine.look(jobs, time.time()).attempts[("j2", 1)].state is State.EXITED)
    until(lambda: cloud.acknowledged == ["e1"])


# A program that no engine of ours runs


@pytest.fixture
def wrapped() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(*command: str, **env: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "chipwise.adapters.notices", "--", *command]
        started.append(
            subprocess.Popen(
                words,
                env={**os.environ, **env},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield start
    for one in started:
        with suppress(ProcessLookupError):  # with the program, which holds the output open
            os.killpg(one.pid, signal.SIGKILL)
        one.communicate()


@on_ec2
def test_a_plain_program_saves_and_leaves_too(
    cloud: StandIn, tmp_path: Path, wrapped: Callable[..., subprocess.Popen[str]]
) -> None:
    code = TRAINS.replace("TOTAL", "100_000").replace('sum"] += step', "sum\"] += step; step or open('begun', 'w').close()")
    program = tmp_path / "train.py"
    program.write_text(f"import os; os.chdir({str(tmp_path)!r})\n{code}")
    running = wrapped(sys.executable, str(program))
    until(lambda: (tmp_path / "begun").exists())
    _ec2_takes(cloud)
    assert running.wait(30) == 75
    assert any((tmp_path / "checkpoints").iterdir())


def test_a_plain_program_is_passed_signals_and_passes_on_its_exit_code(wrapped: Callable[..., subprocess.Popen[str]]) -> None:
    running = wrapped(sys.executable, "-c", SAVES.replace("sys.exit(0)", "sys.exit(7)"))
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGTERM)
    assert running.wait(20) == 7
    assert wrapped(sys.executable, "-c", "import os; os.kill(os.getpid(), 9)").wait(20) == 137
    assert wrapped("no-such-program-here").wait(20) == 127
    assert wrapped().wait(20) == 2


def _log(engine: Local, job: Job) -> str:
    path = engine.folder(job.id, len(job.attempts)) / "log"
    return path.read_text() if path.exists() else ""
