"""A test that fails is run once more alone: bad luck is named, and what is broken stays broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[3] / "tools" / "run_tests.py"

UNLUCKY = """
from pathlib import Path

def test_at_the_second_try():
    seen = Path(__file__).with_suffix(".seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
BROKEN = "def test_always():\n    assert False\n"
WELL = "def test_never():\n    assert True\n"


@pytest.mark.parametrize(
    ("files", "code", "last"),
    [
        ({"unlucky": UNLUCKY, "well": WELL}, 0, "passed alone, mend it: test_unlucky.py::test_at_the_second_try"),
        ({"unlucky": UNLUCKY, "broken": BROKEN}, 1, "failed twice: test_broken.py::test_always"),
        ({"broken": "import nothing_of_this_name\n"}, 2, "1 error"),
        (
            {"broken": "import pytest\n@pytest.mark.parametrize('n', range(20))\ndef test_all(n):\n    assert n < 0\n"},
            1,
            "20 failed",
        ),
    ],
    ids=["unlucky", "broken", "unreadable", "many"],
)
def test_what_fails_is_run_once_more(tmp_path: Path, files: dict[str, str], code: int, last: str) -> None:
    for name, text in files.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    command = [sys.executable, str(RUN), "-n", "0", "--dist", "no", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert last in done.stdout
