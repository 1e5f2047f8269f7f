"""Terraform files read back: blocks with plain values, strings as Terraform would have them, and what refers to what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import hcl2

from chipwise.renderer.file import File

_ESCAPE = re.compile(r'\\(n|r|t|"|\\|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(\$\$\{)|(%%\{)')
_SIGNS = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_ROOTS = re.compile(r"\b(var|local|data|module|[a-z]+_[a-z0-9_]+)\.([a-zA-Z0-9_-]+)(?:\.([a-zA-Z0-9_-]+))?")


@dataclass(frozen=True, slots=True)
class Found:
    """One block of a file."""

    kind: str
    labels: tuple[str, ...]
    body: Mapping[str, Any]


def text_of(raw: str) -> str:
    """A literal between quotes as the text that Terraform reads; expressions are left as they are written."""
    if not (len(raw) >= 2 and raw[0] == raw[-1] == '"'):
        return raw
    return _ESCAPE.sub(_sign, raw[1:-1])


def _sign(found: re.Match[str]) -> str:
    if found[2] or found[3]:
        return found[0][1:]
    code = found[1]
    return _SIGNS[code] if code in _SIGNS else chr(int(code[1:], 16))


def blocks(text: str) -> Iterator[Found]:
    for kind, many in hcl2.loads(text).items():
        if kind.startswith("__"):
            continue
        for one in many:
            yield _block(kind, one)


def _block(kind: str, value: Mapping[str, Any]) -> Found:
    labels: list[str] = []
    while "__is_block__" not in value:
        (label, value), *rest = value.items()
        assert not rest
        labels.append(label.strip('"'))
    return Found(kind, tuple(labels), {key: one for key, one in value.items() if key != "__is_block__"})


def strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for key, one in value.items():
                yield str(key)
                yield from strings(one)
        case Sequence():
            for one in value:
                yield from strings(one)


def modules(files: Sequence[File]) -> dict[str, list[Found]]:
    """Blocks by directory."""
    made: dict[str, list[Found]] = {}
    for file in files:
        if file.path.endswith(".tf"):
            made.setdefault(file.path.rpartition("/")[0], []).extend(blocks(file.text))
    return made


def dangling(found: Sequence[Found]) -> set[str]:
    """References of a module to what it does not have."""
    has = {f"var.{one.labels[0]}" for one in found if one.kind == "variable"}
    has |= {f"local.{key}" for one in found if one.kind == "locals" for key in one.body}
    has |= {f"data.{'.'.join(one.labels)}" for one in found if one.kind == "data"}
    has |= {".".join(one.labels) for one in found if one.kind == "resource"}
    types = {one.labels[0] for one in found if one.kind == "resource"}
    missing = set()
    for one in found:
        for text in strings(one.body):
            inner = text if not text.startswith('"') else " ".join(re.findall(r"(?<!\$)\$\{([^}]*)\}", text))
            for root, first, second in _ROOTS.findall(re.sub(r'"[^"]*"', "", inner)):
                name = f"data.{first}.{second}" if root == "data" else f"{root}.{first}"
                known = root in ("var", "local", "data") or root in types or root.startswith(("aws_", "google_", "azurerm_"))
                if known and name not in has:
                    missing.add(name)
    return missing


def values(found: Sequence[Found], kind: str, *labels: str) -> list[Mapping[str, Any]]:
    return [one.body for one in found if one.kind == kind and one.labels[: len(labels)] == labels]
