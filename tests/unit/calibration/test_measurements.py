"""A file of measurements is read whole or refused with every problem and its line."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.calibration import measurements
from chipwise.calibration.measurements import NUMBERS, parse, read
from chipwise.errors import InvalidFile

HEADER = "model,task,chip,metric_name,metric_value,tp"
ROW = "llama-3.1-8b,llm-decode,H200,tpot_ms,6.5,1"
LINE = {"model": "llama-3.1-8b", "task": "llm-decode", "chip": "H200", "metric_name": "tpot_ms", "metric_value": 6.5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        (" \n\n", "empty"),
        ("a,b,c\n1,2,3\n", "no such column"),
        ("modell,task,chip,metric_name\nx,y,z,w\n", "modell"),
        (f"{HEADER}\n{ROW.replace('6.5', 'NaN')}\n", "is not possible"),
        (f"{HEADER}\n{ROW.replace('6.5', 'inf')}\n", "is not possible"),
        (f"{HEADER}\n{ROW.replace('6.5', '-6.5')}\n", "is not possible"),
        (f"{HEADER}\n{ROW.replace('6.5', 'fast')}\n", "not a number"),
        (f"{HEADER}\n{ROW[:-1]}0\n", "from 1 to 1e"),
        (f"{HEADER}\n{ROW[:-1]}1e300\n", "is not possible"),
        (f"{HEADER},model\n{ROW},again\n", "there twice"),
        (f"{HEADER}\n{ROW}\nllama-3.1-8b,llm-de", "cells where the header has"),
        (f'{HEADER}\n"llama-3.1-8b,llm-decode\n', "not readable as CSV"),
        (f"{HEADER}\n,llm-decode,H200,tpot_ms,6.5,1\n", "is blank"),
        ('{"model": "llama', "not a JSON object"),
        (json.dumps(LINE) + "\n[1, 2]\n", "not a JSON object"),
        (json.dumps(LINE) + "\n{}\n", "is blank"),
        ("{" * 100_000, "not a JSON object"),
        (f"{HEADER}\n", "no rows below the header"),
        (f"{HEADER}\n\n ,,,,,\n", "no rows below the header"),
        (f"{HEADER}\n{ROW}\n".replace(",", ";"), "separated by semicolons.*commas"),
        (f"{HEADER}\n{ROW}\n".replace(",", "\t"), "separated by tabs.*commas"),
        (json.dumps([LINE]), "a JSON list.*one JSON object per line"),
        (f"{HEADER},spread\n{ROW},wide\n", "spread: 'wide' is not a number"),
        (f"{HEADER},spread\n{ROW},-0.1\n", "spread: '-0.1' is not possible. Allowed: from 0 to 100"),
        (f"{HEADER},spread\n{ROW},1e9\n", "spread: '1e9' is not possible"),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InvalidFile, match=said) as caught:
        parse(text, "runs.csv")
    assert "runs.csv" in str(caught.value)


def test_every_problem_is_told_at_once_with_its_line() -> None:
    with pytest.raises(InvalidFile) as caught:
        parse(f"{HEADER}\n{ROW.replace('6.5', 'x')}\n{ROW}\n{ROW.replace(',1', ',no')}\n", "runs.csv")
    assert [(problem.line, problem.field) for problem in caught.value.problems] == [(2, "metric_value"), (4, "tp")]


def test_a_file_that_is_too_long_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "LARGEST", 100)
    with pytest.raises(InvalidFile, match=r"B of text\. Allowed: at most 100 B"):
        parse(f"{HEADER}\n" + f"{ROW}\n" * 10, "runs.csv")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe\x00")
    with pytest.raises(InvalidFile, match="UTF-8"):
        read(path)


def test_columns_nobody_knows_are_kept_and_missing_ones_are_blank() -> None:
    table = parse(f"{HEADER},colour\n{ROW},red\n\n", "runs.csv")
    assert table.columns[-1] == "colour"
    assert len(table.rows) == 1
    assert table.rows[0].text("colour") == "red"
    assert table.rows[0].text("engine") == ""


def test_a_value_may_be_blank_when_only_a_prediction_is_wanted() -> None:
    assert parse(f"{HEADER}\n{ROW.replace('6.5', '')}\n", "runs.csv").rows[0].number("metric_value", 0.0) == 0.0


def test_json_lines_say_the_same_as_csv() -> None:
    lines = parse(json.dumps(LINE) + "\n\n" + json.dumps({**LINE, "tp": None, "notes": "x"}) + "\n", "runs.jsonl")
    table = parse(f"{HEADER}\n{ROW}\n", "runs.csv")
    for name in LINE:
        assert lines.rows[0].text(name) == table.rows[0].text(name)
    assert "notes" in lines.columns
    assert lines.rows[1].text("tp") == ""


@given(st.text(max_size=300))
def test_no_text_does_worse_than_a_refusal(text: str) -> None:
    with suppress(InvalidFile):
        assert parse(text, "runs.csv").rows


@given(st.sampled_from(NUMBERS), st.floats() | st.text(max_size=8, alphabet="0123456789.eE+-naif "))
def test_a_number_that_is_taken_is_finite_and_not_below_zero(name: str, value: object) -> None:
    try:
        found = parse(json.dumps({**LINE, name: str(value)}), "runs.jsonl").rows[0]
    except InvalidFile:
        return
    assert 0.0 <= found.number(name, 0.0) <= 1e15


def test_a_header_of_too_many_columns_is_refused_before_they_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "Counter", None)  # what compares them
    header = ",".join(f"column_{at}" for at in range(300_000))
    with pytest.raises(InvalidFile, match=r"300,000 columns\. Allowed: at most 2,000"):
        parse(f"{header}\n", "wide.csv")


def test_lines_with_columns_of_their_own_do_not_become_a_huge_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "MOST_CELLS", 1_000)
    lines = [json.dumps(LINE | {f"own_{at}": 1}) for at in range(40)]
    with pytest.raises(InvalidFile, match=r"40 rows with .* columns\. Allowed: at most 1,000 cells"):
        parse("\n".join(lines), "sparse.jsonl")
    parse("\n".join(lines[:5]), "sparse.jsonl")
