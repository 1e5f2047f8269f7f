"""What people are told of jobs that nobody can look at now, and of a controller that does not answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

import chipwise as cw
from chipwise.adapters import waking
from chipwise.adapters.engines.local import folder, processes
from chipwise.adapters.stores.record import connect
from chipwise.api.running import controlling, place, sightings, waiting
from chipwise.api.running.held import Runtime
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.cli.describe import describe
from chipwise.cli.ps import ps
from chipwise.runner.events import Begun, Ended, Over, Placed
from chipwise.runner.job import Job, MachinePlace, Outcome, Phase, Spec
from chipwise.runner.loop import LEASE_S
from chipwise.runner.queue import Rules
from chipwise.runner.record import Change, Record, Row, Wanted
from chipwise.runner.sighting import Sighting
from chipwise.views.jobs import row_view

CLUSTER = "kubernetes:10.0.0.1:6443/train"
SILENT = waking.Silence(pid=4711, user="robot", seconds=70.0, watched_s=0.0, identity="boot:1")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    for name in ("config", "data"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"CHIPWISE_{name.upper()}_DIR", str(tmp_path / name))
    monkeypatch.setenv("CHIPWISE_GPUS", "none")
    monkeypatch.setattr(controlling, "awake", lambda session, place="", wait_s=0.0: None)
    return Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), [])


@pytest.fixture
def record(session: Session) -> Iterator[Record]:
    opened = connect(place.record_url(session))
    yield opened
    opened.close()


def submitted(record: Record, site: str, engine: str = "kubernetes", *, runs: bool = True) -> Job:
    [job] = record.submit([("j1", Spec(("true",), "j1", engine=engine, place=site))], time.time() - 600.0)
    if runs:
        [answer] = record.write([Change(job, (Placed(1, MachinePlace()), Begun(1)))], time.time() - 600.0)
        assert isinstance(answer, Job)
        return answer
    return job


def known(session: Session, record: Record) -> Sighting:
    [sighting] = sightings.of_rows(session, record, record.rows(Wanted())).values()
    [job] = record.jobs(Wanted())
    both = sightings.of_job(session, record, job)
    assert (both.phase, both.note, both.is_certain) == (sighting.phase, sighting.note, sighting.is_certain)
    return sighting


def looked(session: Session, ago_s: float) -> int:
    """A controller of the cluster is on this machine, and looked so long ago."""
    home = place.home_of(session, CLUSTER)
    home.mkdir(parents=True)
    (home / place.LOOKED).touch()
    os.utime(home / place.LOOKED, (time.time() - ago_s, time.time() - ago_s))
    lock = folder.lock(home / "controller.lock")
    assert lock is not None
    return lock


def test_of_a_place_whose_controller_leads_the_record_is_the_truth(session: Session, record: Record) -> None:
    submitted(record, CLUSTER)
    record.lead(CLUSTER, "there:1", time.time(), LEASE_S)
    sighting = known(session, record)
    assert (sighting.label, sighting.note) == ("running", "")
    assert sighting.seen == pytest.approx(time.time(), abs=2.0)


def test_of_a_place_whose_controller_does_not_answer_it_is_said_when_somebody_looked(session: Session, record: Record) -> None:
    submitted(record, CLUSTER)
    record.lead(CLUSTER, "there:1", time.time() - 240.0, LEASE_S)
    sighting = known(session, record)
    assert (sighting.label, sighting.note) == ("running?", "seen 4 min ago; its controller does not answer")
    assert sighting.seen == pytest.approx(time.time() - 240.0, abs=2.0)


def test_a_place_that_nobody_leads_is_said_to_be_so(session: Session, record: Record) -> None:
    submitted(record, CLUSTER)
    assert known(session, record) == Sighting("running", None, "it has no controller now", is_certain=False)


def test_a_controller_that_cannot_see_its_jobs_says_since_when(session: Session, record: Record) -> None:
    submitted(record, CLUSTER)
    record.lead(CLUSTER, "here:1", time.time(), LEASE_S)
    lock = looked(session, 300.0)
    assert known(session, record).note == "seen 5 min ago; its engine does not answer"
    os.close(lock)


def test_a_controller_that_can_see_its_jobs_needs_no_words(session: Session, record: Record) -> None:
    submitted(record, CLUSTER)
    record.lead(CLUSTER, "here:1", time.time(), LEASE_S)
    lock = looked(session, 2.0)
    sighting = known(session, record)
    assert (sighting.label, sighting.note) == ("running", "")
    os.close(lock)


def test_a_job_of_this_machine_is_looked_at_whoever_leads(session: Session, record: Record) -> None:
    job = submitted(record, place.this_place(session), "local")
    path = session.config.run_dir / "jobs" / job.id / "1"
    path.mkdir(parents=True)
    folder.write(path, folder.STATE, {"pid": os.getpid(), "identity": processes.identity(os.getpid()), "begun": 1.0})
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as program:
        assert known(session, record).label == "running"
        program.communicate(b"\n")
    folder.write(path, folder.STATE, {"pid": os.getpid(), "identity": "another boot:1", "begun": time.time() - 60.0})
    (path / folder.LOCK).touch()
    os.utime(path / folder.LOCK, (time.time() - 12.0, time.time() - 12.0))
    sighting = known(session, record)
    assert (sighting.phase, sighting.note) == ("lost", "process gone, seen 12 s ago")
    shown = CliRunner().invoke(ps, [], catch_exceptions=False)
    assert " lost " in shown.stdout
    assert "running" not in shown.stdout
    [row] = json.loads(CliRunner().invoke(ps, ["--json"], catch_exceptions=False).stdout)
    assert row["phase"] == "lost"
    assert row["seen"] == pytest.approx(time.time() - 12.0, abs=5.0)
    described = CliRunner().invoke(describe, [job.id], catch_exceptions=False).stdout
    assert described.startswith(f"{job.id}: lost, process gone, seen ")


def test_this_machine_is_looked_at_after_the_record_was_read(
    session: Session, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that is away for some seconds keeps whoever asks waiting, and the job may end meanwhile."""
    job = submitted(record, place.this_place(session), "local")
    path = session.config.run_dir / "jobs" / job.id / "1"
    path.mkdir(parents=True)
    state = {"pid": os.getpid(), "identity": processes.identity(os.getpid()), "begun": 1.0}
    folder.write(path, folder.STATE, state)

    def ends(*_: object) -> dict[str, tuple[str, str]]:
        folder.write(path, folder.STATE, {**state, "identity": "another boot:1"})
        return {}

    monkeypatch.setattr(waiting, "asked_and_why", ends)
    [row] = cw.ps(everything=True)
    assert row.phase == "lost"


