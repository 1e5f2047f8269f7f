"""Bad input and bad luck: `chipwise plan` and `pack` answer with a sentence and exit code 1 or 2, never with a warning, a
traceback, something that is no number, or a file half written. In this process, for its warnings are errors here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.session import wiring
from chipwise.api.session.config import read_config
from chipwise.cli.main import main
from chipwise.errors import BadInput
from chipwise.workload.demand import Trace
from chipwise.workload.trace import read_trace

SERVE = {"kind": "serve", "name": "s", "model": "llama-3.1-8b", "arrival": 5, "input_tokens": 500, "output_tokens": 200}
TRAIN = {"kind": "train", "name": "t", "model": "llama-3.1-8b", "tokens": "2B", "sequence_length": 4096}
BATCH = {"kind": "batch", "name": "b", "model": "qwen2.5-7b", "items": "1M", "input_tokens": 500, "output_tokens": 100}
PEOPLE = {"kind": "interactive", "name": "i", "people": 5, "memory": "8GiB"}
HYBRID = {"kind": "hybrid", "name": "q", "iterations": 10, "quantum": {"qubits": 10**15, "shots": 5}}
HPC = {"kind": "hpc", "name": "h", "steps": 1e30, "flop_per_step": 1e12, "bytes_per_step": "1GB"}
HEAD = "arrival,input_tokens,output_tokens\n"
ROWS = "".join(f"{step * 0.5},{100 + step % 7},{50 + step % 5}\n" for step in range(2000))
NO_NUMBER = re.compile(r"(?<![\w.-])(nan|-?inf|None)(?![\w-])")


class Asked:
    """A workload, asked for as the command line does it."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.file, self.capfd = folder / "w.yaml", capfd

    def __call__(self, work: dict[str, Any], *options: str, verb: str = "plan") -> tuple[int, str, str]:
        self.file.write_text(json.dumps(work))
        code = main([verb, str(self.file), *options])
        return (code, *self.capfd.readouterr())


@pytest.fixture(scope="module")
def session() -> wiring.Session:
    """One for all: what a plan stands on is laid once."""
    return wiring.Session(read_config(), date(2026, 11, 15), [])


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: wiring.Session, capfd: pytest.CaptureFixture[str]) -> Asked:
    monkeypatch.setattr(wiring, "open_session", lambda: session)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CHIPWISE_DEBUG", raising=False)
    return Asked(tmp_path, capfd)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (HEAD + ROWS[:-4], "line 2001 is cut off"),
        (HEAD + "1,2,inf\n", "output_tokens is 'inf'"),
        (HEAD + "1e300,5,5\n2e300,5,5\n", "arrival is '1e300'"),
        (HEAD + "1700000000000,5,5\n1700000060000,5,5\n", "Allowed: seconds up to 1e+11"),
        (HEAD + "0,5,5\n1e-300,5,5\n", "spans 1e-300 seconds, too little for a rate"),
        (HEAD + "1" * 5_000_000, "line 2 has more than 4,096 characters"),
        ("arrival\n1\n2\n5\n", "input_tokens and output_tokens must be given"),
    ],
)
def test_a_trace_that_cannot_be_used_is_a_sentence(ask: Asked, tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "t.csv").write_text(content)
    without = {name: value for name, value in SERVE.items() if not name.endswith("_tokens")}
    code, out, err = ask(without | {"arrival": {"trace": "t.csv"}})
    assert (code, out) == (2, "")
    assert told in err
    assert len(err) < 400


@pytest.mark.parametrize(("make", "told"), [(os.mkdir, "is a folder"), (os.mkfifo, "is no plain file")])
def test_a_trace_that_is_no_file_is_not_opened(ask: Asked, tmp_path: Path, make: Callable[[Path], None], told: str) -> None:
    make(tmp_path / "t.csv")
    code, _, err = ask(SERVE | {"arrival": {"trace": "t.csv"}})
    assert code == 2
    assert told in err


@pytest.mark.parametrize(
    "written",
    [
        (HEAD + ROWS).replace("\n", "\r\n"),
        "\ufeff" + HEAD + ROWS,
        HEAD + "".join(reversed(ROWS.splitlines(keepends=True))),
        HEAD + ROWS.replace("\n", ",more\n"),
    ],
)
def test_line_ends_marks_and_order_of_a_trace_do_not_matter(tmp_path: Path, written: str) -> None:
    (tmp_path / "plain.csv").write_text(HEAD + ROWS)
    (tmp_path / "t.csv").write_bytes(written.encode())
    plain, other = (read_trace(Trace(path=name), str(tmp_path / "w.yaml")) for name in ("plain.csv", "t.csv"))
    assert (other.requests, other.span_s, other.input_tokens) == (plain.requests, plain.span_s, plain.input_tokens)
    assert other.mean == pytest.approx(plain.mean, rel=0.01)


