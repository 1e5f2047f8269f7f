"""Charts of Helm: what their templates become, each value at the line of the template that wrote it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from chipwise.auditor.finding import Finding
from chipwise.auditor.source import Manifest, Unreadable, line_of, listed, look, relined
from chipwise.auditor.yaml_files import read_yaml

_SOURCE = re.compile(r"^# Source: [^/\n]+/(\S+)$", re.MULTILINE)
_ACTION = re.compile(r"\{\{(?:(?!\}\}).)*\}\}")
_VALUES = re.compile(r"\.Values((?:\.\w+)+)")
_OPEN, _END = re.compile(r"\{\{-?\s*(?:if|with|range|define|block)\b"), re.compile(r"\{\{-?\s*end\b")
_DOT = re.compile(r"\{\{-?\s*(?:toYaml\s+)?\.(?:\s|\}|[a-z])")
_FIELD = re.compile(r"\{\{-?[^}]*?(?<![\w.])\.([a-z]\w*)")
_ROWS_UNDER = 8
_CONTROL = re.compile(r"\{\{-?\s*(?:if|else|end|with|range|define|block|template|/\*|\$)")


def manifests(root: str, text: str, templates: Mapping[str, str]) -> Iterator[Manifest | Unreadable]:
    """Of what `helm template` wrote: every document says which template it came from."""
    marks = list(_SOURCE.finditer(text))
    for mark, after in zip(marks, [*marks[1:], None], strict=True):
        path = posixpath.join(root, mark[1])
        rows = text[mark.end() + 1 : after.start() if after else len(text)].removesuffix("---\n").splitlines()
        yield from _read(path, rows, aligned(templates.get(path, "").splitlines(), rows))


def filled(path: str, rows: Sequence[tuple[str, int]]) -> Iterator[Manifest | Unreadable]:
    """Of lines that know the line of the template that they came from."""
    yield from _read(path, [row for row, _ in rows], [line for _, line in rows])


def _read(path: str, rows: Sequence[str], lines: Sequence[int]) -> Iterator[Manifest | Unreadable]:
    for document in read_yaml(path, "\n".join(rows) + "\n"):
        if isinstance(document, Manifest):
            relined(document.body, lines or [1])
        yield document


def aligned(template: Sequence[str], rows: Sequence[str]) -> list[int]:
    """The line of the template for each row that came of it.

    Lines that are the same in both hold the rest: between two of them, a row belongs to the line whose fixed words it has, or
    to the action that wrote the whole of it."""
    lines = [0] * len(rows)
    stripped = [row.rstrip() for row in template]
    blocks = SequenceMatcher(None, stripped, [row.rstrip() for row in rows], autojunk=False).get_matching_blocks()
    at_template = at_row = 0
    for begin, row, size in blocks:
        _between(stripped, rows, (at_template, begin), (at_row, row), lines)
        for index in range(size):
            lines[row + index] = begin + index + 1
        at_template, at_row = begin + size, row + size
    return [max(1, line) for line in lines]


def _between(
    template: Sequence[str], rows: Sequence[str], of_template: tuple[int, int], of_rows: tuple[int, int], lines: list[int]
) -> None:
    position, end = of_template
    last = position  # the line before the first, counted from 1
    for index in range(*of_rows):
        matching = next((line for line in range(position, end) if _wrote(template[line], rows[index])), None)
        if matching is None:  # of a loop, or of an action that wrote several rows
            writing = next((line for line in range(position, end) if _writes(template[line])), None)
            again = next((line for line in range(len(template)) if _wrote(template[line], rows[index])), None)
            if writing is None and again is not None:
                lines[index] = again + 1
                continue
            last = writing + 1 if writing is not None else last
        else:
            position, last = matching + 1, matching + 1
        lines[index] = last


def _wrote(line: str, row: str) -> bool:
    """Whether the row has the fixed words of a line with actions."""
    if "{{" not in line:
        return False
    parts = _ACTION.split(line)
    if len("".join(parts).strip(" -:'\"")) < 1:
        return False
    return re.fullmatch(".*?".join(re.escape(part) for part in parts), row.rstrip()) is not None


def _writes(line: str) -> bool:
    """An action by itself that writes rows, such as toYaml or include."""
    return bool(_ACTION.fullmatch(line.strip())) and not _CONTROL.match(line.strip())


def with_values(finding: Finding, rows: Sequence[str], path: str, values: Any) -> Finding:
    """With the places of the values that the line of a template takes, or what stands under it."""
    text = " ".join(_rows_under(rows, finding.line - 1))
    places = []
    for reference in _VALUES.findall(text):
        keys = reference.strip(".").split(".")
        while keys and look(values, *keys) is None:
            keys.pop()
        if keys:
            places.append((path, line_of(values, *keys)))
        for item in listed(look(values, *keys)) if keys else ():  # of a loop: those that the finding speaks of
            fields = [key for key in _FIELD.findall(text) if look(item, key) is not None]
            places += [(path, line_of(item, key)) for key in fields if str(look(item, key)) in finding.what]
    return replace(finding, also=(*finding.also, *dict.fromkeys(places)))


def _rows_under(rows: Sequence[str], position: int) -> Iterator[str]:
    """A line; where it is a key alone, what it is given; and what `.` means in it."""
    yield rows[position]
    deep = len(rows[position]) - len(rows[position].lstrip())
    below = []
    for row in rows[position + 1 : position + 1 + _ROWS_UNDER] if rows[position].rstrip().endswith(":") else ():
        if row.strip() and len(row) - len(row.lstrip()) <= deep:
            break
        below.append(row)
    yield from below
    if any(_DOT.search(row) for row in (rows[position], *below)):
        opened = 0
        for row in reversed(rows[:position]):
            opened += len(_END.findall(row)) - len(_OPEN.findall(row))
            if opened < 0:
                yield row
                return
