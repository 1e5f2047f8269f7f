"""Programs that targets write: the files of `programs/` as they stand, with what the plan says as data beside them.

A Python program reads the JSON file of its own name; a shell program reads variables that stand before it or in a file beside
it. Text of users is data in both, never code. Reading the package's own files is all that happens here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chipwise.renderer.file import File
from chipwise.renderer.quoting import one_line, shell

_PROGRAMS = Path(__file__).parent / "programs"
WIDTH = 120
ShellSetting = str | int | Sequence[str]  # a variable, or an array
NOTES = "notes"  # the key of the reasons, which no program reads


@dataclass(frozen=True, slots=True)
class Setting:
    """What a program reads, with the reason a reader would ask for."""

    name: str
    value: object
    reason: str = ""


@cache
def program(name: str) -> str:
    """A program as it stands in `programs/`."""
    return (_PROGRAMS / name).read_text(encoding="utf-8")


def inline(text: str) -> str:
    """A small program of the shell as a word of a command: without the comments at its head."""
    lines = text.splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if not line.startswith("#"))
    return "".join(lines[first:])


def python_files(path: str, name: str, heading: str, settings: Sequence[Setting], executable: bool = True) -> list[File]:
    """The program `name` under the path that users run, and its settings."""
    return [
        File(path, headed(program(name), heading), executable),
        File(path.removesuffix(".py") + ".json", settings_text(settings)),
    ]


def headed(text: str, heading: str) -> str:
    """A program with lines of comment after its first."""
    first, _, rest = text.partition("\n")
    return f"{first}\n{comment(heading)}{rest}"


def comment(heading: str) -> str:
    return "".join(f"# {one_line(line)}".rstrip() + "\n" for line in heading.splitlines())


def settings_text(settings: Sequence[Setting]) -> str:
    notes = {one.name: [one_line(line) for line in one.reason.splitlines()] for one in settings if one.reason}
    values = {one.name: _clean(one.value) for one in settings}
    return _json({NOTES: notes, **values} if notes else values) + "\n"


def _json(value: object, indent: int = 0, used: int = 0) -> str:
    """What fits stands on one line. `used`: columns before it on its line."""
    flat = json.dumps(value)
    if not isinstance(value, dict | list) or (used and used + len(flat) < WIDTH):
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key)}: {_json(one, indent + 2, indent + len(json.dumps(key)) + 4)}" for key, one in value.items()
        ]
    else:
        parts = [_json(one, indent + 2, indent + 2) for one in value]
    left, right = "{}" if isinstance(value, dict) else "[]"
    return f"{left}\n{pad}" + f",\n{pad}".join(parts) + f"\n{' ' * indent}{right}"


def _clean(value: object) -> object:
    """Half of a pair of surrogates is no text, and no program could print it."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case Mapping():
            return {str(_clean(str(key))): _clean(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_clean(inner) for inner in value]
        case float() if value.is_integer():
            return int(value)
    return value


def shell_file(path: str, name: str, heading: str, settings: Mapping[str, ShellSetting]) -> File:
    """The program `name` with its settings before it."""
    return File(path, f"#!/bin/bash\n{comment(heading)}{variables(settings)}{body(program(name))}", True)


def variables(settings: Mapping[str, ShellSetting], why: Mapping[str, str] | None = None) -> str:
    """Each a text or an array; whatever a user wrote is one word of it."""
    return "".join(comment((why or {}).get(name, "")) + _variable(name, value) for name, value in settings.items())


def _variable(name: str, value: ShellSetting) -> str:
    if isinstance(value, str | int):
        return f"{name}={shell([str(value)])}\n"
    words = [shell([word]) for word in value]
    flat = f"{name}=({' '.join(words)})\n"
    return flat if len(flat) <= WIDTH else f"{name}=(\n" + "".join(f"  {line}\n" for line in _lines(words)) + ")\n"


def _lines(words: Sequence[str]) -> Iterator[str]:
    """As many words on a line as fit."""
    line = ""
    for word in words:
        if line and len(line) + len(word) + 3 > WIDTH:
            yield line
            line = word
        else:
            line = f"{line} {word}".lstrip(" ")
    yield line


def body(text: str) -> str:
    """A program without the line that names its shell."""
    return text.partition("\n")[2]
