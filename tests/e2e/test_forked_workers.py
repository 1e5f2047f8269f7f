"""Workers that are forked after one collection report what one process would, also when one of them dies."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patience import deadline

pytestmark = pytest.mark.e2e
TESTS = Path(__file__).resolve().parents[1]

CONFTEST = """
import os, pytest
from pathlib import Path

@pytest.fixture(scope="session")
def made():
    with open(Path(__file__).with_name("made"), "a") as file:
        file.write(f"{os.getpid()}\\n")
    yield os.getpid()
    Path(__file__).with_name(f"gone-{os.getpid()}").touch()
"""
ONE = """
import os, time, pytest

@pytest.fixture(scope="module")
def of_this_file():
    yield []

def test_first(of_this_file, made, tmp_path):
    of_this_file.append(tmp_path)
    print("a word of the first")
    assert made == os.getpid()

def test_second(of_this_file, made):
    assert len(of_this_file) == 1
    time.sleep(0.5)

@pytest.mark.xfail(reason="known")
def test_third():
    assert False
"""
TWO = """
import warnings, pytest

def test_fails():
    print("said before it fails")
    assert 1 == 2

def test_is_skipped():
    pytest.skip("aws: not found here")

def test_warns():
    warnings.warn("beware")
"""
DIES = """
import os, signal

def test_before(): pass
def test_dies(): os.kill(os.getpid(), signal.SIGKILL)
def test_after(made): pass
"""
BAD_END = """
import pytest

@pytest.fixture(scope="session")
def bad():
    yield
    raise ValueError("no good end")

def test_of_the_run(bad): pass
"""
WAITS = """
import time
from pathlib import Path

def test_waits(made):
    Path(__file__).with_name("waiting").touch()
    time.sleep(60)
"""


def _folder(folder: Path, **files: str) -> Path:
    for name in ("conftest.py", "allowed_skips.txt"):
        shutil.copy(TESTS / name, folder)
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS / 'support'}\n")
    (folder / "inner").mkdir()
    (folder / "inner" / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (folder / "inner" / f"test_{name}.py").write_text(text)
    return folder


def _command(*options: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "--forks=2", "-ra", "-p", "no:cacheprovider", *options]


def _run(folder: Path, *options: str) -> tuple[int, str]:
    wide = {**os.environ, "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(_command(*options), cwd=folder, env=wide, capture_output=True, text=True, timeout=120)
    assert not done.stderr
    return done.returncode, done.stdout


def test_what_workers_report_is_what_one_process_would(tmp_path: Path) -> None:
    code, printed = _run(_folder(tmp_path, one=ONE, two=TWO))
    assert code == 1
    assert "1 failed, 3 passed, 1 skipped, 1 xfailed, 1 warning" in printed
    for text in ("said before it fails", "beware", "1 x aws: not found here"):
        assert text in printed
    assert "a word of the first" not in printed
    made = (tmp_path / "inner" / "made").read_text().split()
    assert [(tmp_path / "inner" / f"gone-{pid}").exists() for pid in made] == [True]


def test_a_worker_that_dies_fails_its_test_and_the_others_are_run(tmp_path: Path) -> None:
    code, printed = _run(_folder(tmp_path, dies=DIES, one=ONE))
    assert code == 1
    assert "1 failed, 4 passed, 1 xfailed" in printed
    assert re.search(r"FAILED inner/test_dies.py::test_dies - .*signal SIGKILL", printed)


def test_a_bad_end_of_the_run_is_an_error_of_the_last_test(tmp_path: Path) -> None:
    code, printed = _run(_folder(tmp_path, bad=BAD_END, one=ONE))
    assert code == 1
    assert "ERROR inner/test_bad.py::test_of_the_run - ValueError: no good end" in printed


def test_the_first_failure_ends_the_run_where_it_should(tmp_path: Path) -> None:
    code, printed = _run(_folder(tmp_path, two=TWO, waits=WAITS), "-x")
    assert code == 1
    assert "stopping after 1 failures" in printed


def test_who_interrupts_the_run_leaves_no_worker_and_nothing_of_theirs(tmp_path: Path) -> None:
    folder = _folder(tmp_path, waits=WAITS) / "inner"
    run = subprocess.Popen(_command(), cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    latest = deadline(20)
    while not (folder / "waiting").exists() and time.monotonic() < latest:
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(timeout=60) == pytest.ExitCode.INTERRUPTED
    (pid,) = (folder / "made").read_text().split()
    assert (folder / f"gone-{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_fresh_copy_is_compiled_from_both_ends_and_collected_in_order(tmp_path: Path) -> None:
    """What only the second process reads first: a file that takes long in front, and many behind."""
    slow = "import time; time.sleep(3)\ndef test_nothing(): pass\n"
    many = {f"b{number:02}": "def test_nothing(): pass\n" for number in range(30)}
    last = "import os\nfrom pathlib import Path\nwith open(Path(__file__).with_name('read'), 'a') as file:\n"
    last += "    file.write(f'{os.getpid()}\\n')\ndef test_last(): pass\n"
    folder = _folder(tmp_path, a=slow, **many, z=last)
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS / 'support'}\ntestpaths = inner\n")
    for readers in (2, 1):  # the second time all is compiled
        code, printed = _run(folder)
        assert code == 0
        assert "32 passed" in printed
        assert len((folder / "inner" / "read").read_text().split()) == readers
        (folder / "inner" / "read").unlink()
