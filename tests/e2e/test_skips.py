"""A skip whose reason is not allowed fails the run, whoever runs the test: this process or a worker."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
TESTS = Path(__file__).resolve().parents[1]
ALLOWED = 'import pytest\ndef test_one(): pytest.skip("aws: not found here")\n'
ODD_TEST = 'import pytest\ndef test_one(): pytest.skip("nobody knows why")\n'
ODD_FILE = 'import pytest\npytest.importorskip("no_such_module")\ndef test_one(): pass\n'


@pytest.mark.parametrize("how", ["-n0", "-n2", "--forks=2"])
@pytest.mark.parametrize(("text", "code"), [(ALLOWED, 0), (ODD_TEST, 1), (ODD_FILE, 1)], ids=["allowed", "test", "file"])
def test_a_skip_that_is_not_allowed_fails_the_run(tmp_path: Path, how: str, text: str, code: int) -> None:
    for name in ("conftest.py", "allowed_skips.txt"):
        shutil.copy(TESTS / name, tmp_path)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS / 'support'}\n")
    (tmp_path / "test_fine.py").write_text("def test_fine(): pass\n")
    (tmp_path / "test_skipped.py").write_text(text)
    words = [sys.executable, "-m", "pytest", how, "--dist", "loadfile", "--no-other-skips", "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout
    assert "1 passed, 1 skipped" in done.stdout
    assert ("is not in allowed_skips.txt" in done.stdout) == bool(code)


@pytest.mark.parametrize(
    ("text", "chosen", "code", "said"),
    [
        ("import pytest\npytestmark = pytest.mark.e2e\ndef test_one(): pass\n", "e2e", 0, "2 passed"),
        ("from pathlib import Path\nPath('opened').touch()\ndef test_one(): pass\n", "e2e", 0, "1 passed"),
        ("from marks import pytestmark\ndef test_one(): pass\n", "not e2e", 4, "name the mark e2e in its own"),
    ],
    ids=["named", "without", "named elsewhere"],
)
def test_a_run_of_proofs_opens_only_files_that_name_them(tmp_path: Path, text: str, chosen: str, code: int, said: str) -> None:
    for name in ("conftest.py", "allowed_skips.txt"):
        shutil.copy(TESTS / name, tmp_path)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS / 'support'} .\nmarkers = e2e\n")
    (tmp_path / "marks.py").write_text("import pytest\npytestmark = pytest.mark.e2e\n")
    (tmp_path / "test_fine.py").write_text("import pytest\n@pytest.mark.e2e\ndef test_fine(): pass\n")
    (tmp_path / "test_tried.py").write_text(text)
    words = [sys.executable, "-m", "pytest", "-m", chosen, "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout
    assert said in done.stdout + done.stderr
    assert not (tmp_path / "opened").exists()
