"""Room on the disk, without forgetting that an attempt was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chipwise.adapters.engines.local import folder
from chipwise.adapters.engines.local.forgetting import checkpoints_of, forget


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "jobs"
    for number in ("1", "2"):
        at = made / "j1" / number
        at.mkdir(parents=True)
        for name in (folder.ORDER, folder.LOCK, folder.STATE, folder.ENDED, folder.NOTICE):
            (at / name).write_text("{}")
        (at / "log").write_bytes(b"x" * 1000)
        (at / "log.1").write_bytes(b"x" * 500)
    (made / "j1" / "checkpoints").mkdir()
    (made / "j1" / "checkpoints" / "step-1.state").write_bytes(b"y" * 2000)
    (made / "j2" / "1").mkdir(parents=True)
    (made / "j2" / "1" / "log").write_text("of another")
    return made


def names(at: Path) -> list[str]:
    return sorted(str(one.relative_to(at)) for one in at.rglob("*") if one.is_file())


def test_logs_and_checkpoints_go_and_that_it_began_and_ended_stays(root: Path) -> None:
    freed = forget(root, "j1")
    assert freed is not None
    assert freed >= 5000
    assert names(root / "j1") == ["1/ended.json", "1/state.json", "2/ended.json", "2/state.json"]
    assert (root / "j2" / "1" / "log").read_text() == "of another"
    assert forget(root, "j1") == 0


def test_of_one_that_still_runs_nothing_is_touched(root: Path) -> None:
    before = names(root / "j1")
    held = folder.lock(root / "j1" / "2" / folder.LOCK)
    assert held is not None
    assert forget(root, "j1") is None
    assert names(root / "j1") == before
    os.close(held)
    assert forget(root, "j1")


@pytest.mark.parametrize("id", ["..", "../elsewhere", ".", "j1/1", "nobody", "/etc"])
def test_a_name_that_leads_elsewhere_is_nobodys_job(root: Path, id: str) -> None:
    (root.parent / "elsewhere").mkdir()
    (root.parent / "elsewhere" / "precious").write_text("kept")
    before = names(root.parent)
    assert forget(root, id) == 0
    assert names(root.parent) == before


def test_links_are_removed_and_not_what_they_lead_to(root: Path) -> None:
    precious = root.parent / "precious"
    precious.mkdir()
    (precious / "data").write_text("kept")
    (root / "j1" / "1" / "out").symlink_to(precious)
    (root / "j3").symlink_to(precious)
    assert forget(root, "j1")
    assert forget(root, "j3") == 0
    assert (precious / "data").read_text() == "kept"
    assert not (root / "j1" / "1" / "out").is_symlink()


def test_a_dry_run_says_as_much_and_touches_nothing(root: Path) -> None:
    before = names(root / "j1")
    said = forget(root, "j1", dry_run=True)
    assert names(root / "j1") == before
    assert forget(root, "j1") == said
    held = folder.lock(root / "j1" / "1" / folder.LOCK)
    assert held is not None
    assert forget(root, "j1", dry_run=True) is None
    os.close(held)


def test_checkpoints_may_stay(root: Path) -> None:
    freed = forget(root, "j1", checkpoints=False)
    assert freed is not None
    assert freed < 5000
    assert checkpoints_of(root, "j1") == 2000
    assert "checkpoints/step-1.state" in names(root / "j1")
    assert checkpoints_of(root, "..") == 0
