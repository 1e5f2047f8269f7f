from __future__ import annotations

from pathlib import Path

import audit_rules
import reference

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_the_command_reference_is_what_the_code_says() -> None:
    assert (PAGES / "commands.md").read_text() == reference.text(), "stale: run `make docs`"


def test_the_page_of_every_rule_of_the_audit_is_what_the_code_says() -> None:
    assert (PAGES / "audit-rules.md").read_text() == audit_rules.text(), "stale: run `make docs`"
