"""`chipwise pack` and `chipwise plan --mix` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chipwise.cli.main import main

FILE = """kind: serve
name: {name}
model: llama-3.2-1b
arrival: {{rate: 0.4 req/s}}
input_tokens: {{mean: 600, p95: 1800}}
output_tokens: {{mean: 120, p95: 300}}
goals: {{tpot: {{p95: 80ms}}, ttft: {{p95: 2s}}}}
limits: {{clouds: [aws], chips: [A10G, L40S]}}
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name in ("chat", "tags"):
        (tmp_path / f"{name}.yaml").write_text(FILE.format(name=name))
    return [str(tmp_path / f"{name}.yaml") for name in ("chat", "tags")]


def test_packing_says_who_is_where_and_what_it_saves(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", *files]) == 0
    shown = capsys.readouterr().out
    for expected in ("2 models on 1 GPU", "sharing saves", "chat in ", "tags in ", "% of the speed", "Assumed"):
        assert expected in shown


def test_packing_as_json_sums(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", *files, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["usd"] == pytest.approx(sum(one["usd"] for one in shown["machines"]))
    assert shown["apart_usd"] == pytest.approx(sum(one["usd"] for one in shown["apart"]))
    assert {one["name"] for at in shown["machines"] for one in at["models"]} == {"chat", "tags"}


def test_bad_files_are_told_in_a_sentence(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for given, told in (([files[0]] * 2, "given twice"), ([], "WORKLOAD"), (["none.yaml"], "no file")):
        assert main(["pack", *given]) == 2
        assert told in capsys.readouterr().err


def test_a_mix_stands_behind_the_plan_and_in_its_json(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", files[0], "--mix"]) == 0
    assert "The cheapest mix of machine types" in capsys.readouterr().out
    assert main(["plan", files[0], "--mix", "--json"]) == 0
    mixed = json.loads(capsys.readouterr().out)["mix"]
    assert mixed["fits"]
    assert mixed["usd"] == pytest.approx(sum(one["usd"] for one in mixed["members"]))
    assert mixed["usd"] <= mixed["single"]["usd"] * (1 + 1e-9)
    assert main(["plan", files[0], "--json"]) == 0
    assert "mix" not in json.loads(capsys.readouterr().out)
