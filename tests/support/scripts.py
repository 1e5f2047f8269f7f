"""What a rendered Python script says, without running it; and whether formatter and linter have nothing to say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

from chipwise.render.deployment import Deployment
from chipwise.render.file import File


def constants(text: str) -> dict[str, Any]:
    """Literals at the top of a script."""
    found: dict[str, Any] = {}
    for one in ast.parse(text).body:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            try:
                found[one.targets[0].id] = ast.literal_eval(one.value)
            except ValueError:
                continue
    return found


def texts(files: list[File]) -> dict[str, str]:
    return {file.path: file.text for file in files}


def accepted(files: list[File], folder: Path) -> None:
    """Python compiles, is formatted and lints; shell scripts parse."""
    for file in files:
        (folder / file.path).write_text(file.text)
        if file.path.endswith(".py"):
            compile(file.text, file.path, "exec")
        elif file.path.endswith(".sh"):
            subprocess.run(["bash", "-n"], input=file.text, text=True, check=True)
    ruff = str(Path(sys.executable).with_name("ruff"))
    for words in (["format", "--check"], ["check", "--select", "E4,E7,E9,F,I,UP,B"]):
        done = subprocess.run(
            [ruff, *words, "--isolated", "--line-length", "128", str(folder)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def literals(text: str) -> set[str]:
    return {one.value for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def same_files(render: Any, planned: Deployment) -> bool:
    return bool(render(planned) == render(planned))


def loaded(text: str) -> dict[str, Any]:
    """A rendered script as a module that was imported and not run: its functions, to be called with stand-ins."""
    inside: dict[str, Any] = {"__name__": "rendered"}
    exec(compile(text, "rendered.py", "exec"), inside)
    return inside
