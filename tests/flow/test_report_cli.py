"""`chipwise plan --html`: the report of a real plan, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from command import Chipwise

pytestmark = pytest.mark.real_catalog

ROOT = Path(__file__).resolve().parents[2]
TRAIN = f"{ROOT}/examples/train/workload.yaml"


def test_a_report_is_written_beside_the_answer(chipwise: Chipwise) -> None:
    path = chipwise.home / "report.html"
    done = chipwise("plan", TRAIN, "--html", str(path), "--json", "--top", "3")
    assert done.code == 0, done.err
    assert f"Written: {path}" in done.err
    plan = json.loads(done.out)
    assert len(plan["choices"]) == 3
    page = path.read_text(encoding="utf-8")
    assert page.endswith("</html>\n")
    assert re.search(rf"<b>(\d+ x )?{re.escape(plan['winner']['machine'])}</b>", page)
    assert page.count("<tr data-family=") > 3  # the report ranks all of them
    for question in ("May it be used?", "Can it run it?", "Which costs least?", "Spot or not?"):
        assert f"<strong>{question}</strong>" in page
    assert [one.name for one in chipwise.home.iterdir() if one.is_file()] == ["report.html"]


def test_nothing_fits_is_reported_too(chipwise: Chipwise) -> None:
    path = chipwise.home / "report.html"
    done = chipwise("plan", TRAIN, "--limit", "chips=t4", "--html", str(path))
    assert done.code == 1
    assert "Nothing fits." in path.read_text(encoding="utf-8")


def test_a_plan_that_fails_leaves_the_old_report(chipwise: Chipwise) -> None:
    path = chipwise.home / "report.html"
    path.write_text("old")
    done = chipwise("plan", TRAIN, "--limit", "clouds=nosuch", "--html", str(path), "--force")
    assert done.code == 2
    assert path.read_text() == "old"


@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_what_is_there_is_not_overwritten_and_that_is_told_before_the_work(chipwise: Chipwise, kind: str) -> None:
    path, real = chipwise.home / "report.html", chipwise.home / "real.html"
    real.write_text("mine")
    match kind:
        case "file":
            path.write_text("mine")
        case "link":
            path.symlink_to(real)
        case _:
            os.mkfifo(path)
    done = chipwise("plan", TRAIN, "--html", str(path))
    assert (done.code, done.out) == (2, "")
    assert str(path) in done.err
    assert ("--force" in done.err) is (kind != "pipe")
    assert real.read_text() == "mine"
    if kind == "link":
        assert chipwise("plan", TRAIN, "--html", str(path), "--force").code == 0
        assert (real.read_text(), path.is_symlink()) == ("mine", False)


@pytest.mark.parametrize("place", ["no/such/folder/report.html", "."])
def test_a_place_that_cannot_be_written_is_told_before_the_work(chipwise: Chipwise, place: str) -> None:
    done = chipwise("plan", TRAIN, "--html", place, cwd=chipwise.home)
    assert done.code == 2
    assert "cannot be written" in done.err
    assert not done.out


def test_the_workload_is_not_written_over(chipwise: Chipwise) -> None:
    own = chipwise.home / "own.yaml"
    own.write_text(Path(TRAIN).read_text())
    done = chipwise("plan", str(own), "--html", str(own))
    assert done.code == 2
    assert own.read_text() == Path(TRAIN).read_text()
