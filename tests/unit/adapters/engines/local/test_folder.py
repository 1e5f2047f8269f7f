"""Files of an attempt lie where its program may write: whatever is in them, whoever reads them goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chipwise.adapters.engines.local import engine as local
from chipwise.adapters.engines.local import folder, sights
from chipwise.errors import BadInput
from chipwise.runner.engine import Clear, State
from chipwise.runner.job import Attempt, Job, MachinePlace, Phase, Spec

NOT_OURS = (
    "",
    "{",
    "[]",
    "3",
    "[" * 200_000,
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": 1e999}',
    '{"a": ' + "9" * 5000 + "}",
    '"\udcff"',
)


@pytest.mark.parametrize("text", NOT_OURS)
def test_what_is_not_ours_is_as_if_it_were_not_there(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_bytes(text.encode(errors="surrogateescape"))
    assert folder.read(tmp_path, "state.json") is None


def test_reading_does_not_wait_for_a_pipe_or_open_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "progress.json")
    (tmp_path / "leave.json").mkdir()
    assert folder.read(tmp_path, "progress.json") is None
    assert folder.read(tmp_path, "leave.json") is None


def test_of_what_a_program_writes_no_more_is_read_than_it_can_have_to_say(tmp_path: Path) -> None:
    """It is read at every look: 64 MB of empty lists took seconds each time, from all jobs of the place."""
    (tmp_path / folder.PROGRESS).write_text('{"step": 3}')
    assert sights.progress_of(tmp_path)["step"] == 3
    (tmp_path / folder.PROGRESS).write_text('{"step": 3, "more": [' + "[]," * 30_000 + "[]]}")
    assert sights.progress_of(tmp_path)["step"] is None


@pytest.mark.parametrize(
    ("held", "number", "whole"),
    [
        (3, 3.0, 3),
        (2.5, 2.5, None),
        (True, None, None),
        ("3", None, None),
        (None, None, None),
        (10**400, None, None),
        (-1, -1.0, -1),
    ],
)
def test_a_field_holds_a_number_or_nothing(held: object, number: float | None, whole: int | None) -> None:
    assert folder.number({"a": held}, "a") == number
    assert folder.integer({"a": held}, "a") == whole


HOSTILE = (
    '{"step": "x", "saved_step": true, "steady": [], "by": {}, "notice": 1, "reason": 3, '
    '"code": "0", "at": "y", "pid": 1.5, "sessions": 7}'
)


@pytest.mark.parametrize(
    "names", [["progress.json"], ["leave.json"], ["state.json"], ["ended.json"], ["state.json", "ended.json"]]
)
def test_a_look_at_an_attempt_survives_what_its_program_wrote(tmp_path: Path, names: list[str]) -> None:
    engine = local.connect(local.Config(tmp_path / "jobs", place="here"))
    job = Job("j1", Spec(("true",), "j1"), 0.0, phase=Phase.RUNNING, attempts=(Attempt(1, MachinePlace()),))
    at = engine.folder("j1", 1)
    at.mkdir(parents=True)
    for name in names:
        (at / name).write_text(HOSTILE)
    sight = engine.look([job], 0.0).attempts[("j1", 1)]
    assert sight.state in (State.ABSENT, State.LOST)
    assert (sight.step, sight.saved, sight.rate, sight.until) == (None, None, None, None)


def test_words_of_a_program_are_words_that_a_record_takes() -> None:
    assert folder.words({"a": "b\0c\udcff"}, "a") == "bc?"
    assert len(folder.words({"a": "b" * 10_000}, "a")) == 2000


@pytest.mark.parametrize("goes_on", [True, False])
def test_secrets_stay_for_the_next_attempt_and_go_when_there_is_none(tmp_path: Path, goes_on: bool) -> None:
    engine = local.connect(local.Config(tmp_path / "jobs", place="here", passing=tmp_path / "passing"))
    (tmp_path / "passing" / "j1").mkdir(parents=True)
    engine.do(Clear(str(engine.folder("j1", 1)), goes_on))
    assert (tmp_path / "passing" / "j1").exists() is goes_on


def test_a_stored_secret_that_could_not_be_hidden_is_refused_and_a_pipe_is_none(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "pin").write_text("12\n")
    os.mkfifo(tmp_path / "secrets" / "pipe")
    engine = local.connect(local.Config(tmp_path / "jobs", place="here", secrets=tmp_path / "secrets"))
    with pytest.raises(BadInput, match="too short to redact"):
        engine._secrets(Job("j1", Spec(name="j", command=("true",), secrets={"PIN": "pin"}), 1.0))
    assert engine._secret(Job("j1", Spec(("true",), "j"), 1.0), "PIN", "pipe") is None


@pytest.mark.parametrize("kept", ["../outside", "/etc/hostname", "a/../../outside"])
def test_a_secret_is_never_read_from_elsewhere(tmp_path: Path, kept: str) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "outside").write_text("not yours")
    engine = local.connect(local.Config(tmp_path / "jobs", place="here", secrets=tmp_path / "secrets"))
    assert engine._secret(Job("j1", Spec(("true",), "j"), 1.0), "NOT_SET_ANYWHERE", kept) is None
