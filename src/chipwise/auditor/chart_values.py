"""Templates of a chart filled in without Helm: values, conditions and named parts, as far as that goes.

Only what charts use most is known: `.Values`, `.Release`, `.Chart`, `if`, `with`, `range` (once), `include`, `toYaml`,
`default`, `quote`, `nindent`. Whatever else an action says becomes a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from chipwise.auditor.source import listed, look, mapped

_ACTION = re.compile(r"\{\{-?\s*((?:(?!\}\}).)*?)\s*-?\}\}")
_COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
_OPENING = ("if", "with", "range", "define", "block")
_WORD = re.compile(r"\"[^\"]*\"|\([^()]*\)|[^\s|]+")
_UNKNOWN = "release-name"


class Chart:
    """Values and named parts that templates use."""

    def __init__(self, name: str, version: str, values: Any, helpers: str) -> None:
        self.top = {
            "Values": values if isinstance(values, Mapping) else {},
            "Release": {"Name": _UNKNOWN, "Namespace": "default", "Service": "Helm"},
            "Chart": {"Name": name, "AppVersion": version, "Version": version},
        }
        helpers = _COMMENT.sub("", helpers)
        self.parts = {name: helpers[begin:end].strip("\n") for name, begin, end, _, _ in _parts(helpers)}

    def fill(self, text: str) -> list[tuple[str, int]]:
        """Rows, each with the line of the template that wrote it."""
        text = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)
        for _, _, _, begin, end in list(_parts(text)):  # parts that it defines are written where they are included
            text = text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]
        rows: list[tuple[str, int]] = []
        stack: list[tuple[bool, Any]] = []  # whether the block is written, and what `.` means in it
        for number, line in enumerate(text.splitlines(), start=1):
            action = _ACTION.fullmatch(line.strip())
            word = action[1].split()[0] if action and action[1] else ""
            is_written, dot = all(open_ for open_, _ in stack), stack[-1][1] if stack else self.top
            if word in _OPENING:
                value = self._value(action[1][len(word) :].strip(), dot) if action else None
                stack.append((word not in ("define", "block") and self._holds(value), self._inner(word, value, dot)))
            elif word == "else":
                if stack:
                    stack[-1] = (not stack[-1][0], stack[-1][1])
            elif word == "end":
                stack[-1:] = []
            elif is_written and not (word.startswith(("/*", "$")) and action):
                written = "".join(self._parts_of(line, dot))
                if action and not written.strip():
                    continue
                rows += [(row, number) for row in (written.lstrip("\n") if action else written).split("\n")]
        return rows

    def _parts_of(self, line: str, dot: Any) -> Iterator[str]:
        position = 0
        for action in _ACTION.finditer(line):
            yield line[position : action.start()]
            yield self._text(action[1], dot)
            position = action.end()
        yield line[position:]

    def _inner(self, word: str, value: Any, dot: Any) -> Any:
        if word == "with":
            return value
        return next(iter(listed(value)), dot) if word == "range" else dot

    def _holds(self, value: Any) -> bool:
        return value is _NOT_KNOWN or bool(value)

    def _text(self, action: str, dot: Any) -> str:
        value = self._value(action, dot)
        if value is _NOT_KNOWN or value is None:
            return _UNKNOWN if value is _NOT_KNOWN else ""
        if isinstance(value, bool):
            return str(value).lower()
        return value if isinstance(value, str) else str(value)

    def _value(self, action: str, dot: Any) -> Any:
        """A pipeline: what the first command gives goes to the next as its last word."""
        value: Any = None
        for position, command in enumerate(_piped(action)):
            words = [one.strip() for one in _WORD.findall(command)]
            value = self._command(words, dot, [value] if position else [])
        return value

    def _command(self, words: list[str], dot: Any, piped: list[Any]) -> Any:
        if not words:
            return None
        name, arguments = words[0], [self._word(one, dot) for one in words[1:]] + piped
        match name:
            case "toYaml" if arguments:
                return yaml.safe_dump(_plain(arguments[-1]), default_flow_style=False).rstrip("\n") if arguments[-1] else "{}"
            case "nindent" | "indent" if len(arguments) > 1:
                rows = [f"{' ' * int(str(arguments[0]))}{row}" if row else row for row in str(arguments[-1]).split("\n")]
                return ("\n" if name == "nindent" else "") + "\n".join(rows)
            case "quote" | "squote" if arguments:
                return f'"{arguments[-1]}"'
            case "default" if len(arguments) > 1:
                return arguments[-1] or arguments[0]
            case "not" if arguments:
                return not self._holds(arguments[-1])
            case "include" | "template" if arguments:
                part = self.parts.get(str(arguments[0]))
                return _UNKNOWN if part is None else "\n".join(row for row, _ in Chart.fill(self, part)).strip("\n")
            case "and" | "or":
                return all(map(self._holds, arguments)) if name == "and" else any(map(self._holds, arguments))
            case "trunc" | "trimSuffix" | "tpl" | "toString" | "int" | "lower" | "replace" | "required" if arguments:
                return arguments[0] if name == "tpl" else arguments[-1]
        return self._word(name, dot) if len(words) == 1 else _NOT_KNOWN

    def _word(self, word: str, dot: Any) -> Any:
        if word.startswith('"'):
            return word.strip('"')
        if word.startswith("("):
            return self._value(word[1:-1], dot)
        if word == ".":
            return dot
        if word == "$":
            return self.top
        if word.startswith((".", "$.")):
            keys = word.removeprefix("$").strip(".").split(".")
            return look(self.top if keys[0] in self.top else mapped(dot), *keys)
        return int(word) if word.isdecimal() else _NOT_KNOWN


_NOT_KNOWN = object()


def _parts(text: str) -> Iterator[tuple[str, int, int, int, int]]:
    """Named parts by `define`, each up to the `end` of its own: where what they hold begins and ends, and where they do."""
    name, began, opened, depth = "", 0, 0, 0
    for action in _ACTION.finditer(text):
        word, _, rest = action[1].partition(" ")
        if word == "define" and not depth:
            name, began, opened = rest.strip().strip('"'), action.end(), action.start()
        depth += (word in _OPENING) - (word == "end")
        if word == "end" and not depth and name:
            yield name, began, action.start(), opened, action.end()
            name = ""


def _piped(action: str) -> list[str]:
    """Commands between bars that stand outside of quotes and brackets."""
    parts, depth, quoted = [""], 0, False
    for sign in action:
        quoted ^= sign == '"'
        depth += (sign == "(") - (sign == ")") if not quoted else 0
        if sign == "|" and not quoted and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _plain(value: Any) -> Any:
    """Without lines, as the writer of YAML wants it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
