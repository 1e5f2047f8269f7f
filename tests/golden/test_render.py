"""What targets write for deployments that do not change: a difference there is a difference in somebody's repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.api.render import files, target, target_names
from chipwise.render.file import CannotRender
from fixed_deployments import CASES

GOLDEN = Path(__file__).parent / "render"


@pytest.mark.parametrize("name", target_names())
@pytest.mark.parametrize("case", CASES)
def test_a_target_writes_what_it_did(name: str, case: str, update_golden: bool) -> None:
    folder = GOLDEN / name / case
    try:
        made = {file.path: file.text for file in files(name, target(name), CASES[case])}
    except CannotRender as error:
        made = {"refused.txt": f"{error}\n"}
    if update_golden:
        for old in [path for path in folder.rglob("*") if path.is_file()]:
            old.unlink()
        for path, text in made.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    kept = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()}
    assert made == kept, "read the difference; if it is meant, run pytest --update-golden"


def test_no_golden_file_outlives_its_target() -> None:
    assert {path.name for path in GOLDEN.iterdir()} <= set(target_names())
