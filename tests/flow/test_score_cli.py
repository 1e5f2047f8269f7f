"""`chipwise score` as a user has it: figures, reasons, and a file that comes back with predictions."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from chipwise.calibration.measurements import DATA
from command import Chipwise

ADDED = ["predicted", "low", "high", "predicted_peak_gb", "provenance", "reason"]
FIGURES = {"rows", "median_ape", "p90_ape", "within_25pct", "interval_coverage", "interval_width"}


def published(name: str, count: int) -> list[dict[str, str]]:
    """Every 90th row of a packaged table, as it stands there."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))[::90][:count]


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_a_file_is_scored_in_text_that_fits_and_in_json_with_stable_keys(chipwise: Chipwise, tmp_path: Path) -> None:
    rows = published("training.csv", 12)
    rows[3] |= {"task": "paint"}
    rows[4] |= {"metric_value": ""}
    path = write(tmp_path / "runs.csv", rows)
    text, as_json = chipwise("score", str(path)), chipwise("score", str(path), "--json")
    assert (text.code, as_json.code) == (0, 0), text.err + as_json.err
    assert max(map(len, text.out.splitlines())) <= 80
    assert "12 rows, 10 scored, 1 refused, 1 predicted without a measured value" in text.out.replace("\n", " ")
    assert "in-sample" in text.out
    found = as_json.json
    assert set(found) >= {"rows", "scored", "by", "refused", "pairs", "peak_memory"} | FIGURES
    assert (found["rows"], found["scored"]) == (12, 10)
    assert 0 <= found["median_ape"] <= found["p90_ape"]
    assert set(found["by"]) == {"chip", "model", "engine", "metric", "source"}
    assert all(set(one) == FIGURES for named in found["by"].values() for one in named.values())
    assert sum(one["rows"] for one in found["by"]["chip"].values()) == 10
    assert [one["rows"] for one in found["refused"]] == [1]
    assert "paint" in found["refused"][0]["reason"]
    assert set(found["pairs"]) == {"right", "pairs"}
    assert found["peak_memory"] == {"rows": 0, "median_ape": None, "worst_ape": None}


def test_predictions_repeat_every_row_and_cell_in_order(chipwise: Chipwise, tmp_path: Path) -> None:
    rows = published("inference.csv", 20)
    rows[0] |= {"notes": 'line one\r\nline "two", end', "colour": ""}
    rows = [{**row, "colour": " rot  ", "metric_value": ""} for row in rows]
    path, out = write(tmp_path / "runs.csv", rows), tmp_path / "predictions.csv"
    done = chipwise("score", str(path), "--out", str(out), "--json")
    assert done.code == 0, done.err
    assert (done.json["scored"], done.json["median_ape"]) == (0, None)
    before, after = read(path), read(out)
    assert after[0] == [*before[0], *ADDED]
    assert [cells[: len(before[0])] for cells in after] == before
    for cells in after[1:]:
        found = dict(zip(after[0], cells, strict=True))
        assert bool(found["predicted"]) != bool(found["reason"])
        if found["predicted"]:
            assert float(found["low"]) <= float(found["predicted"]) <= float(found["high"])


def test_a_column_that_is_there_already_is_replaced_and_said(chipwise: Chipwise, tmp_path: Path) -> None:
    rows = [{"predicted": "old", **row, "low": "old"} for row in published("training.csv", 5)]
    path, out = write(tmp_path / "runs.csv", rows), tmp_path / "out.csv"
    done = chipwise("score", str(path), "--out", str(out), "--json")
    header, *found = read(out)
    assert header == [*rows[0], "high", "predicted_peak_gb", "provenance", "reason"]
    assert all(float(cells[0]) > 0 and cells[header.index("low")] != "old" for cells in found)
    assert any("predicted, low" in note for note in done.json["notes"])


def test_json_lines_from_standard_input_come_back_as_csv(chipwise: Chipwise, tmp_path: Path) -> None:
    lines = (DATA / "variants.jsonl").read_text().splitlines()[:4]
    lines.append(json.dumps({**json.loads(lines[0]), "extra": 1}))
    done = chipwise("score", "-", "--out", str(tmp_path / "out.csv"), "--json", typed="\n".join(lines))
    assert done.code == 0, done.err
    assert done.json["peak_memory"]["rows"] == 5
    header, *rows = read(tmp_path / "out.csv")
    assert header[-7:] == ["extra", *ADDED]
    assert [cells[0] for cells in rows] == [json.loads(line)["row_id"] for line in lines]


def test_a_chip_by_another_name_is_answered_and_said(chipwise: Chipwise, tmp_path: Path) -> None:
    generated = [row for row in published("inference.csv", 20) if row["task"].startswith("llm-")]
    rows = [
        {**row, "chip": name, "chip_key": "", "row_id": ""}
        for row, name in zip(generated, ("NVIDIA H100 80GB HBM3", "p4d.24xlarge", "abacus", "h100"), strict=False)
    ]
    done = chipwise("score", str(write(tmp_path / "runs.csv", rows)), "--json")
    assert done.json["answered"] == 3
    assert "abacus" in done.json["refused"][0]["reason"]
    assert any("NVIDIA H100 80GB HBM3 is taken as H100-SXM" in note for note in done.json["notes"])


