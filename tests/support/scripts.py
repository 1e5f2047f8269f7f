"""What a rendered Python script says, without running it; and whether formatter and linter have nothing to say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import File
from chipwise.renderer.program_files import NOTES


def constants(text: str) -> dict[str, Any]:
    """What a rendered program reads beside it."""
    found: dict[str, Any] = json.loads(text)
    found.pop(NOTES, None)
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
    """All texts in the settings of a program."""

    def inside(value: object) -> Iterator[str]:
        match value:
            case str():
                yield value
            case dict():
                for key, one in value.items():
                    yield key
                    yield from inside(one)
            case list():
                for one in value:
                    yield from inside(one)

    return set(inside(json.loads(text)))


def same_files(render: Any, planned: Deployment) -> bool:
    return bool(render(planned) == render(planned))


def loaded(files: Mapping[str, str], name: str) -> dict[str, Any]:
    """A rendered program as a module that was imported and not run: its functions, to be called with stand-ins."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.with_suffix(".json").write_text(files[name.replace(".py", ".json")])
        inside: dict[str, Any] = {"__name__": "rendered", "__file__": str(path)}
        exec(compile(files[name], name, "exec"), inside)
    return inside
