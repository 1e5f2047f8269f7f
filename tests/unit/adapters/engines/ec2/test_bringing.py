"""A folder that is sent to machines: the same name for the same files, and nothing in it that is no code."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from chipwise.adapters.engines.ec2 import bringing
from chipwise.adapters.engines.ec2.bringing import name_of, packed
from chipwise.errors import BadInput, NotFound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    at = tmp_path / "work"
    (at / "parts").mkdir(parents=True)
    (at / "train.py").write_text("print('here')\n")
    (at / "parts" / "run.sh").write_text("#!/bin/sh\n")
    (at / "parts" / "run.sh").chmod(0o700)
    (at / "again.py").symlink_to("train.py")
    for other in (".git", "__pycache__", ".venv"):
        (at / other).mkdir()
        (at / other / "large").write_bytes(b"x" * 1000)
    os.mkfifo(at / "pipe")
    return at


def inside(body: bytes) -> dict[str, tuple[int, bool]]:
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return {one.name: (one.mode, one.issym()) for one in archive.getmembers()}


def test_what_is_code_is_in_it_with_its_rights_and_links(folder: Path) -> None:
    found = inside(packed(folder))
    assert found.keys() == {"train.py", "again.py", "parts/run.sh"}
    assert (found["parts/run.sh"][0], found["train.py"][0], found["again.py"][1]) == (0o755, 0o644, True)


def test_the_same_files_have_the_same_name_and_others_have_another(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "copy"
    shutil.copytree(folder, other, symlinks=True, ignore=lambda at, names: ["pipe"])
    for one in other.rglob("*"):
        os.utime(one, (1, 1), follow_symlinks=False)
    assert packed(other) == packed(folder)
    (other / "train.py").write_text("print('there')\n")
    assert name_of(packed(other)) != name_of(packed(folder))


def test_data_is_refused_with_a_way_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "MOST_BYTES", 2**20)
    (folder / "data.bin").write_bytes(b"x" * 2**20)
    with pytest.raises(BadInput, match=r"more than 1 MiB.*S3"):
        packed(folder)
    with pytest.raises(NotFound):
        packed(folder / "nothing")


def test_what_cannot_be_read_is_named_and_what_is_gone_meanwhile_is_not_missed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.name == "train.py":
            raise FileNotFoundError(path)
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    assert inside(packed(folder)).keys() == {"again.py", "parts/run.sh"}
    (folder / "closed").write_text("x")
    with pytest.raises(BadInput, match=r"closed cannot be read: Permission denied"):
        packed(folder)
