"""The doctor's first finding over the last minute: of what is watched, replayed, and of each job that runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.adapters.recordings import NAME, Appender
from chipwise.api.observe import watching
from chipwise.api.running.watching import _FOLLOWED, _finding
from chipwise.api.session.wiring import Session
from chipwise.observe.current import EVERY_S, SPAN_S, CurrentFinding
from chipwise.observe.sample import Recording, Sample
from played_recordings import H200, NO_WORK, played


def moved(recording: Recording, by_s: float) -> list[Sample]:
    return [replace(sample, at_s=sample.at_s + by_s) for sample in recording.samples]


IDLE = played({"nvidia:0": NO_WORK}, program={"cpu": 0.0, "cpu_highest_thread": 0.0}, seconds=20.0, startup_s=0.0)
PCIE = played({"nvidia:0": H200["pcie"]}, program={}, seconds=20.0, startup_s=0.0)


def rule(current: CurrentFinding) -> str:
    diagnosis = current.diagnosis()
    return "" if diagnosis is None or diagnosis.first is None else diagnosis.first.rule


def test_what_was_a_minute_ago_has_no_say(session: Session) -> None:
    current = CurrentFinding(lambda: session.chip_names, replace(IDLE, samples=()))
    assert current.diagnosis() is None
    current.add(IDLE.samples)
    assert rule(current) == "idle"
    current.add(moved(PCIE, SPAN_S + 20.0))
    assert rule(current) == "transfer-bound"


def test_it_is_looked_at_anew_every_few_seconds_only(session: Session) -> None:
    current = CurrentFinding(lambda: session.chip_names, replace(IDLE, samples=()))
    current.add(IDLE.samples)
    first = current.diagnosis()
    current.add(moved(PCIE, 20.0)[:5])
    assert current.diagnosis() is first
    current.add(moved(PCIE, 20.0 + EVERY_S))
    assert current.diagnosis() is not first


@pytest.mark.parametrize(("recording", "expected"), [(IDLE, "idle: "), (PCIE, "transfer-bound: ")])
def test_a_replay_ends_with_its_finding(session: Session, tmp_path: Path, recording: Recording, expected: str) -> None:
    path = tmp_path / "run.jsonl"
    writer = Appender(path, replace(recording, samples=()))
    writer.add(recording.samples)
    writer.close()
    watched, _ = watching.replayed(session, path)
    assert watched.finding().startswith(expected)


def test_a_job_s_finding_is_followed_in_its_recording(session: Session, tmp_path: Path) -> None:
    class Held:
        pass

    runtime = Held()
    runtime.session = session  # type: ignore[attr-defined]
    assert _finding(runtime, tmp_path) is None  # type: ignore[arg-type]
    writer = Appender(tmp_path / NAME, replace(IDLE, samples=()))
    writer.add(IDLE.samples)
    assert _finding(runtime, tmp_path) == "idle"  # type: ignore[arg-type]
    writer.add(moved(PCIE, SPAN_S + 30.0))
    assert _finding(runtime, tmp_path) == "transfer-bound"  # type: ignore[arg-type]
    writer.close()
    _FOLLOWED.clear()
