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
        if len(calls) == 3:
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