@pytest.mark.e2e
def test_left_out_rows_are_answered_by_fits_that_did_not_see_them(chipwise: Chipwise, tmp_path: Path) -> None:
    rows = [row for row in published("training.csv", 12) if row["group"]][:1]
    path = write(tmp_path / "runs.csv", rows)
    seen, unseen = chipwise("score", str(path), "--json"), chipwise("score", str(path), "--leave-out", "group", "--json")
    assert unseen.code == 0, unseen.err
    assert unseen.json["median_ape"] != seen.json["median_ape"]
    assert "fitting" in unseen.err
    assert not any("in-sample" in note for note in unseen.json["notes"])


def test_rows_of_a_source_are_answered_without_the_source(chipwise: Chipwise, tmp_path: Path) -> None:
    rows = [row for row in published("training.csv", 400) if row["source_repo"] == "mosaicml/llm-foundry"][:2]
    path = write(tmp_path / "runs.csv", rows)
    seen, unseen = chipwise("score", str(path), "--json"), chipwise("score", str(path), "--leave-out", "source", "--json")
    assert unseen.code == 0, unseen.err
    assert unseen.json["median_ape"] > seen.json["median_ape"]
    assert not any("in-sample" in note for note in unseen.json["notes"])


@pytest.mark.parametrize(
    ("text", "arguments", "code", "said"),
    [
        ("", (), 2, "empty"),
        ("a,b\n1,2\n", (), 2, "no such column"),
        ("model,task,chip,metric_name\n", (), 2, "no rows below the header"),
        ("model;task;chip;metric_name\nm;pretrain;H200;mfu\n", (), 2, "separated by semicolons"),
        ("model,task,chip,metric_name,tp\nm,pretrain,H200,mfu,many\n", (), 2, "tp"),
        ("model,task,chip,metric_name\nm,pretrain,H200,mfu\n", ("--folds", "3"), 2, "--leave-out"),
        ("model,task,chip,metric_name\nm,pretrain,H200,mfu\n", ("--out", "nowhere/out.csv"), 2, "no directory"),
        ("model,task,chip,metric_name\nm,pretrain,H200,mfu\n", ("--out", "."), 2, "not a file"),
        ("model,task,chip,metric_name\nm,pretrain,H200,mfu\n", ("--leave-out", "year"), 2, "year"),
    ],
)
def test_what_goes_wrong_is_said(chipwise: Chipwise, text: str, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = chipwise("score", "-", *arguments, typed=text)
    assert done.code == code, done.err
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_file_that_is_not_there_is_bad_input(chipwise: Chipwise) -> None:
    done = chipwise("score", "nowhere.csv")
    assert done.code == 2
    assert "nowhere.csv" in done.err


@pytest.mark.parametrize("command", ["score", "calibrate"])
def test_a_pipe_or_a_device_is_refused_rather_than_waited_on(chipwise: Chipwise, tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (str(tmp_path / "pipe.csv"), "/dev/zero"):
        done = chipwise(command, path)
        assert done.code == 2
        assert f"'{path}' is a" in done.err
        assert "no file" in done.err


def test_rows_of_unknown_models_and_formats_are_answered_and_counted(chipwise: Chipwise) -> None:
    head = "model,task,chip,metric_name,metric_value,precision_weights\n"
    text = head + "ours,llm-decode,H200,tpot_ms,7,bf16\nllama-3.1-8b,llm-decode,H200,tpot_ms,7,odd\n"
    text += "llama-3.1-8b,llm-decode,H200,tpot_ms,7,bf16\n"
    done = chipwise("score", "-", "--json", typed=text)
    assert (done.json["answered"], done.json["refused"]) == (3, [])
    assert [one["rows"] for one in done.json["guessed"]] == [1, 1]
    assert "Answered by a guess:" in chipwise("score", "-", typed=text).out
    kept = chipwise("calibrate", "-", "--dry-run", "--json", typed=text).json
    assert kept["used"] == 1
    assert {one["reason"].split(":")[0]: one["rows"] for one in kept["refused"]} == {"model": 1, "precision_weights": 1}
    assert "1 left out" in chipwise("calibrate", "-", "--dry-run", typed=text).out


@pytest.mark.parametrize("notes", ["parallel mapping TP0", "offered rate fast req/s", "attention_dp=0; virtual pipeline 0"])
def test_notes_with_numbers_that_cannot_be_refuse_their_row_only(chipwise: Chipwise, notes: str) -> None:
    head = "model,task,chip,metric_name,tp,notes\n"
    row = "llama-3.1-8b,llm-online,H200,tpot_ms,1,"
    done = chipwise("score", "-", "--json", typed=f"{head}{row}{notes}\n{row}\n")
    assert done.code == 0, done.err
    assert done.json["answered"] >= 1


def test_nothing_half_written_is_left_behind(chipwise: Chipwise, tmp_path: Path) -> None:
    path = write(tmp_path / "runs.csv", published("training.csv", 2))
    (tmp_path / "there").mkdir()
    out = tmp_path / "there" / "out.csv"
    out.write_text("old")
    refused = chipwise("score", str(path), "--out", str(out))
    assert (refused.code, refused.out, out.read_text()) == (2, "", "old")
    assert "--force" in refused.err
    assert chipwise("score", str(path), "--out", str(out), "--force").code == 0
    assert [one.name for one in out.parent.iterdir()] == ["out.csv"]
    assert out.read_text() != "old"
