"""Who wakes a controller, and when nobody is to be woken."""

from __future__ import annotations

from pathlib import Path

from chipwise.adapters.engines.local import folder
from chipwise.adapters.waking import Waker


def test_where_nobody_said_how_a_controller_is_started_none_is() -> None:
    Waker({}).wake()


def test_a_controller_that_holds_its_lock_is_not_started_again(tmp_path: Path) -> None:
    held = folder.lock(tmp_path / "lock")
    assert held is not None
    order = {"lock": str(tmp_path / "lock"), "command": ["touch", str(tmp_path / "started")], "log": str(tmp_path / "log")}
    Waker(order).wake()
    assert not (tmp_path / "log").exists()