def test_a_row_that_changed_since_it_was_read_is_not_believed(session: Session, record: Record) -> None:
    job = submitted(record, place.this_place(session), "local")
    rows = record.rows(Wanted())
    record.write([Change(job, (Ended(1, Outcome.FAILED, 1), Over(Phase.FAILED, "exit code 1")))], time.time())
    assert sightings.of_rows(session, record, rows)["j1"] == Sighting("failed")


def test_rows_are_read_again_where_the_record_kept_whoever_asks_waiting(
    session: Session, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted(record, place.this_place(session), "local", runs=False)
    monkeypatch.setattr(sightings, "STALE_S", 0.2)
    readings: list[Phase] = []

    def slow(rows: Sequence[Row]) -> int:
        readings.append(rows[0].phase)
        if len(readings) == 1:
            record.write([Change(job, (Placed(1, MachinePlace()), Begun(1)))], time.time())
            time.sleep(0.3)
        return len(readings)

    [row], reading, _ = sightings.listed(session, record, Wanted(), slow)
    assert (row.phase, reading, readings) == (Phase.RUNNING, 2, [Phase.QUEUED, Phase.RUNNING])


def test_the_cost_of_one_that_is_gone_ends_when_it_was_seen_last(session: Session, record: Record) -> None:
    owner = place.this_place(session)
    [job] = record.submit([("j1", Spec(("true",), "j1", place=owner))], time.time() - 7200.0)
    begins = time.time() - 7200.0
    where = replace(MachinePlace(), usd_per_hour=60.0)
    record.write([Change(job, (Placed(1, where, (), (0,)), Begun(1, at=begins)))], begins)
    path = session.config.run_dir / "jobs" / "j1" / "1"
    path.mkdir(parents=True)
    folder.write(path, folder.STATE, {"pid": os.getpid(), "identity": "another boot:1", "begun": begins})
    (path / folder.LOCK).touch()
    os.utime(path / folder.LOCK, (begins + 120.0, begins + 120.0))
    shown = CliRunner().invoke(describe, ["j1"], catch_exceptions=False).stdout
    lines = {line.split()[0]: line.split(None, 1)[1] for line in shown.splitlines() if len(line.split()) > 1}
    assert (lines["ran"], lines["cost"]) == ("2 min", "$2.00")


def test_one_that_waits_is_not_told_to_wait_for_its_turn_by_a_controller_that_does_not_answer(
    session: Session, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(record, place.this_place(session), "local", runs=False)
    monkeypatch.setattr(waking, "silence", lambda lock: SILENT)
    sentence = "the controller (process 4711) has not answered for 1 min 10 s; it is being replaced"
    assert known(session, record) == Sighting("queued", None, sentence)
    assert f"{sentence[1:]}." in CliRunner().invoke(ps, [], catch_exceptions=False).stderr
    described = CliRunner().invoke(describe, ["j1"], catch_exceptions=False).stdout
    assert "its turn" not in described
    assert "does not answer" in controlling.unanswered(session).summary  # type: ignore[union-attr]
    monkeypatch.setattr(waking, "silence", lambda lock: replace(SILENT, seconds=10.0))
    assert known(session, record).note.endswith("for 10 s; it is replaced after 30 s")


def test_who_follows_one_that_waits_is_told_once_that_its_controller_does_not_answer(
    session: Session, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted(record, place.this_place(session), "local", runs=False)
    monkeypatch.setattr(waking, "silence", lambda lock: SILENT)
    monkeypatch.setattr(waiting, "LOOKS_S", 0.0)
    local = place.engine_here(session)
    watched = waiting.Watched(Runtime(record=record, engine=local, rules=Rules(), root=local.config.root, session=session))
    assert watched.news(job) == ["j1 waits: the controller (process 4711) does not answer"]
    monkeypatch.setattr(waking, "silence", lambda lock: replace(SILENT, seconds=80.0))
    assert watched.news(job) == []


def test_of_a_controller_of_another_user_it_is_said_who_can_end_it(
    session: Session, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(record, place.this_place(session), "local", runs=False)
    monkeypatch.setattr(waking, "silence", lambda lock: SILENT)
    monkeypatch.setattr(place, "is_ours", lambda session: False)
    sentence = "the controller of robot (process 4711) has not answered for 1 min 10 s; only robot can kill it"
    assert known(session, record).note == sentence


def test_json_keeps_its_fields_and_gets_when_a_job_was_seen(record: Record) -> None:
    submitted(record, CLUSTER)
    [row] = record.rows(Wanted())
    plain, seen = row_view(row), row_view(row, Sighting("running", 5.0, "seen 4 min ago", is_certain=False))
    assert plain.keys() == seen.keys() > {"id", "phase", "reason", "begun", "ended", "submitted", "seen"}
    assert (plain["phase"], plain["seen"]) == ("running", None)
    assert (seen["phase"], seen["seen"], seen["reason"]) == ("running", 5.0, "seen 4 min ago")


def test_jobs_that_wait_while_no_controller_runs_say_so(session: Session, record: Record) -> None:
    submitted(record, place.this_place(session), "local", runs=False)
    assert known(session, record) == Sighting("queued", None, sightings.NOBODY)
    shown = CliRunner().invoke(ps, [], catch_exceptions=False)
    assert "No controller is running; starting one." in shown.stderr


def test_json_says_why_a_job_waits_as_the_table_does(session: Session, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted(record, place.this_place(session), "local", runs=False)
    lock = folder.lock(_home(session) / "controller.lock")
    monkeypatch.setattr(place, "given_out", lambda session: {"gpus": [], "cpus": []})
    [row] = json.loads(CliRunner().invoke(ps, ["--json"], catch_exceptions=False).stdout)
    assert row["reason"] == "1 CPU is needed, and there are 0: it cannot start here"
    assert lock is not None
    os.close(lock)


def _home(session: Session) -> Path:
    session.config.run_dir.mkdir(parents=True, exist_ok=True)
    return session.config.run_dir
