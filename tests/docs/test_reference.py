from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_reference_is_what_the_code_says() -> None:
    code = "import sys; sys.path.insert(0, 'tools'); import reference; sys.stdout.write(reference.text())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ROOT / "docs" / "reference" / "commands.md").read_text() == done.stdout, "stale: run `make docs`"


def test_the_page_of_every_rule_of_the_audit_is_what_the_code_says() -> None:
    code = "import sys; sys.path.insert(0, 'tools'); import audit_rules; sys.stdout.write(audit_rules.text())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ROOT / "docs" / "reference" / "audit-rules.md").read_text() == done.stdout, "stale: run `make docs`"
