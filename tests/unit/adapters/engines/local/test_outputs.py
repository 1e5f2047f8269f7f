"""What a program was to leave behind, on a disk that answers and on one that does not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from chipwise.adapters.engines.local import folder, outputs
from chipwise.adapters.engines.local.supervisor import Supervisor
from chipwise.runner import hand_off
from patience import deadline

HOURS = 3600.0


def never() -> str:
    time.sleep(HOURS)
    return ""


@pytest.fixture
def lock(tmp_path: Path) -> int:
    held = folder.lock(tmp_path / "lock")
    assert held is not None
    return held


def of_files(names: list[str], path: Path, lock: int) -> str | None:
    return outputs.Look(lambda: outputs.lacking(names, str(path)), lock).answer(20.0)


def test_what_is_missing_or_empty_is_named(tmp_path: Path, lock: int) -> None:
    (tmp_path / "full").write_text("x")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    assert of_files(["full"], tmp_path, lock) == ""
    assert of_files(["full", "gone"], tmp_path, lock) == "gone is not there"
    assert of_files(["empty"], tmp_path, lock) == "empty is empty"
    assert of_files(["folder"], tmp_path, lock) == "folder is empty"
    assert "cannot be looked at" in str(of_files(["x" * 5000], tmp_path, lock))


def test_a_disk_that_does_not_answer_keeps_nobody_waiting(tmp_path: Path, lock: int) -> None:
    look = outputs.Look(never, lock)
    assert look.answer(0.05) is None
    os.close(lock)
    assert not folder.locked(tmp_path / "lock")  # the process that hangs does not hold it
    [asks] = [child for child in psutil.Process().children() if child.pid == look._pid]
    look.give_up()
    assert asks.wait(20) is not None


@pytest.mark.parametrize("asked", [False, True], ids=["", "asked to leave"])
def test_the_engine_is_told_that_only_files_are_looked_for_and_the_attempt_ends_in_the_end(
    tmp_path: Path, lock: int, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    monkeypatch.setattr(outputs, "lacking", lambda names, directory: never())
    monkeypatch.setattr(hand_off, "TOLD_AFTER_S" if asked else "PATIENCE_S", 0.2)
    supervisor = Supervisor(tmp_path, {"produces": ["/mnt/share/a.bin"]}, lock, {})
    if asked:
        folder.write(tmp_path, folder.LEAVE, folder.wish(time.time() + HOURS, "stopped"))
    limit = deadline(20)
    assert "does not answer" in supervisor._missing()
    assert time.monotonic() < limit
    state = folder.read(tmp_path, folder.STATE)
    assert state is not None
    assert state["looks"] is True
