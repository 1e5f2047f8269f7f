"""Every command shown in the docs is run, and prints what the page says it prints.

A ```console block starts with `$ chipwise ...`; the rest of the block is its standard output, with the day pinned and 80
columns. `pytest --update-golden` writes the blocks anew.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from chipwise.api.session import wiring
from command import called, plain
from hand_graphs import resnet50

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"```console\n\$ (chipwise [^\n]*)\n(.*?)```", re.DOTALL)
CASES = [(page, command) for page in PAGES for command, _ in BLOCK.findall(page.read_text())]


def run(command: str, home: Path) -> str:
    words = shlex.split(command)[1:]
    if "resnet50.onnx" in words:  # a file that the reader has exported
        hand, out = resnet50()
        words = [str(hand.save(home / word, out)) if word == "resnet50.onnx" else word for word in words]
    done = called(*words, environment=plain(home))
    assert done.code in (0, 1), done.err
    return done.out


@pytest.mark.parametrize(("page", "command"), CASES, ids=[f"{page.name}: {command}" for page, command in CASES])
def test_a_command_in_the_docs_prints_what_the_page_shows(
    page: Path, command: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    printed = run(command, tmp_path)
    text = page.read_text()
    shown = dict(BLOCK.findall(text))[command]
    if request.config.getoption("--update-golden"):
        page.write_text(text.replace(f"$ {command}\n{shown}```", f"$ {command}\n{printed}```"))
        return
    assert printed == shown


def test_the_docs_show_commands_at_all() -> None:
    assert len(CASES) >= 10


def test_links_between_pages_lead_somewhere() -> None:
    targets = [
        (page, target) for page in PAGES for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text())
    ]
    assert [(str(page), target) for page, target in targets if not (page.parent / target).exists()] == []


SNIPPETS = [(page, code) for page in PAGES for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)]


@pytest.mark.parametrize(("page", "code"), SNIPPETS, ids=[str(page.relative_to(ROOT)) for page, _ in SNIPPETS])
def test_python_in_the_docs_runs(page: Path, code: str, tmp_path: Path) -> None:
    if page.parent.name in ("adding", "tutorial"):  # start processes, hear signals: programs of their own
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return
    wiring.OPENED.clear()
    with patch.dict(os.environ, plain(tmp_path), clear=True), chdir(ROOT), redirect_stdout(io.StringIO()):
        exec(compile(code, str(page), "exec"), {"__name__": "__main__"})
