"""Terraform files as blocks with lines. The reader is python-hcl2, which only those need who audit such files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.auditor.source import Located, Sources, TerraformBlock, Unreadable, line_of
from chipwise.auditor.yaml_files import read_yaml
from chipwise.errors import MissingExtra

_LABEL = re.compile(r'"[^"]*"|[\w-]+')
_CONTAINERS = ("kubernetes_deployment", "kubernetes_job", "kubernetes_stateful_set", "kubernetes_pod", "google_cloud_run")
_JSON_LABELS = {"resource": 2, "data": 2, "module": 1, "variable": 1, "provider": 1, "locals": 0, "terraform": 0}
_OPENING = re.compile(r'\s*(\w+)((?:\s+(?:"[^"]*"|[\w-]+))*)\s*\{')


def read_terraform(path: str, text: str) -> Iterator[TerraformBlock]:
    try:
        import hcl2
    except ImportError as error:
        raise MissingExtra("The audit of Terraform files", "audit") from error
    try:
        tree = hcl2.loads(text, serialization_options=hcl2.SerializationOptions(strip_string_quotes=True))
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except Exception as error:  # the parser's own tree of errors is no part of its interface
        raise Unreadable("it is not HCL", int(getattr(error, "line", 1) or 1)) from error
    lines = _openings(text)
    for kind, values in tree.items():
        if isinstance(values, list):
            for value in values:
                yield from _blocks(path, kind, (), value, lines)


def read_terraform_json(path: str, text: str) -> Iterator[TerraformBlock]:
    """The same language written as JSON: kinds hold types, types hold names, and a block may stand alone or in a list."""
    for document in read_yaml(path, text):
        if isinstance(document, Unreadable):
            raise document
        for kind, depth in _JSON_LABELS.items():
            yield from _json_blocks(path, kind, (), document.body.get(kind), depth, line_of(document.body, kind))


def _json_blocks(path: str, kind: str, labels: tuple[str, ...], value: Any, depth: int, line: int) -> Iterator[TerraformBlock]:
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, Located):
            continue
        if not depth:
            yield TerraformBlock(path=path, type=kind, labels=labels, body=item, line=line)
            continue
        for label, inside in item.items():
            yield from _json_blocks(path, kind, (*labels, label), inside, depth - 1, line_of(item, label))


def _blocks(
    path: str, kind: str, labels: tuple[str, ...], value: Any, lines: Mapping[tuple[str, ...], int]
) -> Iterator[TerraformBlock]:
    """Labels are nested mappings of one key each; the body says that it is a block."""
    if not isinstance(value, Mapping):
        return
    if value.get("__is_block__"):
        yield TerraformBlock(path=path, type=kind, labels=labels, body=value, line=lines.get((kind, *labels), 1))
        return
    for label, inside in value.items():
        yield from _blocks(path, kind, (*labels, str(label).strip('"')), inside, lines)


def _openings(text: str) -> dict[tuple[str, ...], int]:
    """The reader keeps no lines: where each block opens, the first of a kind and its labels."""
    openings: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if opening := _OPENING.match(line):
            openings.setdefault((opening[1], *(label.strip('"') for label in _LABEL.findall(opening[2]))), number)
    return openings


def inner(body: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Blocks of a name inside a block."""
    blocks = body.get(name)
    if isinstance(blocks, Mapping):  # as JSON has a block that stands alone
        return [blocks]
    return [one for one in blocks if isinstance(one, Mapping)] if isinstance(blocks, list) else []


def text_of(value: Any) -> str:
    """A value as text: quotes of literals taken off."""
    return str(value).strip('"') if value is not None else ""


def is_true(value: Any) -> bool:
    return value is True or text_of(value).lower() == "true"


def machine_groups(block: TerraformBlock) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Groups of machines inside the arguments of a module, by name: whatever names its types."""

    def groups(value: Any, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if isinstance(value, Mapping):
            if "instance_types" in value:
                yield name, value
            for key, item in value.items():
                yield from groups(item, str(key).strip('"'))

    yield from groups(block.body, block.title)


def google_pools(block: TerraformBlock) -> Iterator[Mapping[str, Any]]:
    """Pools of Google's machines inside the arguments of a module."""

    def pools(value: Any) -> Iterator[Mapping[str, Any]]:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping):
                bare = {str(key).strip('"'): inside for key, inside in item.items()}
                if "machine_type" in bare:
                    yield bare
                for inside in bare.values():
                    yield from pools(inside)

    if block.type == "module":
        yield from pools(block.body)


def line_inside(sources: Sources, block: TerraformBlock, name: str, after: str = "") -> int:
    """Where an argument of a block is written, after the one that it stands in; the reader keeps the line of the block only."""
    text = next((text for path, text in sources.texts if path == block.path), "")
    lines, position = text.splitlines(), block.line
    for token_bytes in (after, name) if after else (name,):
        opening = re.compile(rf'\s*(?:(?:[\w-]+\s*=\s*)?\{{\s*)?"?{re.escape(token_bytes)}"?\s*(?:[:=]|\{{)')
        position = next((number for number in range(position, len(lines) + 1) if opening.match(lines[number - 1])), position)
    return position


def rows_of(sources: Sources, block: TerraformBlock) -> Iterator[tuple[int, str]]:
    """The lines of a block with their numbers: what is given to a function (jsonencode) is read as it is written."""
    text = next((text for path, text in sources.texts if path == block.path), "")
    for number, row in enumerate(text.splitlines()[block.line - 1 :], start=block.line):
        yield number, row
        if row.startswith("}"):
            return


def holds_containers(block: TerraformBlock) -> bool:
    kind = block.labels[0] if block.labels and block.type == "resource" else ""
    return kind in ("aws_ecs_task_definition", "aws_batch_job_definition") or kind.startswith(_CONTAINERS)