def test_moments_of_a_trace_in_several_time_zones_are_one_clock(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arrival\n2026-01-01T00:00:00Z\n2026-01-01T01:10:00+01:00\n2026-01-01 00:30:00\n")
    assert read_trace(Trace(path="t.csv"), str(tmp_path / "w.yaml")).span_s == 1800


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"arrival": 1e300}, "arrival: 1e+300 is too large to be a rate"),
        ({"input_tokens": 0.5}, "input_tokens: 0.5 is below 1"),
        ({"goals": {"ttft": {"p90": "1e-300s"}}}, "goals.ttft.p90: '1e-300s' is too small"),
        ({"output_tokens": None}, "output_tokens must be given"),
        ({"precision": "fp64"}, "precision: no engine serves language models in fp64. Allowed: fp32, bf16"),
        ({"limits": {"precision": ["tf32"]}}, "limits.precision: no engine"),
        ({"kv_precision": "nf4"}, "kv_precision: no engine"),
        ({"limits": {"quotas": "h100"}}, "limits.quotas: 'h100' stands where a mapping belongs"),
        ({"limits": {"requires": ["vllm"] * 500}}, "500 requirements are too many"),
        ({"limits": {"requires": ["unobtainium"]}}, "Allowed: bf16, tf32, fp8"),
        ({"traffic": {"Atlantic Ocean": 1}}, "'Atlantic Ocean' is not a place traffic comes from"),
        ({"traffic": {"DE": 0.5, "FR": 0.6}}, "the shares add up to 110.0%"),
        ({"context": 1e9}, "context: 1,000,000,000 tokens are more than the "),
    ],
)
def test_a_mistake_names_its_field_and_what_would_do(ask: Asked, change: dict[str, Any], told: str) -> None:
    code, out, err = ask({name: value for name, value in (SERVE | change).items() if value is not None})
    assert (code, out) == (2, "")
    assert told in err


@pytest.mark.parametrize(
    ("work", "code"),
    [
        (SERVE | {"arrival": {"rate": 1e-9, "burstiness": 100}, "output_tokens": 1}, 0),
        (SERVE | {"arrival": 1e9}, 1),
        (SERVE | {"arrival": {"concurrency": 10**6}, "goals": {"deadline": "1ms"}}, 0),
        (SERVE | {"devices": 10**6}, 0),
        (SERVE | {"model": "whisper-large-v3", "input_tokens": 5e5, "limits": {"clouds": ["gcp"]}}, 0),
        (SERVE | {"limits": {"chip_count": {"min": 10**9}}}, 0),
        (SERVE | {"limits": {"precision": ["fp64", "bf16"], "clouds": ["aws"]}}, 0),
        (TRAIN | {"tokens": 1e15, "checkpoint_every": "10y"}, 0),
        (BATCH | {"goals": {"deadline": "1ms", "budget": "$0.01"}}, 1),
        (PEOPLE | {"people": 10**15, "idle_after": "30min"}, 0),
        (PEOPLE | {"memory": 1}, 0),
        (HYBRID, 1),
        (HPC, 0),
        (HPC | {"steps": 10, "runs": 10**15, "limits": {"clouds": ["aws"]}}, 0),
    ],
)
def test_extremes_are_answered_in_numbers(ask: Asked, work: dict[str, Any], code: int) -> None:
    found, out, err = ask(work, "--json", "--top", "1000")
    assert (found, err) == (code, "")
    assert isinstance(json.loads(out, parse_constant=pytest.fail), dict)
    found, out, err = ask(work)
    assert (found, err) == (code, "")
    assert not NO_NUMBER.search(out), NO_NUMBER.search(out)
    assert max(map(len, out.splitlines())) <= 80


def test_a_mix_for_more_than_there_is_fits_nowhere(ask: Asked) -> None:
    assert ask(SERVE | {"arrival": 1e18, "limits": {"clouds": ["gcp"]}}, "--mix", "--json")[::2] == (1, "")


def test_what_goes_on_tells_that_it_has_no_deadline(ask: Asked) -> None:
    code, out, _ = ask(SERVE | {"goals": {"deadline": "1h"}, "limits": {"clouds": ["gcp"]}})
    assert code == 0
    assert "goals.deadline is ignored" in out


@pytest.mark.parametrize("limit", ["clouds=aws\nname: x", "clouds=[aws", "clouds=" + "[" * 5000, "clouds=&a [*a]"])
def test_a_limit_that_is_no_value_is_refused_in_few_words(ask: Asked, limit: str) -> None:
    code, _, err = ask(SERVE, "--limit", limit)
    assert code == 2
    assert "cannot be read" in err
    assert len(err) < 250


def test_more_copies_than_can_be_packed_are_refused(ask: Asked) -> None:
    code, _, err = ask(SERVE | {"replicas": {"min": 10**6}}, verb="pack")
    assert code == 2
    assert "1,000,000 models and copies (replicas.min) are too many to pack" in err


def test_pack_says_that_budgets_are_not_held(ask: Asked) -> None:
    code, out, _ = ask(SERVE | {"model": "qwen2.5-0.5b", "goals": {"budget": "$1/month"}}, verb="pack")
    assert code == 0
    assert "goals.budget is ignored" in " ".join(out.split())


def test_an_interrupted_report_leaves_the_old_one_and_nothing_else(
    ask: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "report.html").write_text("old")

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    code, _, err = ask(SERVE | {"limits": {"clouds": ["gcp"]}}, "--html", str(tmp_path / "report.html"), "--force")
    assert (code, err.strip()) == (130, "chipwise: interrupted")
    assert (tmp_path / "report.html").read_text() == "old"
    assert {one.name for one in tmp_path.iterdir()} == {"report.html", "w.yaml"}


def test_a_narrow_terminal_cuts_words_and_no_numbers(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")  # less than 40 is read as 40
    code, out, _ = ask(TRAIN)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 40
    assert "USD/job" in out


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(json.dumps(SERVE))
    command = [str(Path(sys.executable).parent / "chipwise"), "plan", str(tmp_path / "w.yaml"), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
        assert (process.wait(timeout=60), err) == (0, b"")


def test_a_span_of_centuries_is_told_in_few_digits(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEAD + "0,5,5\n9e10,5,5\n")
    with pytest.raises(BadInput, match=r"spans 1,041,667 days"):
        read_trace(Trace(path="t.csv"), str(tmp_path / "w.yaml"))
