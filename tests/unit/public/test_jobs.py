"""Jobs from Python: submitted, waited for, read, stopped, in directories of their own."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import chipwise as cw


@pytest.fixture
def session(home: Path) -> Iterator[cw.Session]:
    """Its data directory is its own, not the user's; the controller leaves with it."""
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    data = home / "elsewhere"
    yield cw.open(data_dir=data)
    for lock in data.glob("run/controller.lock"):
        with suppress(OSError, ValueError):
            os.kill(int(lock.read_text()), signal.SIGTERM)


def test_a_command_runs_and_its_output_is_read(session: cw.Session, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = session.run([sys.executable, "-c", "print('hello'); print('bye')"], name="greet", env={"X": "1"})
    assert job.wait("60s") == "done"
    assert job.logs() == "hello\nbye\n"
    assert job.logs(tail=1) == "bye\n"
    assert "".join(job.follow()) == "hello\nbye\n"
    assert job.data.name == "greet"
    assert job.data.attempts[0].code == 0
    assert [row.id for row in session.ps()] == [job.id]
    assert session.find_job("greet") == job == pickle.loads(pickle.dumps(job))
    assert not (home / ".local").exists()  # nothing went into the user's own directory
    [forgotten] = session.forget(job)
    assert forgotten.bytes > 0
    assert capfd.readouterr() == ("", "")


def test_a_workload_that_is_no_file_runs_where_the_program_is(
    session: cw.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-c", "open('made', 'w').write('x'); print('worked')"]
    work = cw.Hpc(flop_per_step="1 GFLOP", steps=10, program={"command": command, "produces": ["made"]})
    job = session.run(work, retries=0)
    assert job.wait("60s") == "done"
    assert job.logs() == "worked\n"
    assert (tmp_path / "made").exists()


def test_a_job_is_stopped_and_goes_on(session: cw.Session) -> None:
    job = session.run([sys.executable, "-c", "import time; time.sleep(600)"])
    until = time.monotonic() + 60
    while job.phase != "running":
        assert time.monotonic() < until
        time.sleep(0.1)
    with pytest.raises(cw.TryLater, match="is running after"):
        job.wait("0.01s")
    assert session.top()[0].id == job.id
    job.stop(now=True, wait=True)
    assert job.phase == "stopped"
    with pytest.raises(cw.BadInput, match="stopped already"):
        job.stop()


def test_what_cannot_run_says_why(session: cw.Session) -> None:
    with pytest.raises(cw.BadInput, match="does not say what to run"):
        session.run(cw.Hpc(flop_per_step="1 GFLOP"))
    with pytest.raises(cw.BadInput, match=r"cw\.serve\(model\) serves it on this machine"):
        session.run(session.plan("llama-3.1-8b", serve=True, rps=5, input=500, output=200, cloud="aws"))
    with pytest.raises(cw.UnknownName, match="priority"):
        session.run(["true"], priorty=1)  # type: ignore[call-arg]
    with pytest.raises(cw.UnknownName, match="nobody"):
        session.describe("nobody")


def test_a_simulated_job_starts_nothing(session: cw.Session) -> None:
    played = session.simulate(["true"], expected="1h", name="played")
    assert played.to_dict()
    assert len(session.ps()) == 0
