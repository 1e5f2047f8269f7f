"""`chipwise characterize` as a user has it: what it writes, and programs that cannot be characterised."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from command import Chipwise

LOOP = "import time\nwhile True: time.sleep(0.01)"


def python(chipwise: Chipwise, folder: Path, program: str, *options: str) -> tuple[int, str, str, Path]:
    out = folder / "workload.yaml"
    done = chipwise("characterize", "--for", "1s", "-o", str(out), *options, "--", sys.executable, "-c", program)
    return done.code, done.out, done.err, out


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        ("raise SystemExit(7)", 3, "failed with exit code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 3, "was killed by SIGSEGV"),
        ("input()", 3, "--stdin FILE"),
        (
            "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\ntime.sleep(60)",
            2,
            "left 1 process in the background",
        ),
    ],
    ids=["fails", "killed", "stdin", "daemon"],
)
def test_what_cannot_be_characterised_is_one_sentence(
    program: str, code: int, words: str, chipwise: Chipwise, tmp_path: Path
) -> None:
    result, out, err, file = python(chipwise, tmp_path, program)
    assert (result, words in err, out) == (code, True, ""), err
    assert not file.exists()


def test_a_run_that_is_over_at_once_tells_nothing(chipwise: Chipwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chipwise.api.measure import characterise as characterising

    monkeypatch.setattr(characterising, "SHORTEST_S", 60.0)  # a busy machine takes long to start an interpreter
    code, _, err, file = python(chipwise, tmp_path, "pass")
    assert (code, "too soon to be measured" in err, file.exists()) == (1, True, False)


def test_a_program_that_is_not_there_and_a_file_that_is(chipwise: Chipwise, tmp_path: Path) -> None:
    done = chipwise("characterize", "-o", str(tmp_path / "a.yaml"), "--", "no-such-program")
    assert (done.code, "There is no program 'no-such-program'" in done.err) == (2, True)
    (tmp_path / "b.yaml").write_text("mine")
    done = chipwise("characterize", "-o", str(tmp_path / "b.yaml"), "--", sys.executable, "-c", "pass")
    assert (done.code, (tmp_path / "b.yaml").read_text()) == (2, "mine")
    assert chipwise("characterize", "-o", str(tmp_path / "c.yaml"), "--threads", "two", "--", "true").code == 2
    assert chipwise("characterize").code == 2


def test_ctrl_c_ends_the_program_and_its_children(chipwise: Chipwise, tmp_path: Path) -> None:
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {LOOP!r}, 'chipwise-test-child'])"
    arguments = ["characterize", "-o", str(tmp_path / "a.yaml"), "--", sys.executable, "-c", program]
    environment = {**os.environ, "CHIPWISE_HOME": str(tmp_path)}
    command = subprocess.Popen([sys.executable, "-m", "chipwise", *arguments], stderr=subprocess.PIPE, env=environment)

    def children() -> list[psutil.Process]:
        running = psutil.process_iter(["cmdline"])
        return [process for process in running if "chipwise-test-child" in (process.info["cmdline"] or [])[-1:]]

    late = time.monotonic() + 30
    while not children() and time.monotonic() < late:
        time.sleep(0.05)
    assert children()
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=30)
    assert command.returncode == 130
    assert not children()
    assert not (tmp_path / "a.yaml").exists()


def test_a_program_of_numpy_becomes_a_workload_that_can_be_planned(chipwise: Chipwise, tmp_path: Path) -> None:
    program = "import numpy as np\na = np.ones((300, 300))\nwhile True:\n    b = a + a\n    a = b * 0.5"
    code, out, err, file = python(chipwise, tmp_path, program, "--json", "--on", "Xeon-Sapphire-Rapids", "--steps", "1000000")
    assert code == 0, err
    assert json.loads(out)["flop_per_step"]["value"] == 2 * 300 * 300
    planned = chipwise("plan", str(file), "--json")
    assert planned.code == 0, planned.err


def test_a_program_that_ends_early_is_taken_as_the_whole_job_and_its_output_is_shown(tmp_path: Path) -> None:
    program = "import time\nstart = time.monotonic()\nprint('mine', flush=True)\nwhile time.monotonic() < start + 1: pass"
    out, options = tmp_path / "a.yaml", ("--on", "Xeon-Sapphire-Rapids", "--for", "30s")
    command = [sys.executable, "-m", "chipwise", "characterize", *options, "-o", str(out), "--", sys.executable, "-c", program]
    environment = {**os.environ, "CHIPWISE_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count("mine") == 1
    assert "per: job" in out.read_text()


def test_a_program_that_never_becomes_steady_writes_nothing(
    chipwise: Chipwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chipwise.adapters.characterising import repeated
    from chipwise.api.measure import characterise as characterising

    monkeypatch.setattr(repeated, "steady_since", lambda seen: None)
    monkeypatch.setattr(characterising, "pace", lambda seen, counts: None)
    monkeypatch.setattr(repeated, "UNSTEADY", -58.0)
    monkeypatch.setattr(repeated, "IDLE_S", 0.5)
    code, _, err, file = python(chipwise, tmp_path, LOOP)
    assert (code, "did not become steady" in err) == (1, True), err
    assert not file.exists()
