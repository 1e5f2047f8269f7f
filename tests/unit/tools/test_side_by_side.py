"""Parts of continuous integration beside each other: none is lost, none is hidden, and one that fails fails the whole."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patience import deadline

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "side_by_side.py"
MAKEFILE = """\
waits:
\t@echo it begins; until [ -e quick.done ]; do sleep 0.02; done; echo it ends
quick:
\t@echo line 1; echo line 2 >&2; nice > quick.niceness; touch quick.done
broken:
\t@echo it breaks; exit 3
after:
\t@touch after.done
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")


def run(folder: Path, *lanes: str) -> subprocess.CompletedProcess[str]:
    (folder / "Makefile").write_text(MAKEFILE)
    command = [sys.executable, str(TOOL), *lanes]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


def test_what_waits_leaves_the_machine_to_what_computes(tmp_path: Path) -> None:
    done = run(tmp_path, "waits", "quick after")
    assert done.returncode == 0, done.stdout
    assert int((tmp_path / "quick.niceness").read_text()) > 0
    assert "line 1\nline 2\n" in done.stdout, "the output of a part stays together"
    assert [found[1] for found in re.finditer(r"^make (\w+): ended well after .* s, with .* s of CPU$", done.stdout, re.M)] == [
        "waits",
        "quick",
        "after",
    ]


@pytest.mark.parametrize("lanes", [("quick", "broken after"), ("broken", "after")], ids=["behind", "in front"])
def test_one_part_that_fails_fails_the_whole_and_the_others_are_tried(tmp_path: Path, lanes: tuple[str, ...]) -> None:
    done = run(tmp_path, *lanes)
    assert done.returncode == 1
    assert "it breaks" in done.stdout
    assert re.search(r"^make broken: failed after ", done.stdout, re.M)
    assert (tmp_path / "after.done").exists()


def test_a_part_that_does_not_exist_is_not_passed_over(tmp_path: Path) -> None:
    assert run(tmp_path, "quick", "misspelt").returncode == 1


def test_who_ends_the_run_ends_its_parts(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("first second:\n\t@echo $$$$ > $@.pid; sleep 60\n")
    command = [sys.executable, str(TOOL), "first", "second after"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    latest = deadline(20)
    while not all((tmp_path / f"{part}.pid").exists() for part in ("first", "second")) and time.monotonic() < latest:
        time.sleep(0.02)
    running.terminate()
    printed, _ = running.communicate(timeout=30)
    assert running.returncode == 1
    assert re.findall(r"^make (\w+): failed after ", printed, re.M) == ["first", "second", "after"]


def test_continuous_integration_leaves_no_check_out() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", "\n".join(line for line in script.splitlines() if not line.startswith("#"))))
    assert words >= {"test", "lint", "types", "arrows", "tools", "cluster", "proofs", "long"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^e2e: .*\n\t.*side_by_side\.py proofs long$", makefile, re.M)
