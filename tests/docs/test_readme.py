"""The README is short, and names what the package does: one example for each question."""

from __future__ import annotations

from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
SCREEN = 30  # lines
QUESTIONS = (
    *("init", "plan", "predict", "fits", "offers", "compare", "explain", "render"),
    *("run", "serve", "watch", "doctor", "characterize", "simulate"),
)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_an_example(name: str) -> None:
    assert f"chipwise {name} " in README


def test_what_it_does_and_how_to_try_it_is_on_two_screens() -> None:
    begun = README.partition("\n## Two commands\n")[0]
    assert begun != README
    assert len(begun.splitlines()) <= 2 * SCREEN
