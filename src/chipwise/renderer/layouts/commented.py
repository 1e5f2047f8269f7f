"""Rendered YAML read back with its comments: `document(*read(text).values, title=read(text).title) == text`.

It reads what `yaml_text` writes and no other layout: a comment stands above the entry or the item that it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from chipwise.renderer.yaml_text import Noted, Yaml

_COMMENT = re.compile(r"\s*(- )?# ?(.*)")


@dataclass(frozen=True, slots=True)
class Commented:
    title: str
    values: tuple[Yaml, ...]


def read(text: str) -> Commented:
    lines = text.split("\n")
    end = next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))
    title = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:end])
    nodes = list(yaml.compose_all(text, yaml.SafeLoader))
    reader = _Reader(lines, end, {line for node in nodes for line in _inside_scalars(node)})
    return Commented(title, tuple(reader.value(node) for node in nodes if node is not None))


def _inside_scalars(node: yaml.Node | None) -> Iterator[int]:
    """Lines below the first of every scalar: a script may have lines that look like comments."""
    match node:
        case yaml.ScalarNode():
            yield from range(node.start_mark.line + 1, node.end_mark.line + (node.end_mark.column > 0))
        case yaml.MappingNode():
            for key, value in node.value:
                yield from _inside_scalars(key)
                yield from _inside_scalars(value)
        case yaml.SequenceNode():
            for item in node.value:
                yield from _inside_scalars(item)


class _Reader:
    def __init__(self, lines: list[str], start: int, scalars: set[int]) -> None:
        self._lines, self._start, self._scalars = lines, start, scalars
        self._loader = yaml.SafeLoader("")

    def value(self, node: yaml.Node) -> Yaml:
        match node:
            case yaml.MappingNode():
                return {
                    self._loader.construct_object(key): self._noted(
                        self.value(value), key.start_mark.line, key.start_mark.column
                    )
                    for key, value in node.value
                }
            case yaml.SequenceNode():
                column = node.start_mark.column
                return [self._noted(self.value(item), self._dash(item.start_mark.line, column), column) for item in node.value]
        scalar: Yaml = self._loader.construct_object(node)
        return scalar

    def _dash(self, line: int, column: int) -> int:
        """Of the item that begins on this line: above it, where a comment on its first entry stands behind the dash."""
        while line > self._start and not self._lines[line][column:].startswith("-"):
            line -= 1
        return line

    def _noted(self, value: Yaml, line: int, column: int) -> Yaml:
        above: list[str] = []
        for index in range(line - 1, self._start - 1, -1):
            matched = _COMMENT.fullmatch(self._lines[index]) if index not in self._scalars else None
            if matched is None or self._lines[index].find("#") != column:
                break
            above.insert(0, matched[2])
            if matched[1]:
                break
        return Noted(value, "\n".join(above)) if above else value
