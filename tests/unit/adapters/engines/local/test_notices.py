"""The notice that a machine goes away reaches the program, whatever cannot be written meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chipwise.adapters import clock
from chipwise.adapters.engines.local import folder, supervisor
from chipwise.adapters.engines.local.supervisor import Supervisor
from chipwise.adapters.notices.notice import Notice

REASON = "AWS is reclaiming this machine"


@pytest.fixture
def noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    """One whose cloud has just said that the machine goes away in 40 s."""
    monkeypatch.setattr(supervisor, "TICK_S", 0.0)
    monkeypatch.setattr(supervisor, "TRIES_AGAIN_S", 0.0)
    path = tmp_path / "jobs" / "train-1" / "1"
    path.mkdir(parents=True)
    lock = folder.lock(path / folder.LOCK)
    assert lock is not None
    made = Supervisor(path, {"mark": str(path), "root": str(tmp_path / "jobs")}, lock, {})
    notice = Notice(REASON, time.time() + 40.0)
    made.notices = SimpleNamespace(due=lambda grace_s: notice)  # type: ignore[assignment]
    yield made
    made.log.close()


def test_a_folder_in_place_of_the_machines_notice_keeps_no_job_from_its_own(noticed: Supervisor) -> None:
    root = noticed.at.parents[1]
    (root / folder.GOING / "1").mkdir(parents=True)
    noticed._turn()
    assert noticed.asked
    assert (folder.read(noticed.at, folder.LEAVE) or {})["reason"] == REASON
    (root / folder.GOING).rename(root / "other")
    noticed._turn()
    assert (folder.read(root, folder.GOING) or {})["reason"] == REASON


def test_on_a_full_disk_the_program_is_asked_to_leave_and_the_notice_is_written_later(
    noticed: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, full = folder.write, [True]

    def writes(*args: Any, **more: Any) -> None:
        if full:
            raise OSError(28, "No space left on device")
        write(*args, **more)

    monkeypatch.setattr(folder, "write", writes)
    noticed._turn()
    assert noticed.asked
    assert noticed.leave_by is not None
    full.clear()
    noticed._turn()
    assert (folder.read(noticed.at, folder.LEAVE) or {})["notice"] is True
    assert folder.read(noticed.at.parents[1], folder.GOING) is not None


def test_a_program_that_left_before_there_was_room_is_said_to_have_been_asked(
    noticed: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a program that saves and exits with 0 would count as done."""
    write = folder.write

    def full(*args: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "write", full)
    noticed._turn()
    monkeypatch.setattr(folder, "write", write)
    noticed._say({"code": 0, "reason": "", "at": time.time()})
    assert (folder.read(noticed.at, folder.LEAVE) or {})["notice"] is True
    assert folder.read(noticed.at, folder.ENDED) is not None


def test_an_earlier_end_that_the_controller_asked_for_stays(noticed: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    write = folder.write

    def full(*args: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "write", full)
    noticed._turn()
    write(noticed.at, folder.LEAVE, folder.wish(0.0, "ended"))
    monkeypatch.setattr(folder, "write", write)
    noticed._turn()
    assert (folder.read(noticed.at, folder.LEAVE) or {})["by"] == 0.0
    assert noticed.leave_by is not None
    assert noticed.leave_by <= 0.0 or noticed.leave_by < clock.boottime()
