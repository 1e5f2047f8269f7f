"""What targets write for deployments that do not change: a difference there is a difference in somebody's repository."""

from __future__ import annotations

import shutil

import pytest

from chipwise.renderer.file import CannotRender
from chipwise.renderer.named_targets import files, target, target_names
from fixed_deployments import CASES
from golden_files import FOLDER, REFUSED, refused, written


@pytest.mark.parametrize("name", target_names())
def test_a_target_writes_and_refuses_what_it_did(name: str, update_golden: bool) -> None:
    made: dict[str, str] = {}
    sentences: dict[str, str] = {}
    for case, what in CASES.items():
        try:
            made |= {f"{case}/{file.path}": file.text for file in files(name, target(name), what)}
        except CannotRender as error:
            sentences[case] = str(error)
    if update_golden:
        _write(name, made, sentences)
    assert made == written(name), "read the difference; if it is meant, run pytest --update-golden"
    assert sentences == refused(name), "read the difference; if it is meant, run pytest --update-golden"


def _write(name: str, made: dict[str, str], sentences: dict[str, str]) -> None:
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    if sentences:
        made = made | {REFUSED: "".join(f"{case}: {sentence}\n" for case, sentence in sentences.items())}
    for path, text in made.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def test_no_golden_file_outlives_its_target() -> None:
    assert {path.name for path in FOLDER.iterdir()} <= set(target_names())
