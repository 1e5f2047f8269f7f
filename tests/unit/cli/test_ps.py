"""Which jobs `ps` lists, and since when each is as it is."""

from __future__ import annotations

import json
import time
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from chipwise.adapters.stores.record import connect
from chipwise.api.running import place, waiting
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.cli.ps import ps
from chipwise.runner.events import Again, Begun, Ended, Over, Placed
from chipwise.runner.job import Job, MachinePlace, Outcome, Phase, Spec
from chipwise.runner.record import Change, Record, Wanted


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    for name in ("config", "data"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"CHIPWISE_{name.upper()}_DIR", str(tmp_path / name))
    return connect(place.record_url(Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), [])))


def test_jobs_of_several_phases_are_listed_together(record: Record) -> None:
    jobs = record.submit([(id, Spec(("true",), id, place="elsewhere")) for id in ("a", "b", "c")], time.time())
    record.write([Change(jobs[0], (Over(Phase.DONE, ""),)), Change(jobs[1], (Over(Phase.FAILED, ""),))], time.time())
    record.close()
    found = CliRunner().invoke(ps, ["--phase", "done", "--phase", "queued", "--json"], catch_exceptions=False)
    assert [row["id"] for row in json.loads(found.stdout)] == ["c", "a"]


def test_a_job_that_went_back_waits_since_then(record: Record) -> None:
    again, _ = record.submit([(id, Spec(("true",), id, place="elsewhere")) for id in ("a", "b")], 1.0)
    [begun] = record.write([Change(again, (Placed(1, MachinePlace()), Begun(1)))], 2.0)
    assert isinstance(begun, Job)
    record.write([Change(begun, (Ended(1, Outcome.LOST, None, "gone"), Again(0.0, "was lost")))], 50.0)
    rows = record.rows(Wanted())
    assert {row.id: row.phase for row in rows} == {"a": Phase.QUEUED, "b": Phase.QUEUED}
    assert waiting.phase_since(record, rows) == {"a": 50.0}
    record.close()


def test_a_line_break_in_an_id_does_not_make_a_row_of_its_own(record: Record) -> None:
    record.submit([("a\nforged  done", Spec(("true",), "a", place="elsewhere"))], time.time())
    record.close()
    shown = CliRunner().invoke(ps, [], catch_exceptions=False).stdout
    assert "a\\x0aforged" in shown
    assert not any(line.startswith("forged") for line in shown.splitlines())
