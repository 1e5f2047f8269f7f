"""Secrets on their way to a job: taken over from whoever handed them in, and given to the program and to nobody else."""

from __future__ import annotations

import json
import os
import pwd
import sys
import time
from pathlib import Path

import pytest

from chipwise.adapters.engines.local import engine as local
from chipwise.adapters.engines.local import handed_in
from chipwise.errors import BadInput, NotFound
from chipwise.runner.engine import Start
from chipwise.runner.job import Attempt, Job, MachinePlace, Spec
from patience import deadline

SHOWS = "import json, os, sys; open(sys.argv[1] + '/shown.new', 'w').write(json.dumps(dict(os.environ)))"
SHOWS += "; os.rename(sys.argv[1] + '/shown.new', sys.argv[1] + '/shown')"


def _job(secrets: dict[str, str]) -> Job:
    return Job("j-1", Spec(("true",), "j", secrets=secrets), 0.0, attempts=(Attempt(1, MachinePlace()),))


def _engine(tmp_path: Path) -> local.Local:
    return local.connect(local.Config(tmp_path / "jobs", secrets=tmp_path / "stored", passing=tmp_path / "passing"))


def _handed(tmp_path: Path, *, shared: bool, **values: str) -> Path:
    folder = tmp_path / "passing" / "j-1"
    folder.mkdir(parents=True)
    for name, value in values.items():
        (folder / name).write_text(value)
    if shared:
        folder.chmod(0o2770)
    return folder


@pytest.mark.parametrize("name", ["PYTHONPATH", "PATH", "HOME", "CHIPWISE_RECORD", "CHIPWISE_DATA_DIR", "TOKEN"])
def test_what_a_submitter_calls_a_secret_changes_nothing_of_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It holds the keys of the controller: a path of its own choice would let a submitter run programs in it."""
    monkeypatch.setattr(local, "SUPERVISOR", (sys.executable, "-S", "-c", SHOWS))
    monkeypatch.setenv("CHIPWISE_RECORD", "postgresql://db/x")
    _handed(tmp_path, shared=False, **{name: "/of/the/submitter"})
    engine = _engine(tmp_path)
    engine.do(Start(_job({name: ""})))
    shown, late = engine.folder("j-1", 1) / "shown", deadline(20)
    while not shown.exists():
        assert time.monotonic() < late
        time.sleep(0.01)
    assert [one.wait() for one in engine._started] == [0]
    started_with = json.loads(shown.read_text())
    assert started_with.get(name) in (None, os.environ.get(name))
    assert "/of/the/submitter" not in started_with.values()


def test_a_link_among_handed_in_secrets_keeps_none_of_the_others_behind(tmp_path: Path) -> None:
    """One of the group could lay it there, and what was not taken over would stay where the group reads it."""
    (tmp_path / "private").write_text("of the controller")
    folder = _handed(tmp_path, shared=True, A="first", Z="last")
    (folder / "LINK").symlink_to(tmp_path / "private")
    (folder / "INNER").mkdir()
    os.mkfifo(folder / "PIPE")
    engine = _engine(tmp_path)
    assert engine._secrets(_job({"A": "", "Z": ""})) == {"A": "first", "Z": "last"}
    assert not folder.exists()
    taken = tmp_path / "taken" / "j-1"
    assert sorted(one.name for one in taken.iterdir()) == ["A", "Z"]
    assert taken.parent.stat().st_mode & 0o777 == 0o700
    assert all(one.stat().st_mode & 0o777 == 0o600 for one in taken.iterdir())
    with pytest.raises(NotFound):
        engine._secrets(_job({"LINK": ""}))


def test_what_is_handed_in_once_more_replaces_what_was_taken_over(tmp_path: Path) -> None:
    """As for `retry`; nothing of it is written through a link that is there."""
    _handed(tmp_path, shared=True, A="first")
    engine = _engine(tmp_path)
    assert engine._secrets(_job({"A": ""})) == {"A": "first"}
    _handed(tmp_path, shared=True, A="second")
    assert engine._secrets(_job({"A": ""})) == {"A": "second"}


@pytest.mark.parametrize("setting", ["../other/A", "/etc/hostname", "..", ""])
def test_the_name_of_a_setting_leads_nowhere_else(tmp_path: Path, setting: str) -> None:
    """A record that others write to may say anything."""
    (tmp_path / "passing" / "other").mkdir(parents=True)
    (tmp_path / "passing" / "other" / "A").write_text("of another job")
    _handed(tmp_path, shared=False, B="its own")
    with pytest.raises(NotFound):
        _engine(tmp_path)._secrets(_job({setting: ""}))


def test_nobody_else_hands_in_for_an_owner_who_is_a_system_user() -> None:
    """Whoever knows the id of a job that is tried again could lay their own values there."""
    daemon, other = pwd.getpwnam("daemon").pw_uid, 4711
    assert handed_in._may_hand_in(daemon, "daemon")
    assert not handed_in._may_hand_in(other, "daemon")
    assert handed_in._may_hand_in(other, "nobody by that name")


def test_a_folder_that_is_a_link_hands_in_nothing(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir(mode=0o2770)
    (tmp_path / "private" / "A").write_text("of the controller")
    (tmp_path / "passing").mkdir()
    (tmp_path / "passing" / "j-1").symlink_to(tmp_path / "private")
    with pytest.raises(NotFound):
        _engine(tmp_path)._secrets(_job({"A": ""}))


def test_only_what_the_job_names_is_taken_over(tmp_path: Path) -> None:
    """Anybody of the group can put files there, of any size and number, which the controller would write once more."""
    folder = _handed(tmp_path, shared=True, A="first", B="of nobody")
    with (folder / "C").open("wb") as file:
        file.truncate(2 << 30)
    engine = _engine(tmp_path)
    assert engine._secrets(_job({"A": ""})) == {"A": "first"}
    assert [one.name for one in (tmp_path / "taken" / "j-1").iterdir()] == ["A"]
    assert not folder.exists()


def test_a_file_beside_the_folder_is_not_taken_over_by_its_path(tmp_path: Path) -> None:
    _handed(tmp_path, shared=True, A="first")
    (tmp_path / "passing" / "other").write_text("of another job")
    assert _engine(tmp_path)._secrets(_job({"A": ""})) == {"A": "first"}
    _handed(tmp_path, shared=True, A="first")
    with pytest.raises(NotFound):
        _engine(tmp_path)._secrets(_job({"A": "", "../other": ""}))
    assert not (tmp_path / "taken" / "other").exists()


@pytest.mark.parametrize("shared", [False, True])
def test_a_secret_that_no_program_could_be_given_is_refused_by_name(tmp_path: Path, shared: bool) -> None:
    _handed(tmp_path, shared=shared, BIG="x" * (handed_in.LONGEST_BYTES + 1))
    with pytest.raises(BadInput, match=r"BIG .*131,072 bytes"):
        _engine(tmp_path)._secrets(_job({"BIG": ""}))


def test_all_secrets_of_a_job_together_are_bounded(tmp_path: Path) -> None:
    names = [f"S{number:03}" for number in range(40)]
    _handed(tmp_path, shared=True, **dict.fromkeys(names, "x" * handed_in.LONGEST_BYTES))
    with pytest.raises(BadInput, match="together"):
        _engine(tmp_path)._secrets(_job(dict.fromkeys(names, "")))
    taken = sum(one.stat().st_size for one in (tmp_path / "taken" / "j-1").iterdir())
    assert taken <= handed_in.ALL_BYTES + handed_in.LONGEST_BYTES + 1
