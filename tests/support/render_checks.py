"""The real tools that take rendered files, where they are: each says what it thinks of a file, or that it is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from install_tools import folder as tools_folder


def program(name: str) -> str:
    """Beside this Python, in the tools' folder or on the path; a test without it is skipped with its name."""
    for place in (str(Path(sys.executable).parent), str(tools_folder() / "bin"), None):
        found = shutil.which(name, path=place)
        if found:
            return found
    pytest.skip(f"{name}: not found; see make tools")


def python_of(environment: str) -> str:
    """The Python of an environment with a package that is too large for ours."""
    found = tools_folder() / environment / "bin" / "python"
    if not found.exists():
        pytest.skip(f"{environment}: not found; see make tools")
    return str(found)


def said(words: list[str], given: str = "", cwd: Path | None = None, **settings: str) -> tuple[int, str]:
    done = subprocess.run(
        words, input=given, cwd=cwd, env={**os.environ, **settings}, capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout + done.stderr
