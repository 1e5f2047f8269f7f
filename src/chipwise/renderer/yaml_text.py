"""YAML with comments: mappings, lists and scalars as given, and beside them the reasons a reader would ask for.

PyYAML writes every scalar, so that hostile text stays text; only the layout is ours, because PyYAML drops comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType

import yaml

from chipwise.renderer.quoting import one_line

# What PyYAML leaves bare and the parsers of Kubernetes, kustomize and Helm take for a number or a truth value.
_NO_TEXT_FOR_GO = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?0[oO][0-7_]+|[yYnN]")
Yaml = object  # None, bool, int, float, str, and mappings, sequences and `Noted` of them
# The usual types stand first: to ask an abstract class takes ten times as long, and manifests have thousands of values.
_SCALARS = (str, int, float, NoneType)
_MAPPINGS = (dict, Mapping)
_SEQUENCES = (list, tuple, Sequence)


@dataclass(frozen=True, slots=True)
class Noted:
    """A value with its reason: a comment on the line above it."""

    value: Yaml
    comment: str


def document(*values: Yaml, title: str = "") -> str:
    """One file of one or more documents. `title`: comment lines at the top."""
    head = "".join(f"# {one_line(line)}\n" if line else "#\n" for line in title.splitlines())
    return head + "---\n".join("".join(f"{line}\n" for line in _lines(value)) for value in values)


def plain(value: Yaml) -> Yaml:
    """The value without its comments: what a reader of the file gets."""
    match value:
        case Noted():
            return plain(value.value)
        case Mapping():
            return {key: plain(one) for key, one in value.items()}
        case str():
            return value
        case Sequence():
            return [plain(one) for one in value]
    return value


def _lines(value: Yaml) -> Iterator[str]:
    if isinstance(value, Noted):
        yield from _comment(value.comment)
        yield from _lines(value.value)
    elif isinstance(value, _SCALARS) or not value:
        yield _scalar(value)
    elif isinstance(value, _MAPPINGS):
        for key, item in value.items():
            yield from _entry(f"{_scalar(key)}:", item)
    elif isinstance(value, _SEQUENCES):
        for item in value:
            if isinstance(item, Noted):
                yield from _comment(item.comment)
                item = item.value
            if isinstance(item, str) and _is_block(item):
                yield from _block("-", item)
                continue
            first, *rest = _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _entry(key: str, value: Yaml) -> Iterator[str]:
    if isinstance(value, Noted):
        yield from _comment(value.comment)
        value = value.value
    if isinstance(value, str) and _is_block(value):
        yield from _block(key, value)
    elif not isinstance(value, _SCALARS) and isinstance(value, _MAPPINGS + _SEQUENCES) and value:
        yield key
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{key} {_scalar(value)}"


def _block(key: str, text: str) -> Iterator[str]:
    yield f"{key} |{'' if text.endswith(chr(10)) else '-'}"
    yield from (f"  {line}" if line else "" for line in text.removesuffix("\n").split("\n"))


def _comment(why: str) -> Iterable[str]:
    return (f"# {one_line(line)}" for line in why.splitlines())


def _is_block(text: str) -> bool:
    """Scripts are read, so they stand as they are, where nothing in them needs an escape."""
    if "\n" not in text:
        return False
    lines = text.removesuffix("\n").split("\n")
    printable = all(line.isprintable() and line == line.rstrip() for line in lines)
    return len(lines) > 1 and printable and bool(lines[0]) and not lines[0].startswith(" ") and bool(lines[-1])


def _scalar(value: Yaml) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, _SCALARS):
        return _dumped(value)
    if isinstance(value, _MAPPINGS):
        return "{}"
    return "[]" if isinstance(value, _SEQUENCES) else _dumped(value)


@lru_cache(maxsize=4096)
def _string(value: str) -> str:
    text = _dumped(value)
    if text == value and _NO_TEXT_FOR_GO.fullmatch(value):
        return f"'{value}'"
    if "\n" in text or not value.isprintable():
        text = yaml.safe_dump(value, width=2**30, allow_unicode=False, default_style='"').strip()
    return text


@lru_cache(maxsize=4096, typed=True)
def _dumped(value: Yaml) -> str:
    """Words and numbers come again and again, in a file and in the next; PyYAML sets up a whole stream for each."""
    text: str = yaml.safe_dump(value, width=2**30, allow_unicode=True, default_flow_style=True)
    return text.removesuffix("\n").removesuffix("\n...")
