"""What is wrong with a flag is told by the flag, not by the field of a workload that it became."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.adapters import clock
from command import Chipwise

ROOT = Path(__file__).resolve().parents[2]
SERVE = ("llama-3.1-8b", "--serve", "--rps", "2", "--input", "500", "--output", "100")
DAY = ("llama-3.1-8b", "--serve", "--input", "500", "--output", "100", "--peak", "5")
LEARN = ("llama-3.1-8b", "--finetune", "lora")
FILE = (str(ROOT / "examples" / "serve" / "workload.yaml"),)


@pytest.mark.parametrize(
    ("arguments", "flag", "value"),
    [
        (("llama-3.1-8b", "--serve", "--rps", "x"), "--rps", "x"),
        (("llama-3.1-8b", "--serve", "--input", "-1"), "--input", "-1"),
        ((*SERVE, "--ttft", "abc"), "--ttft", "'abc'"),
        ((*SERVE, "--tpot", "-3"), "--tpot", "'-3'"),
        ((*SERVE, "--latency", "0"), "--latency", "'0'"),
        ((*SERVE, "--budget", "abc"), "--budget", "'abc'"),
        ((*SERVE, "--precision", "foo"), "--precision", "'foo'"),
        ((*SERVE, "--max-price-age", "abc"), "--max-price-age", "'abc'"),
        ((*SERVE, "--limit", "foo=3"), "--limit foo=3", "is not a field of limits"),
        ((*SERVE, "--region", "mars"), "--region", "No region or country is called 'mars'"),
        ((*SERVE, "--cloud", "aws,awz"), "--cloud", "No provider is called 'awz'"),
        ((*SERVE, "--chip", "h99"), "--chip", "No chip is called 'h99'"),
        ((*SERVE, "--country", "xx"), "--country", "No country"),
        ((*DAY, "--low", "7", "--shape", "evening"), "--low", "7 a second"),
        ((*LEARN, "--tokens", "x"), "--tokens", "'x'"),
        ((*LEARN, "--samples", "-1"), "--samples", "'-1'"),
        ((*LEARN, "--tokens", "2B", "--deadline", "abc"), "--deadline", "'abc'"),
        ((*FILE, "--ttft", "abc"), "--ttft", "'abc'"),
    ],
    ids=lambda value: value[-2] if isinstance(value, tuple) else "",
)
def test_a_bad_value_is_told_by_its_flag(chipwise: Chipwise, arguments: tuple[str, ...], flag: str, value: str) -> None:
    done = chipwise("plan", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"chipwise: {flag}: {value}"), done.err
    assert "command line" not in done.err
    assert "workload.yaml" not in done.err


def test_what_a_file_says_is_told_by_its_line(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(f"{Path(FILE[0]).read_text()}\nunknown: 1\n")
    done = chipwise("plan", str(path), "--ttft", "abc")
    assert done.code == 2
    assert "--ttft: 'abc' is not a duration" in done.err
    assert f"{path}" in done.err
    assert chipwise("compare", *FILE, "--max-price-age", "abc").err.startswith("chipwise: --max-price-age: 'abc'")


@pytest.mark.parametrize(
    ("day", "said"),
    [
        ("1900-01-01", "--as-of: 1900-01-01 is before the first price of the catalog, of 20"),
        ("2200-01-01", "--as-of: 2200-01-01 is too late: the last price is of 20"),
        ("soon", "--as-of is 'soon', which is not a date"),
    ],
)
def test_a_day_without_prices_is_refused(chipwise: Chipwise, monkeypatch: pytest.MonkeyPatch, day: str, said: str) -> None:
    monkeypatch.setattr(clock, "_pinned", None)
    done = chipwise("plan", *SERVE, "--as-of", day)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "Allowed: days from 20" in done.err or day == "soon"
