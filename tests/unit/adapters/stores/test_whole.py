"""A file is there whole: the old one or the new one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chipwise.adapters.stores import whole
from chipwise.errors import BadInput


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


@pytest.mark.parametrize("force", [False, True])
def test_a_stream_of_a_shell_and_the_null_device_are_written_to_and_not_replaced(force: bool) -> None:
    whole.write_named(Path(os.devnull), "gone", force)
    assert not Path(os.devnull).is_file()
    receiving, sending = os.pipe()
    whole.write_named(Path(f"/dev/fd/{sending}"), "sent", force)
    os.close(sending)
    with os.fdopen(receiving) as stream:
        assert stream.read() == "sent"


def test_what_a_person_has_there_stays_unless_they_say_so(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert whole.write_named(path, "first", False).read_text() == "first"
    path.chmod(0o640)
    with pytest.raises(BadInput, match="exists already, and was left as it is") as refused:
        whole.write_named(path, "second", False)
    assert "--force" in (refused.value.remedy or "")
    assert path.read_text() == "first"
    assert whole.write_named(path, "second", True).read_text() == "second"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("target", ["real", "nowhere"])
def test_nothing_is_written_through_a_link(tmp_path: Path, target: str) -> None:
    (tmp_path / "real").write_text("mine")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(BadInput, match="is a link, and was left as it is"):
        whole.write_named(tmp_path / "link", "new", False)
    whole.write_named(tmp_path / "link", "new", True)
    assert not (tmp_path / "link").is_symlink()
    assert ((tmp_path / "link").read_text(), (tmp_path / "real").read_text()) == ("new", "mine")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_never_written_to(tmp_path: Path, kind: str, force: bool) -> None:
    path = tmp_path / "there"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path = Path("/dev/zero")
    with pytest.raises(BadInput, match="is not a file"):
        whole.write_named(path, "new", force)


def test_of_two_writers_the_slower_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    monkeypatch.setattr(os, "fsync", lambda descriptor: path.write_text("faster"))
    with pytest.raises(BadInput, match="exists already"):
        whole.write_named(path, "slower", False)
    assert path.read_text() == "faster"


def test_what_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert whole.remove(tmp_path / "a")
    assert not whole.remove(tmp_path / "a")
