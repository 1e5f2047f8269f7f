"""Calibrating from one's own runs: with consent, from the record, and back into predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.api.measure import calibrate as calibration
from chipwise.api.measure import runs
from chipwise.api.measure.places import checked
from chipwise.api.session import settings_file
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput, InvalidFile, NoResult
from chipwise.runner.events import Begun, Ended, Measured, Over, Placed
from chipwise.runner.job import MachinePlace, Needs, Outcome, Phase, Spec
from chipwise.runner.record import Change, Record
from chipwise.runner.submission.predicted import Allocation, predict, work_of

TUNED = (
    "kind: finetune\nmethod: lora\nname: tuned\nmodel: llama-3.1-8b\ntokens: 1M\nsequence_length: 1024\nbatch_tokens: 8192\n"
    "precision: bf16\nprogram: {command: [python, train.py]}\n"
)
SLOWER = 0.8


def ran(session: Session, record: Record, number: int, text: str = TUNED) -> None:
    """One run on an H200, at four fifths of the predicted speed."""
    path = session.config.config_dir / "w.yaml"
    path.write_text(text)
    work = checked(session, str(path), None)
    predicted = predict(session.known, str(path), work, Allocation("H200"))
    speed = predicted["throughput"]
    assert isinstance(speed, float)
    spec = Spec(("python", "train.py"), work.name, needs=Needs(1, 1), workload=str(path), work=work_of(work))
    [job] = record.submit([(f"tuned-{number}", replace(spec, predicted=predicted))], float(number))
    events = (
        Placed(1, MachinePlace(), (0,), (0,)),
        Begun(1, "h"),
        Ended(1, Outcome.DONE, 0),
        Measured(predicted, {"throughput": SLOWER * speed * (1 + 0.001 * number), "unit": "tokens", "steps": 10}),
        Over(Phase.DONE, ""),
    )
    record.write([Change(job, events)], float(number) + 1.0)


def allow(session: Session) -> None:
    session.config.settings.write_text("calibrate_from_runs: true\n")


def test_without_consent_nothing_is_read_and_the_setting_is_named(session: Session, record: Record) -> None:
    ran(session, record, 1)
    with pytest.raises(BadInput, match="does not allow calibrating from your runs") as caught:
        calibration.calibrate_from_runs(session)
    assert "calibrate_from_runs: true" in str(caught.value)
    session.config.settings.write_text("calibrate_from_runs: false\n")
    with pytest.raises(BadInput, match="does not allow"):
        calibration.calibrate_from_runs(session)


def test_runs_are_fitted_and_the_next_prediction_is_nearer(session: Session, record: Record) -> None:
    for number in range(4):
        ran(session, record, number)
    allow(session)
    result = calibration.calibrate_from_runs(session, force=True)
    assert (result.used, result.refused) == (4, ())
    assert result.path == session.config.calibration
    again = Session(session.config, session.today, [])
    path = str(session.config.config_dir / "w.yaml")
    before = predict(session.known, path, checked(session, path, None), Allocation("H200"))["throughput"]
    after = predict(again.known, path, checked(again, path, None), Allocation("H200"))["throughput"]
    assert isinstance(before, float)
    assert isinstance(after, float)
    assert abs(after / before - SLOWER) < 0.5 * (1 - SLOWER)
    stored = calibration.stored(session.config.calibration)
    assert stored is not None
    assert stored.file == "--from-runs"  # `chipwise calibrate --from-runs` does it again


def test_a_record_without_a_usable_run_says_what_makes_one(session: Session, record: Record) -> None:
    allow(session)
    with pytest.raises(NoResult, match="None of your finished runs can be compared") as caught:
        calibration.calibrate_from_runs(session)
    assert "chipwise run WORKLOAD.yaml" in str(caught.value)


def test_accuracy_is_over_the_runs_of_the_record(session: Session, record: Record) -> None:
    for number in range(3):
        ran(session, record, number)
    result = runs.accuracy(session)
    assert [run.job.id for run in result.runs] == ["tuned-2", "tuned-1", "tuned-0"]
    assert result.overall is not None
    assert result.overall.speed == pytest.approx(SLOWER, rel=0.01)
    assert not runs.accuracy(session, name="other").runs
    assert len(runs.accuracy(session, since=2.5).runs) == 1


@pytest.mark.parametrize("text", ["calibrate_from_runs: perhaps", "calibrate_from_run: true", "- a", "a: ["])
def test_settings_that_say_nothing_are_refused_by_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises((InvalidFile, BadInput)) as caught:
        settings_file.allows(path, settings_file.CALIBRATE_FROM_RUNS)
    assert caught.value.remedy


def test_settings_that_are_not_there_or_all_comment_allow_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    assert not settings_file.allows(path, settings_file.CALIBRATE_FROM_RUNS)
    path.write_text("# nothing yet\n")
    assert not settings_file.allows(path, settings_file.CALIBRATE_FROM_RUNS)
