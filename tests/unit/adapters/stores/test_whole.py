"""A file is there whole: the old one or the new one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chipwise.adapters.stores import whole


def test_text_is_written_as_it_is_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    whole.write(path, "x,y\r\n1,\u00b5\n")
    assert path.read_bytes() == "x,y\r\n1,\u00b5\n".encode()
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_a_write_that_fails_leaves_the_old_file_and_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        whole.write(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_a_link_stays_a_link_and_its_file_changes(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    whole.write(tmp_path / "link.csv", "new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    whole.write(Path(os.devnull), "gone")
    assert not Path(os.devnull).is_file()


def test_what_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert whole.remove(tmp_path / "a")
    assert not whole.remove(tmp_path / "a")
