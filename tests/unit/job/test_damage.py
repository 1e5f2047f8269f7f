"""A damaged checkpoint is never believed: the one before it is taken, and the log says why."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import NothingWhole
from chipwise.job.manifest import parse
from effort import cases


@pytest.fixture(scope="module")
def whole() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "checkpoints"
        with Checkpoints(directory) as kept:
            for step in (1, 2):
                kept.save(step, {"w": np.full(20, float(step)), "text": "x" * step}, wait=True)
        yield directory


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("step-000000000002.*"))


@given(which=st.integers(0, 1), way=st.sampled_from(["flip", "cut", "empty", "gone", "longer", "swapped"]), data=st.data())
@settings(max_examples=cases(150))
def test_any_damage_to_the_newest_leads_to_the_one_before(whole: Path, which: int, way: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(shutil.copytree(whole, Path(place) / "copy"))
        path = files(directory)[which]
        content = bytearray(path.read_bytes())
        if way == "flip":
            at = data.draw(st.integers(0, len(content) * 8 - 1))
            content[at // 8] ^= 1 << at % 8
        elif way == "cut":
            del content[data.draw(st.integers(0, len(content) - 1)) :]
        elif way == "empty":
            content.clear()
        elif way == "longer":
            content += b"\0"
        elif way == "swapped":
            other = sorted(directory.glob("step-000000000001.*"))[which]
            content = bytearray(other.read_bytes())
        path.unlink() if way == "gone" else path.write_bytes(content)
        found = Checkpoints(directory).load()
        assert found is not None
        if found.step == 2:  # only a manifest that still says the same, as after a lost line feed, may be believed
            assert path.name.endswith("manifest.json")
        assert found.state["w"].tolist() == [float(found.step)] * 20
        assert found.state["text"] == "x" * found.step


def test_the_log_names_the_damaged_step_and_file(whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = Path(shutil.copytree(whole, tmp_path / "copy"))
    path = next(one for one in files(directory) if one.suffix == ".state")
    path.write_bytes(path.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING, "chipwise.job"):
        found = Checkpoints(directory).load()
    assert found is not None
    assert found.step == 1
    assert "step 2" in caplog.text
    assert path.name in caplog.text


def test_where_all_are_damaged_training_does_not_silently_begin_anew(whole: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(whole, tmp_path / "copy"))
    for path in directory.glob("*.state"):
        path.write_bytes(b"")
    with pytest.raises(NothingWhole, match="None of the 2 checkpoints"):
        Checkpoints(directory).load()


def test_a_damaged_one_does_not_count_among_those_kept_and_goes_with_the_next_save(whole: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(whole, tmp_path / "copy"))
    next(directory.glob("step-000000000002*.state")).write_bytes(b"")
    with Checkpoints(directory, keep=2) as kept:
        kept.load()
        kept.save(2, {"w": np.full(20, 2.0), "text": "xx"}, wait=True)
    steps = sorted(path.name[:17] for path in directory.glob("*.manifest.json"))
    assert steps == ["step-000000000001", "step-000000000002"]
    found = Checkpoints(directory).load()
    assert found is not None
    assert found.step == 2


def test_a_manifest_cannot_name_files_outside_its_checkpoint(whole: Path, tmp_path: Path) -> None:
    """They would be deleted by that name later, and a checkpoint may come from anywhere."""
    directory = Path(shutil.copytree(whole, tmp_path / "copy"))
    (tmp_path / "precious").write_text("mine")
    path = next(directory.glob("step-000000000002*manifest.json"))
    manifest = parse(path.read_bytes(), 2, 0)
    for name in ("../precious", "/etc/hostname", "step-000000000001.attempt-0.rank-0-of-1.ab.state", "step-000000000002.x"):
        path.write_bytes(replace(manifest, files=(replace(manifest.files[0], name=name),)).to_bytes())
        found = Checkpoints(directory).load()
        assert found is not None
        assert found.step == 1
    with Checkpoints(directory) as kept:
        kept.load()
        for step in (3, 4, 5):
            kept.save(step, {"n": step}, wait=True)
    assert (tmp_path / "precious").exists()


@pytest.mark.parametrize(
    ("word", "other"), [('"world": 1', '"world": 3'), ('"rank": 0', '"rank": 1'), ('"created": 1', '"created": 2')]
)
def test_a_manifest_that_says_something_else_than_was_written_is_not_believed(
    whole: Path, tmp_path: Path, word: str, other: str
) -> None:
    directory = Path(shutil.copytree(whole, tmp_path / "copy"))
    path = next(directory.glob("step-000000000002*manifest.json"))
    assert word in path.read_text()
    path.write_text(path.read_text().replace(word, other))
    found = Checkpoints(directory).load()
    assert found is not None
    assert found.step == 1
