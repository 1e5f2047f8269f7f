"""Every target has a page, and the example on it is what the target writes today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chipwise.renderer.named_targets import files, target, target_names
from deployments import deployment
from fixed_deployments import CASES

PAGES = Path(__file__).resolve().parents[2] / "docs" / "targets"
MARK = re.compile(r"<!-- rendered: (\S+)((?: \S+=\S+)*) -->\n")
SHOWN = re.compile(r"(?:\n?`[^`\n]+`:\n\n````\w*\n.*?\n````\n)+", re.DOTALL)
_WORDS = {
    "py": "py",
    "tf": "hcl",
    "sh": "sh",
    "yaml": "yaml",
    "yml": "yaml",
    "json": "json",
    "sbatch": "sh",
    "mmd": "mermaid",
}


def test_every_target_has_a_page() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(target_names())


def example(name: str, what: str, limits: str) -> str:
    """The files, each under its name. Pictures are left out: the page would not show them."""
    what = what.removeprefix("examples/")
    planned = CASES[what.removeprefix("case/")] if what.startswith("case/") else deployment(what, *limits.split())
    made = [file for file in files(name, target(name), planned) if not file.path.endswith(".svg")]
    blocks = [
        f"`{file.path}`:\n\n````{_WORDS.get(file.path.rpartition('.')[2], '')}\n{file.text.rstrip()}\n````\n" for file in made
    ]
    return "\n".join(blocks)


@pytest.mark.parametrize("name", target_names())
def test_the_example_on_a_page_is_what_the_target_writes(name: str, update_golden: bool) -> None:
    page = PAGES / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    found = MARK.search(text)
    assert found, f"{page.name} shows no rendered example"
    wanted = example(name, found[1], found[2])
    rest = text[found.end() :]
    shown = SHOWN.match(rest)
    if update_golden:
        after = rest[shown.end() :] if shown else rest
        page.write_text(
            text[: found.end()] + "\n" + wanted + (f"\n{after.lstrip()}" if after.strip() else ""), encoding="utf-8"
        )
        return
    assert shown is not None
    assert shown[0].strip("\n") == wanted.strip("\n"), "run pytest tests/docs --update-golden and read the difference"
