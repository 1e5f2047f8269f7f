"""`chipwise bench` before anything runs: what is refused, and what is only a formula."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.planner.tails import BOOT_S
from command import ROOT, Chipwise

WORK = (
    "kind: train\nname: w\nmodel: gpt2\ntokens: 1M\nsequence_length: 256\nbatch_tokens: 2048\n"
    "program: {command: [python, t.py]}\n"
)
HPC = "kind: hpc\nname: h\nsteps: 5\nbytes_per_step: 1GB\nprogram: {command: [python, h.py]}\n"


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (WORK, ["--on", "lokal"], "No engine is called 'lokal'. Did you mean local?"),
        (WORK, ["--on", "local", "--on", "local"], "A place is there twice. Write --repeat 2"),
        (WORK, ["--on", "local:gpus=many"], "says no devices. Write local:gpus=1"),
        (WORK, ["--on", ":"], "names no place"),
        (WORK, ["--on", "simulated", "--out", "runs.csv"], "What is simulated was not measured"),
        (WORK, ["--on", "local", "--out", "nowhere/runs.csv"], "cannot be written"),
        (WORK, [], "--on"),
        (HPC, ["--on", "local", "--out", "runs.csv"], "h is of the kind hpc"),
        (WORK.replace("program: {command: [python, t.py]}", ""), ["--on", "local"], "does not say what to run"),
        (WORK.replace("gpt2", "gpt22"), ["--on", "local"], "No model is called 'gpt22'"),
    ],
)
def test_bad_input_is_told_before_anything_is_started(
    chipwise: Chipwise, tmp_path: Path, text: str, words: list[str], told: str
) -> None:
    (tmp_path / "w.yaml").write_text(text)
    done = chipwise("bench", "w.yaml", *words, cwd=tmp_path)
    assert done.code == 2
    assert told in done.err
    assert done.out == ""
    assert not chipwise.data_dir.exists()
    assert not (tmp_path / "runs.csv").exists()


@pytest.mark.parametrize(("example", "told"), [("serve", "runs until it is stopped"), ("pipeline", "is a pipeline")])
def test_what_has_no_end_or_many_parts_is_not_timed(chipwise: Chipwise, example: str, told: str) -> None:
    done = chipwise("bench", f"{ROOT}/examples/{example}/workload.yaml", "--on", "local")
    assert done.code == 2
    assert told in done.err


def test_what_is_simulated_is_shown_as_a_formula(chipwise: Chipwise, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORK)
    done = chipwise("bench", "w.yaml", "--on", "simulated", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "a formula: not run" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    [found] = chipwise("bench", "w.yaml", "--on", "simulated", "--json", cwd=tmp_path).json
    assert (found["formula"], found["speed"], found["ratio"], found["runs"]) == (True, None, None, [])
    assert found["predicted"] > 0
    assert found["usd_per_unit"] > 0


def test_fewer_steps_are_simulated_as_less_time_after_the_same_start(chipwise: Chipwise, tmp_path: Path) -> None:
    text = "kind: hpc\nname: h\nsteps: 300\nflop_per_step: 2TFLOP\nbytes_per_step: 100GB\nprogram: {command: [python, h.py]}\n"
    (tmp_path / "h.yaml").write_text(text)
    [whole] = chipwise("bench", "h.yaml", "--on", "simulated", "--json", cwd=tmp_path).json
    [part] = chipwise("bench", "h.yaml", "--on", "simulated", "--steps", "30", "--json", cwd=tmp_path).json
    assert (part["seconds"] - BOOT_S) / (whole["seconds"] - BOOT_S) == pytest.approx(0.1)
    assert part["predicted"] == whole["predicted"], "the speed is the same"
