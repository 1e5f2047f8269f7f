"""The accuracy page is of the factors that are packaged."""

from __future__ import annotations

from pathlib import Path

from chipwise.calibration.fingerprint import fingerprint

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


def test_the_accuracy_page_was_made_from_the_packaged_factors() -> None:
    assert f"`{fingerprint()}`" in PAGE.read_text(encoding="utf-8"), "stale: run .venv/bin/python tools/accuracy.py (minutes)"
