"""The controller as a process, where no other process is needed to see it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pytest

from chipwise.adapters.engines.local import folder
from chipwise.adapters.stores.record import connect
from chipwise.api.running import leading, place
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.errors import NotAllowed, TryLater
from chipwise.runner.events import Over
from chipwise.runner.job import Phase, Spec
from chipwise.runner.loop import Controller
from chipwise.runner.record import Change


@pytest.fixture
def session(tmp_path: Path) -> Session:
    for name in ("config", "data"):
        (tmp_path / name).mkdir()
    return Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), [])


def test_secrets_stay_while_their_job_lives_or_is_being_submitted(session: Session, tmp_path: Path) -> None:
    record = connect(place.record_url(session))
    over, _ = record.submit([("over", Spec(("true",), "over")), ("lives", Spec(("true",), "lives"))], 0.0)
    record.write([Change(over, (Over(Phase.STOPPED, "on request"),))], 1.0)
    for id in ("over", "lives", "young", "old"):
        (tmp_path / "passing" / id).mkdir(parents=True)
    long_ago = time.time() - 2.0 * leading.SUBMITTED_WITHIN_S
    os.utime(tmp_path / "passing" / "old", (long_ago, long_ago))
    leading._tidy(tmp_path / "passing", record)
    assert sorted(one.name for one in (tmp_path / "passing").iterdir()) == ["lives", "young"]
    record.close()


def test_secrets_that_were_taken_over_go_with_their_job_though_its_controller_died(session: Session, tmp_path: Path) -> None:
    """As those that still wait to be taken over do."""
    record = connect(place.record_url(session))
    over, _ = record.submit([("over", Spec(("true",), "over")), ("lives", Spec(("true",), "lives"))], 0.0)
    record.write([Change(over, (Over(Phase.STOPPED, "on request"),))], 1.0)
    for id in ("over", "lives"):
        (tmp_path / "taken" / id).mkdir(parents=True)
        (tmp_path / "taken" / id / "TOKEN").write_text("hush")
    leading._tidy(tmp_path / "passing", record)  # which need not be there
    assert [one.name for one in (tmp_path / "taken").iterdir()] == ["lives"]
    record.close()


def test_a_job_that_came_while_the_controller_was_leaving_is_not_left_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever submitted it saw the lock held, and started nobody."""
    woken: list[str] = []
    monkeypatch.setattr(leading, "awake", lambda session, where="": woken.append(where))
    monkeypatch.setattr(leading, "_asked_to_go", list)
    monkeypatch.setenv("CHIPWISE_GPUS", "none")
    local = place.engine_here(session)
    resign = Controller.resign

    def late(leaving: Controller) -> None:
        resign(leaving)
        assert folder.locked(session.config.run_dir / "controller.lock")
        record.submit([("late", Spec(("true",), "late", place=local.place))], time.time())

    record = connect(place.record_url(session))
    monkeypatch.setattr(Controller, "resign", late)
    leading.control(session, idle_s=0.0)
    record.close()
    assert woken == [""]
    assert not folder.locked(session.config.run_dir / "controller.lock")


def test_trouble_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    told = leading._TroubleLog()
    for trouble in (("a",), ("a",), ("a", "b"), (), ("a",)):
        told.say(*trouble)
    assert capsys.readouterr().out == "a\na\nb\na\n"


def test_one_whom_the_record_never_let_act_does_not_stay_for_ever(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Controller, now: float) -> None:
        raise NotAllowed("The record refuses this to you.")

    monkeypatch.setattr(Controller, "turn", refused)
    monkeypatch.setattr(leading, "_asked_to_go", list)
    monkeypatch.setattr(leading, "GIVES_UP_S", 0.5)
    monkeypatch.setenv("CHIPWISE_GPUS", "none")
    leading.control(session)
    assert not folder.locked(session.config.run_dir / "controller.lock")


def test_two_data_directories_of_one_machine_are_two_places(tmp_path: Path) -> None:
    """Each knows only what lies in its own folders: with one place, either would take the other's attempts for lost."""
    places = {place.this_place(Session(Config(tmp_path, tmp_path / name), date(2026, 11, 15), [])) for name in ("a", "b")}
    assert len(places) == 2


def test_a_list_of_jobs_of_this_machine_imports_no_other_engine(session: Session) -> None:
    """`ps` sees to it that a controller lives: what it imports for that is most of what it takes."""
    folders = f"Path({str(session.config.config_dir)!r}), Path({str(session.config.data_dir)!r})"
    code = (
        "import sys; from datetime import date; from pathlib import Path; from chipwise.api.session.config import Config\n"
        "from chipwise.api.running import controlling, place, waiting; from chipwise.api.session.wiring import Session\n"
        f"place.home_of(Session(Config({folders}), date.today(), []), '')\n"
        "print([one for one in ('pydantic', 'lightkube', 'boto3', 'numpy') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_second_controller_says_that_there_is_one(session: Session) -> None:
    """With a code of its own: a service manager must not take it for one that has done its work."""
    session.config.run_dir.mkdir(parents=True, exist_ok=True)
    lock = folder.lock(session.config.run_dir / "controller.lock")
    assert lock is not None
    os.write(lock, b"4711\n")
    with pytest.raises(TryLater, match=r"A controller \(process 4711\) leads this machine already") as refused:
        leading.control(session)
    assert refused.value.exit_code == 3
    os.close(lock)
