"""docs/python.md: every line at a `>>>` is run, in one session from top to bottom, and prints what the page shows.

`pytest --update-golden` writes the outputs anew.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout, suppress
from pathlib import Path
from unittest.mock import patch

import pytest

import chipwise as cw
from command import plain

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
BLOCK = re.compile(r"(?<=```pycon\n).*?(?=```)", re.DOTALL)
STATEMENT = re.compile(r">>> .*\n(?:\.\.\. .*\n|\.\.\.\n)*")


@pytest.fixture
def user(tmp_path: Path) -> Iterator[None]:
    """Somebody in a folder with our examples; what they started ends with the test."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with patch.dict(os.environ, plain(tmp_path) | path, clear=True), chdir(tmp_path):
        yield
    for lock in tmp_path.rglob("controller.lock"):
        with suppress(OSError, ValueError):
            os.kill(int(lock.read_text()), signal.SIGTERM)


def played(block: str, names: dict[str, object]) -> str:
    """The block with what each statement prints now."""
    told = []
    for statement in STATEMENT.findall(block):
        code = re.sub(r"^(>>>|\.\.\.) ?", "", statement, flags=re.MULTILINE)
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(code, str(PAGE), "single"), names)
        told.append(statement + out.getvalue())
    return "".join(told)


@pytest.mark.usefixtures("user")
def test_the_page_prints_what_it_shows(update_golden: bool) -> None:
    names: dict[str, object] = {}
    text = PAGE.read_text(encoding="utf-8")
    now = BLOCK.sub(lambda block: played(block[0], names), text)
    if update_golden:
        PAGE.write_text(now, encoding="utf-8")
    assert now == PAGE.read_text(encoding="utf-8"), "stale: run pytest tests/docs/test_python_page.py --update-golden"
    assert len(STATEMENT.findall(text)) >= 30


def test_every_verb_and_every_error_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    errors = [name for name in cw.__all__ if isinstance(getattr(cw, name), type) and issubclass(getattr(cw, name), Exception)]
    assert [name for name in (*cw._VERBS, *errors) if name not in re.findall(r"\w+", text)] == []
