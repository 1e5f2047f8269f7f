"""`chipwise profile` as a user has it; measuring itself needs PyTorch and is tried with an absent one."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from chipwise.calibration.measurements import DATA
from command import Chipwise

PACKAGED = DATA.parent / "profiles" / "h200.json"


def test_the_packaged_profile_is_shown_without_measuring(chipwise: Chipwise) -> None:
    done = chipwise("profile", "--show")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    for word in (
        "NVIDIA H200",
        "copy in memory",
        "host to device",
        "gemm bf16",
        "attention, decode",
        "launch",
        "layer, forward",
        "element-wise",
        "64 x 4,096, heads 32/8x128",
    ):
        assert word in done.out
    assert "…" not in done.out
    assert done.out == chipwise("profile", "--show", "h200").out == chipwise("profile", "--show", "NVIDIA H200").out


def test_json_has_shares_of_the_sheet_and_what_predictions_make_of_them(chipwise: Chipwise) -> None:
    found = chipwise("profile", "--show", "h200", "--json").json
    assert found["chip"] == "H200"
    assert 0.6 < found["compute_share"]["bf16"] < 0.9
    assert found["log_offset"] == {"compute": 0, "memory": 0}


def test_a_picture_and_a_copy_are_written(chipwise: Chipwise, tmp_path: Path) -> None:
    picture, copy = tmp_path / "roofline.svg", tmp_path / "profile.json"
    assert chipwise("profile", "--show", "h200", "--picture", str(picture), "--out", str(copy)).code == 0
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert copy.read_text() == PACKAGED.read_text()


def test_without_torch_the_pip_line_is_given(chipwise: Chipwise, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    done = chipwise("profile", "--quick", PYTHONPATH=str(tmp_path))
    assert done.code == 3
    assert "pip install 'chipwise[torch]'" in done.err
    assert not (chipwise.data_dir / "profiles").exists()


def test_a_stored_profile_moves_predictions_for_its_chip_until_it_is_forgotten(chipwise: Chipwise, tmp_path: Path) -> None:
    with (DATA / "inference.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["chip_key"] == "L40S" and row["task"] == "llm-offline"][:3]
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)

    def predicted() -> list[str]:
        assert chipwise("score", str(path), "--out", str(tmp_path / "out.csv"), "--force").code == 0
        with (tmp_path / "out.csv").open(newline="") as file:
            return [row["predicted"] for row in csv.DictReader(file)]

    before = predicted()
    profile = json.loads(PACKAGED.read_text())
    profile["chip"] = "L40S"  # an L40S that would be as fast as an H200, but in fp64, where nobody would believe it
    profile["samples"] = [sample for sample in profile["samples"] if sample["precision"] != "fp64"]
    (chipwise.data_dir / "profiles").mkdir(parents=True)
    (chipwise.data_dir / "profiles" / "l40s.json").write_text(json.dumps(profile))
    assert all(float(after) > float(one) for one, after in zip(before, predicted(), strict=True))
    assert "faster" in chipwise("profile", "--show", "l40s").out
    assert chipwise("profile", "--forget", "l40s").code == 0
    assert predicted() == before


def test_a_damaged_profile_is_passed_over_and_said(chipwise: Chipwise, tmp_path: Path) -> None:
    (chipwise.data_dir / "profiles").mkdir(parents=True)
    (chipwise.data_dir / "profiles" / "broken.json").write_text('{"format": 1')
    done = chipwise("score", "-", typed="model,task,chip,metric_name\nllama-3.1-8b,llm-decode,H200,tpot_ms\n")
    assert done.code == 0
    assert "broken.json is skipped" in done.err


def test_a_profile_with_numbers_that_cannot_be_is_refused_and_never_used(chipwise: Chipwise, tmp_path: Path) -> None:
    profile = json.loads(PACKAGED.read_text())
    for sample in profile["samples"]:
        sample["seconds"] /= 100
    (chipwise.data_dir / "profiles").mkdir(parents=True)
    for path in (tmp_path / "mine.json", chipwise.data_dir / "profiles" / "h200.json"):
        path.write_text(json.dumps(profile))
    shown = chipwise("profile", "--show", str(tmp_path / "mine.json"))
    assert shown.code == chipwise("profile", "--show", "h200").code == 2
    assert "bytes/s is not possible. Allowed: at most 4.8e+13 bytes/s, from the data sheet of H200." in shown.err
    asked = ("predict", "llama-3.1-8b", "--serve", "--on", "h200", "--concurrency", "4", "--json")
    used = chipwise(*asked)
    assert "h200.json is skipped" in used.err
    (chipwise.data_dir / "profiles" / "h200.json").unlink()
    assert used.json == chipwise(*asked).json


def test_a_profile_is_shown_from_its_file(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(PACKAGED.read_text())
    assert chipwise("profile", "--show", str(path)).out == chipwise("profile", "--show", "h200").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--show", "h20000"), "h200"),
        (("--forget", "h200"), "Stored: none"),
        (("--chip", "abacus"), "abacus"),
        (("--seconds", "0"), "seconds"),
        (("--picture", "nowhere/at/all.svg"), "cannot be written"),
    ],
)
def test_what_goes_wrong_is_said(chipwise: Chipwise, arguments: tuple[str, ...], said: str) -> None:
    done = chipwise("profile", *arguments)
    assert done.code == 2, done.err
    assert said in done.err
    assert "Traceback" not in done.err
