"""Every example is a workload that parses, and what it parses to is kept: a change there is a change for readers' files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chipwise.workload.parse import load, load_with_lines
from chipwise.workload.pipeline import KINDS

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/workload.yaml"))
GOLDEN = Path(__file__).parent / "workloads"


def test_every_kind_has_an_example() -> None:
    kinds = {model.model_fields["kind"].default for model in KINDS}
    assert kinds <= {path.parent.name for path in EXAMPLES}
    assert kinds == {load(path).kind for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_parses_to_what_it_did(path: Path, update_golden: bool) -> None:
    seen = {}
    for environment in (None, *load_with_lines(path).environments):
        workload = load(path, environment)
        seen[environment or ""] = workload.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = json.dumps(seen, indent=1, ensure_ascii=False) + "\n"
    golden = GOLDEN / f"{path.parent.name}.json"
    if update_golden:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), "read the difference; if it is meant, run pytest --update-golden"


def test_no_golden_file_outlives_its_example() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == {path.parent.name for path in EXAMPLES}
