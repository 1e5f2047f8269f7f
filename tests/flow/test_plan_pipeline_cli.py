"""`chipwise plan` of a pipeline as a user has it: one table within 80 columns, JSON, exit code 1 with the stage that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import Chipwise
from pipelines import stages_planned_once

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = f"{ROOT}/examples/pipeline/workload.yaml"


@pytest.fixture(scope="module", autouse=True)
def _once() -> Iterator[None]:
    with stages_planned_once():
        yield


def test_the_example_is_shown_within_80_columns(chipwise: Chipwise) -> None:
    assert len(chipwise("plan", EXAMPLE).out.splitlines()) <= 30
    done = chipwise("plan", EXAMPLE, "--full")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    for part in (
        "preprocess",
        "train",
        "optimise",
        "serve",
        "Data moved between stages",
        "120 GB",
        "In all",
        "a month",
        "No single region is known to have room",
    ):
        assert part in done.out


def test_json_tells_stages_hand_offs_and_totals(chipwise: Chipwise) -> None:
    done = chipwise("plan", EXAMPLE, "--objective", "cost", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["kind"] == "pipeline"
    assert found["schema"] == 1
    assert [one["name"] for one in found["stages"]] == ["preprocess", "train", "optimise", "serve"]
    assert [(one["from"], one["to"]) for one in found["hand_offs"]] == [
        ("preprocess", "train"),
        ("train", "optimise"),
        ("optimise", "serve"),
    ]
    totals = found["totals"]
    assert totals["usd_with_one_month"] <= found["each_stage_alone"]["usd_with_one_month"]


def test_a_stage_that_cannot_be_placed_ends_in_exit_code_1_and_its_name(chipwise: Chipwise, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        "kind: pipeline\nname: p\nstages:\n"
        "- {kind: hpc, name: first, flop_per_step: 1e15, precision: fp32}\n"
        "- {kind: train, name: second, model: llama-3.1-405b, tokens: 1B, precision: bf16, limits: {chips: t4}}\n"
    )
    done = chipwise("plan", str(file))
    assert done.code == 1
    assert "Nothing fits" in done.out
    assert "stage second" in done.out
    assert "bf16" in done.out
    assert json.loads(chipwise("plan", str(file), "--json").out)["missing"][0]["stage"] == "second"


def test_what_tells_of_one_workload_is_refused_with_the_stages(chipwise: Chipwise, tmp_path: Path) -> None:
    for options in (("--why", "h100"), ("--all",), ("--mix", "--html", str(tmp_path / "report.html"))):
        done = chipwise("plan", EXAMPLE, *options)
        assert done.code == 2
        assert "is a pipeline" in done.err
        assert "train (train)" in done.err
    assert not (tmp_path / "report.html").exists()


def test_a_report_is_one_page_with_every_stage(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    done = chipwise("plan", EXAMPLE, "--short", "--html", str(path))
    assert done.code == 0, done.err
    page = path.read_text(encoding="utf-8")
    for part in (
        "Stages and hand-offs",
        "120 GB, other region",
        "Stage optimise: who came next",
        "Cost against time of the whole",
    ):
        assert part in page
    assert "https://" not in page.split("<main>")[1].split("<script")[0]
