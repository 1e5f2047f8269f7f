"""Files that belong together are written all or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.adapters.stores import whole_set
from chipwise.errors import BadInput

FILES = [("a.yaml", "a\n", False), ("below/b.sh", "b\n", True)]


def _tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_all_are_written_and_scripts_can_be_run(tmp_path: Path) -> None:
    whole_set.write(tmp_path / "new" / "out", FILES, False)
    assert _tree(tmp_path) == {"new/out/a.yaml": "a\n", "new/out/below/b.sh": "b\n"}
    assert (tmp_path / "new/out/below/b.sh").stat().st_mode & 0o111
    assert not (tmp_path / "new/out/a.yaml").stat().st_mode & 0o111


def test_what_is_there_stays_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("mine\n")
    with pytest.raises(BadInput, match="would be overwritten"):
        whole_set.write(tmp_path, FILES, False)
    assert _tree(tmp_path) == {"a.yaml": "mine\n"}
    whole_set.write(tmp_path, FILES, True)
    assert _tree(tmp_path) == {"a.yaml": "a\n", "below/b.sh": "b\n"}


def test_a_directory_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    with pytest.raises(BadInput, match="not a file"):
        whole_set.write(tmp_path, FILES, True)


def test_a_failure_half_way_puts_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("mine\n")
    move, calls = Path.replace, []

    def fails(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return move(self, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="No space left"):
        whole_set.write(tmp_path, FILES, True)
    assert _tree(tmp_path) == {"a.yaml": "mine\n"}
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_a_failure_leaves_no_directory_that_was_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, text: str, executable: bool) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_set, "_put", fails)
    with pytest.raises(OSError, match="No space left"):
        whole_set.write(tmp_path / "new" / "deep", FILES, False)
    assert list(tmp_path.iterdir()) == []


def test_a_new_directory_appears_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed before that has written nothing."""
    seen: list[bool] = []
    put = whole_set._put

    def watched(path: Path, text: str, executable: bool) -> None:
        put(path, text, executable)
        seen.append((tmp_path / "out").exists())

    monkeypatch.setattr(whole_set, "_put", watched)
    whole_set.write(tmp_path / "out", FILES, False)
    assert seen == [False, False]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_is_there_at_every_moment_while_it_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("mine\n")
    move = Path.replace

    def watched(self: Path, target: Path) -> Path:
        assert (tmp_path / "a.yaml").read_text() in ("mine\n", "a\n")
        return move(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    whole_set.write(tmp_path, FILES, True)
    assert _tree(tmp_path) == {"a.yaml": "a\n", "below/b.sh": "b\n"}


def test_of_two_writers_the_second_is_told_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even when the other came between the look and the writing."""
    put, out = whole_set._put, tmp_path / "out"

    def faster(path: Path, text: str, executable: bool) -> None:
        put(path, text, executable)
        out.mkdir(exist_ok=True)
        (out / "below").mkdir(exist_ok=True)
        (out / "below" / "b.sh").write_text("theirs\n")

    monkeypatch.setattr(whole_set, "_put", faster)
    for _ in range(2):  # the directory is new, and then it is there
        with pytest.raises(BadInput, match="would be overwritten"):
            whole_set.write(out, FILES, False)
        assert _tree(tmp_path) == {"out/below/b.sh": "theirs\n"}
        (out / "below" / "b.sh").unlink()
        (out / "below").rmdir()


def test_a_file_where_a_directory_must_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "below").write_text("mine\n")
    for force in (False, True):
        with pytest.raises(BadInput, match="below is not a directory"):
            whole_set.write(tmp_path, FILES, force)
    assert _tree(tmp_path) == {"below": "mine\n"}


def test_a_link_is_replaced_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("theirs\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.yaml").symlink_to(tmp_path / "elsewhere")
    whole_set.write(out, FILES, True)
    assert (tmp_path / "elsewhere").read_text() == "theirs\n"
    assert not (out / "a.yaml").is_symlink()


def test_without_hard_links_the_result_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Path, target: Path) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", fails)
    for force in (False, True):
        whole_set.write(tmp_path, FILES, force)
        assert _tree(tmp_path) == {"a.yaml": "a\n", "below/b.sh": "b\n"}
    with pytest.raises(BadInput, match="would be overwritten"):
        whole_set.write(tmp_path, FILES, False)
