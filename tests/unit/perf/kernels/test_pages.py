"""The examples of the pages in docs/models are run, and print what the pages say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[4] / "docs" / "models"
NAMES = ("hpc", "render", "transcode", "fpga", "quantum", "processor", "edge")


@pytest.mark.parametrize("name", NAMES)
def test_the_example_on_the_page_prints_what_it_shows(name: str) -> None:
    # A block ends with its fence, which is no output.
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8").replace("\n```", "\n\n```")
    found = doctest.DocTestParser().get_doctest(text, {}, name, f"{name}.md", 0)
    assert found.examples
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(found, out=printed.append)
    assert printed == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_how_whence_and_how_far(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    for heading in ("# ", "## Formula", "## Symbols", "## Sources", "## Limits", "## Example"):
        assert f"\n{heading}" in f"\n{text}", heading
