"""YAML and JSON files as manifests that know their lines.

Whatever a file does (nesting, aliases of aliases, a broken document in the middle), reading it takes bounded time and memory,
and what can be read of it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from chipwise.auditor.source import Located, LocatedList, Manifest, Unreadable

DEEPEST = 60  # levels of a document: a deeper one is no manifest
MOST_NODES = 200_000  # of a file, aliases counted each time they are used
MOST_DOCUMENTS = 5_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the first is libyaml's, ten times as fast
_BREAK = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_MERGE = "tag:yaml.org,2002:merge"
_TEMPLATE = re.compile(r"\{\{|\{%")
_SIGNS = re.compile(r'"(?:kind|apiVersion|services|resources?)"\s*:')  # of a manifest, in JSON


class _Template(Exception):
    """A mapping as the key of a mapping: `{{ ... }}` outside of quotes, which no manifest has."""


def read_yaml(path: str, text: str, limit: int = MOST_NODES) -> Iterator[Manifest | Unreadable]:
    """The mappings of a file, document by document; other values are no manifests. One that cannot be read says so, and those
    after it go on. `limit`: values that may be made of it."""
    if path.endswith(".json"):
        text = text.replace("\t", " ")  # indents; inside its strings JSON has no tab
    left = [min(limit, MOST_NODES)]
    begins = [0, *(found.start() for found in _BREAK.finditer(text) if found.start())]
    if len(begins) > MOST_DOCUMENTS:
        yield Unreadable(f"it has more than {MOST_DOCUMENTS:,} documents")
        return
    line = 1
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        part = text[begin:end]
        try:
            for value in _documents(part, line, left):
                yield from _manifests(path, value)
        except (yaml.YAMLError, _Template) as error:
            again = _json(part, left) if path.endswith(".json") else None
            if again is not None:
                yield from _manifests(path, again)
            elif isinstance(error, _Template) or _TEMPLATE.search(part):
                yield Unreadable("it is a template, not a manifest", line, template=True)
                return  # others of the same file are parts of it
            elif not path.endswith(".json") or _SIGNS.search(part):
                mark = getattr(error, "problem_mark", None)
                problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not YAML"
                yield Unreadable(str(problem), line + mark.line if mark else line)
        except Unreadable as error:
            yield error
            return  # too much of it: what follows is not looked at
        line += part.count("\n")


def read_value(text: str, line: int) -> Any:
    """The first value of a text that begins on this line, whatever it is; None where it cannot be read."""
    try:
        return next(iter(_documents(text, line, [MOST_NODES])), None)
    except (yaml.YAMLError, _Template, Unreadable):
        return None


def _manifests(path: str, value: Any) -> Iterator[Manifest]:
    if not isinstance(value, Located):
        return
    items = value.get("items")
    if str(value.get("kind", "")).endswith("List") and isinstance(items, list):
        yield from (Manifest(path, one) for one in items if isinstance(one, Located))
    else:
        yield Manifest(path, value)


def _documents(text: str, line: int, left: list[int]) -> Iterator[Any]:
    try:
        _bounded(text, line, left[0])
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except RecursionError:
        raise _too_much(DEEPEST + 1, line) from None
    for node in nodes:
        if node is not None:
            yield _built(node, 0, left, line)


def _bounded(text: str, line: int, limit: int) -> None:
    """Before anything is built of it: what follows goes down by recursion."""
    depth = count = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        count += isinstance(event, yaml.NodeEvent)
        if depth > DEEPEST or count > limit:
            raise _too_much(depth, event.start_mark.line + line)


def _too_much(depth: int, line: int) -> Unreadable:
    if depth > DEEPEST:
        return Unreadable(f"it is nested more than {DEEPEST} levels deep", line)
    return Unreadable(f"it has more than {MOST_NODES:,} values, aliases counted each time", line)


def _built(node: yaml.Node, depth: int, left: list[int], line: int) -> Any:
    left[0] -= 1
    if depth > DEEPEST or left[0] < 0:
        raise _too_much(depth, node.start_mark.line + line)
    match node:
        case yaml.MappingNode():
            return _mapping(node, depth, left, line)
        case yaml.SequenceNode():
            items = LocatedList()
            for item in node.value:
                items.append(_built(item, depth + 1, left, line))
                items.lines.append(item.start_mark.line + line)
            return items
        case yaml.ScalarNode():
            return _scalar(node)
    return None


def _mapping(node: yaml.MappingNode, depth: int, left: list[int], line: int) -> Located:
    """Keys of its own go over those that `<<` brings, and the first of several that `<<` names over the next."""
    mapping = Located()
    mapping.line = node.start_mark.line + line
    merged: list[Located] = []
    for key, value in node.value:
        if isinstance(key, yaml.MappingNode):
            raise _Template
        if key.tag == _MERGE:
            built = _built(value, depth + 1, left, line)
            merged += [one for one in (built if isinstance(built, list) else [built]) if isinstance(one, Located)]
            continue
        name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""  # keys of rules are texts
        mapping.lines[name] = key.start_mark.line + line
        mapping[name] = _built(value, depth + 1, left, line)
    for source in merged:
        left[0] -= len(source)
        for name, value in source.items():
            if name not in mapping:
                mapping.lines[name] = source.lines.get(name, mapping.line)
                mapping[name] = value
    return mapping


def _scalar(node: yaml.ScalarNode) -> Any:
    if node.tag == "tag:yaml.org,2002:bool":
        return str(node.value).lower() in ("true", "yes", "on")
    if node.tag == "tag:yaml.org,2002:int":
        try:
            return int(str(node.value).replace("_", ""), 0)
        except ValueError:
            return str(node.value)
    return None if node.tag == "tag:yaml.org,2002:null" else str(node.value)


def _json(text: str, left: list[int]) -> Any:
    """What JSON allows and YAML does not (pairs of surrogates, `\\/`): the same values, without their lines."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _placed(value, 0, left)


def _placed(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if depth > DEEPEST or left[0] < 0:
        raise _too_much(depth, 1)
    if isinstance(value, dict):
        mapping = Located()
        for key, item in value.items():
            mapping.lines[key], mapping[key] = 1, _placed(item, depth + 1, left)
        return mapping
    return [_placed(one, depth + 1, left) for one in value] if isinstance(value, list) else value
