"""The page of well-known cases: every expectation on it, every disagreement explained, and answers that are those of today."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

import cases

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
STALE = "stale: run .venv/bin/python tools/cases.py (a minute)"
MISTAKEN = ("expectation", "product", "neither")


def expected() -> list[dict[str, str]]:
    with (ROOT / cases.CASES / "expected.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def recorded() -> dict[str, tuple[str, str, str, str]]:
    """Of each case on the page: expectation, answer, verdict and why they differ."""
    lines = PAGE.partition("## All cases")[2].splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines if line.startswith("| ")][2:]
    return {row[0]: (row[1], row[2], row[3], row[4].rstrip("| ")) for row in rows}


def test_every_expectation_stands_on_the_page_as_it_was_written() -> None:
    assert {case: row[0] for case, row in recorded().items()} == {row["case"]: row["expectation"] for row in expected()}
    assert [name for name, number in Counter(row["case"] for row in expected()).items() if number > 1] == []


def test_every_disagreement_is_explained_and_says_who_is_mistaken() -> None:
    differ = {case for case, row in recorded().items() if row[2] != cases.AGREES}
    explained = cases.explained()
    assert differ == set(explained), "explanations are of disagreements alone, and all have one"
    assert {one.mistaken for one in explained.values()} <= set(MISTAKEN)
    for case in differ:
        assert recorded()[case][3] == explained[case].explanation
        assert (f"\n- `{case}`: " in PAGE) == (explained[case].mistaken == "product")


def test_the_page_counts_what_agrees() -> None:
    agree = sum(row[2] == cases.AGREES for row in recorded().values())
    assert f"{agree} of {len(expected())} agree." in PAGE


@pytest.mark.e2e
def test_the_page_has_the_answers_that_the_planner_gives_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert cases.page(list(cases.outcomes())) == PAGE, STALE
