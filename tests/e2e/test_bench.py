"""Measuring on this machine as a user does: the real command, real processes, a record of their own."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from chipwise.adapters.engines.local import processes
from own_machine import CPUS, OWN
from patience import deadline
from run_machine import CHIPWISE, clear

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]
# Nothing is learnt: steps that take as long as they are told, so that a measured speed can be held against a known one.
STAND_IN = """
import sys, time
import chipwise.job as job
print("runs", flush=True)
for step in job.steps({"n": 0}, total=int(sys.argv[1]), every=1000):
    time.sleep(1.5 if step < 2 else 0.02)
"""
WORK = """
kind: train
name: stand-in
model: gpt2
tokens: 10M
sequence_length: 256
batch_tokens: 2048
precision: fp32
program: {{command: [{python}, stand_in.py, "{total}"]}}
"""


class Bench:
    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "config" / "catalog").mkdir(parents=True)
        (home / "config" / "catalog" / "own.yaml").write_text(OWN)
        (home / "stand_in.py").write_text(STAND_IN)
        self.env = {
            **os.environ,
            "CHIPWISE_DATA_DIR": str(home / "data"),
            "CHIPWISE_CONFIG_DIR": str(home / "config"),
            "CHIPWISE_GPUS": "none",
            "CHIPWISE_CHIP": "this-box",
            "COLUMNS": "120",
        }
        self.env.pop("XDG_RUNTIME_DIR", None)
        self.workload()

    def workload(self, total: int = 5000, more: str = "") -> None:
        (self.home / "work.yaml").write_text(WORK.format(python=sys.executable, total=total) + more)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [CHIPWISE, *words], cwd=self.home, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __call__(self, *words: str, code: int = 0) -> tuple[str, str]:
        started = self.start(*words)
        out, err = started.communicate(timeout=100)
        assert started.returncode == code, f"{started.returncode}\n{out}\n{err}"
        return out, err

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code)[0])

    def jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("ps", "--all")
        return found

    def alive(self) -> list[str]:
        """Programs of jobs that run."""
        root, found = str(self.home / "data" / "run" / "jobs"), []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(processes.MARK, "").startswith(root):
                    found.append(" ".join(process.cmdline()))
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    yield Bench(tmp_path)
    clear(tmp_path)


def test_measured_speed_leaves_the_warm_up_out_and_stands_beside_the_prediction(bench: Bench) -> None:
    [found] = bench.json("bench", "work.yaml", "--on", f"local:cpus={CPUS}", "--steps", "150", "--repeat", "2")
    # 50 steps a second at most, of 2048 tokens; with the first two in it, it would be half of that. A busy machine is slower.
    assert len(found["speeds"]) == 2
    assert all(0.7 * 50 * 2048 < one < 50 * 2048 for one in found["speeds"])
    assert (found["unit"], found["chip"], found["share"], found["attempts"]) == ("tokens", "this-box", 1, 2)
    assert found["low"] < found["predicted"] < found["high"]
    assert found["ratio"] == pytest.approx(found["speed"] / found["predicted"])
    assert found["usd_per_unit"] == pytest.approx(0.36 / 3600 / found["speed"])
    assert [one["steps"] for one in found["runs"]] == [150, 150]
    assert not list((bench.home / "data" / "run" / "jobs").glob("*/checkpoints"))  # nobody goes on with them


def test_what_was_measured_is_a_file_that_calibrate_learns_from(bench: Bench) -> None:
    out, err = bench(
        "bench", "work.yaml", "--on", f"local:cpus={CPUS}", "--on", "simulated", "--steps", "120", "--out", "runs.csv"
    )
    assert "formula" in out
    assert "simulated is not in the file: it is a formula" in err
    with (bench.home / "runs.csv").open() as file:
        [row] = csv.DictReader(file)
    assert (row["model"], row["chip"], row["metric_name"]) == ("gpt2", "this-box", "tokens_per_s_per_chip")
    shown = bench.json("calibrate", "runs.csv")
    assert shown["used"] == 1
    before = bench.json("predict", "work.yaml", "--on", "this-box")["tokens_per_s"]["value"]
    bench("calibrate", "--forget")
    assert bench.json("predict", "work.yaml", "--on", "this-box")["tokens_per_s"]["value"] != before


def test_a_run_records_what_was_predicted_and_what_happened(bench: Bench) -> None:
    bench.workload(total=120, more="goals: {deadline: 5h}\n")
    bench("run", "work.yaml", "--cpus", str(CPUS))
    told = bench.json("describe", "stand-in")
    rows = {one["name"]: one for one in told["compared"]}
    assert rows["throughput"]["ratio"] == pytest.approx(rows["throughput"]["measured"] / rows["throughput"]["predicted"])
    assert rows["seconds"]["measured"] > 3.0
    assert rows["seconds"]["ratio"] is None  # 120 steps are not the 10M tokens that the file speaks of
    assert rows["usd"]["measured"] > 0
    shown = bench("describe", "stand-in")[0]
    assert re.search(r"tokens/s +[\d,]+ +[\d,]+ +[\d,]+ +[\d,]+ +\d", shown)
    assert "measured (part of the work)" in shown


def test_a_machine_that_nobody_knows_is_measured_and_not_predicted(bench: Bench) -> None:
    bench.env["CHIPWISE_CHIP"] = "unheard-of"
    [found] = bench.json("bench", "work.yaml", "--on", "local", "--steps", "100")
    assert found["speed"] > 0
    assert found["predicted"] is None
    assert "unheard-of" in found["why_not_predicted"]


def test_long_work_is_measured_for_as_long_as_asked(bench: Bench) -> None:
    [found] = bench.json("bench", "work.yaml", "--on", "local", "--longest", "8s")
    assert found["speed"] > 0
    assert [one["phase"] for one in bench.jobs()] == ["stopped"]  # the whole would take more than a minute and a half


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_job_running(bench: Bench, number: int) -> None:
    started = bench.start("bench", "work.yaml", "--on", "local", "--repeat", "3")
    late = deadline(40)
    while not any("stand_in.py" in one for one in bench.alive()):
        assert time.monotonic() < late
        time.sleep(0.1)
    started.send_signal(number)
    _, err = started.communicate(timeout=300)
    assert started.returncode == 130
    assert "interrupted" in err
    assert [one["phase"] for one in bench.jobs()] == ["stopped"]
    assert not any("stand_in.py" in one for one in bench.alive())


def test_one_that_fails_is_told_and_the_others_are_measured(bench: Bench) -> None:
    fails_on_one = STAND_IN.replace("import sys", "import os, sys\nif os.environ.get('BAD'): sys.exit(9)\nimport sys", 1)
    (bench.home / "stand_in.py").write_text(fails_on_one)
    bench.workload(more="environments: {bad: {program: {env: {BAD: 'yes'}}}}\n")
    out, _ = bench("bench", "work.yaml", "--on", "local", "--environment", "bad", "--repeat", "3", code=1)
    assert re.search(r"local was not measured: failed: exit code 9", out)
    assert len(bench.jobs()) == 1  # the next would tell no more
    assert bench.json("bench", "work.yaml", "--on", "local", "--steps", "100")[0]["speed"] > 0


def test_a_program_that_goes_on_from_another_s_checkpoint_is_not_taken_for_fast(bench: Bench) -> None:
    (bench.home / "stand_in.py").write_text(STAND_IN.replace("every=1000", "every=1000, directory='kept'"))
    assert bench.json("bench", "work.yaml", "--on", "local", "--steps", "100")[0]["speed"] > 0
    [again] = bench.json("bench", "work.yaml", "--on", "local", "--steps", "100", code=1)
    assert again["speed"] is None
    assert "none was left to do" in again["why_not_measured"]


def test_checkpoints_that_the_file_names_are_kept_apart(bench: Bench) -> None:
    named = (bench.home / "work.yaml").read_text().replace("{command:", f"{{checkpoints: {bench.home}/named, command:")
    (bench.home / "work.yaml").write_text(named)
    [found] = bench.json("bench", "work.yaml", "--on", "local", "--steps", "100", "--repeat", "2")
    assert [one["steps"] for one in found["runs"]] == [100, 100]
    assert len(found["speeds"]) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--on", "lokal"), "No engine is called 'lokal'. Did you mean local?"),
        (("--on", "local", "--on", "local:gpus=2"), "--on local:gpus=2 asks for 2 GPUs, and this machine has 0."),
        (("--on", "local", "--out", "missing/runs.csv"), "cannot be written"),
        (("--on", "local", "--steps", "0"), "--steps"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing_behind(bench: Bench, words: tuple[str, ...], told: str) -> None:
    _, err = bench("bench", "work.yaml", *words, code=2)
    assert told in err
    assert bench.jobs() == []


def test_the_page_on_measuring_works_as_it_is_written(bench: Bench) -> None:
    os.symlink(ROOT / "examples", bench.home / "examples")
    lines = "\n".join(re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "running" / "measuring.md").read_text(), re.DOTALL))
    assert lines.count("chipwise ") >= 3
    env = {**bench.env, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-eu", "-c", lines], cwd=bench.home, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "steps/s" in done.stdout
    assert "ratio" in done.stdout
