"""Numbers that the pages print about the catalog are the catalog's own."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from chipwise.catalog.load import load
from chipwise.cli.main import COMMANDS
from chipwise.workload.model.registry import load as load_models

ROOT = Path(__file__).resolve().parents[2]
CATALOG = load()
COUNTS = {
    "chips": len(CATALOG.chips),
    "machine types": len(CATALOG.machines),
    "offers": len(CATALOG.offers),
    "regions": len(CATALOG.regions),
    "models": len(load_models()),
}


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "SCOPE.md", "docs/design/0001-offers-are-columns.md"])
def test_a_count_on_a_page_is_right(page: str) -> None:
    text = (ROOT / page).read_text()
    for what, count in COUNTS.items():
        for shown in re.findall(rf"\b(\d[\d,]+)\s+{what}\b", text):
            assert int(shown.replace(",", "")) == count, f"{page} says {shown} {what}; the catalog has {count:,}"


@pytest.mark.parametrize("page", ["README.md", "SCOPE.md"])
def test_a_page_counts_the_targets(page: str) -> None:
    targets = [path for path in (ROOT / "src/chipwise/renderer/targets").glob("*.py") if path.stem != "__init__"]
    assert f"{len(targets)} targets" in (ROOT / page).read_text()


@pytest.mark.parametrize("page", ["README.md", "docs/questions.md"])
def test_a_page_counts_the_dependencies(page: str) -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    assert f"{words[len(required)]} dependencies" in (ROOT / page).read_text()


def test_the_readme_says_how_much_there_is() -> None:
    readme = (ROOT / "README.md").read_text()
    assert f"{len(CATALOG.offers):,} offers" in readme
    assert f"{len({machine.provider for machine in CATALOG.machines})} providers" in " ".join(readme.split())


def test_the_scope_names_commands_that_there_are() -> None:
    """And none of them among what is still to come."""
    here, _, later = (ROOT / "SCOPE.md").read_text().partition("## What comes next")
    named = set(re.findall(r"`([a-z]+)`", here))
    assert {"serve", "watch", "doctor", "health", "policies", "simulate"} <= named <= set(COMMANDS)
    assert "No command" not in later
