from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_reference_is_what_the_code_says() -> None:
    code = "import sys; sys.path.insert(0, 'tools'); import reference; sys.stdout.write(reference.text())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ROOT / "docs" / "reference" / "commands.md").read_text() == done.stdout, "stale: run `make docs`"
