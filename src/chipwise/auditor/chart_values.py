"""Templates of a chart filled in without Helm: values, conditions and named parts, as far as that goes.

Only what charts use most is known: `.Values`, `.Release`, `.Chart`, `if`, `with`, `range`, `include`, `toYaml`,
`default`, `quote`, `printf`, `nindent`. Whatever else an action says becomes a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from chipwise.auditor.source import look, mapped

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
        return list(self._rows(list(enumerate(text.splitlines(), start=1)), self.top))

    def _rows(self, lines: Sequence[tuple[int, str]], dot: Any) -> Iterator[tuple[str, int]]:
        index = 0
        while index < len(lines):
            number, line = lines[index]
            action = _ACTION.fullmatch(line.strip())
            word, _, rest = action[1].partition(" ") if action else ("", "", "")
            index += 1
            if word in _OPENING:
                middle, end = _block(lines, index)
                value = self._value(rest, dot)
                if word == "range" and isinstance(value, list):
                    for item in value:
                        yield from self._rows(lines[index:middle], item)
                elif word in ("if", "with", "range"):
                    body = lines[index:middle] if self._holds(value) else lines[middle + 1 : end]
                    yield from self._rows(body, value if word == "with" and value is not _NOT_KNOWN else dot)
                index = end + 1
            elif action is None or not word.startswith(("/*", "$")):
                written = "".join(self._parts_of(line, dot))
                if action is None or written.strip():
                    yield from ((row, number) for row in (written.lstrip("\n") if action else written).split("\n"))

    def _parts_of(self, line: str, dot: Any) -> Iterator[str]:
        position = 0
        for action in _ACTION.finditer(line):
            yield line[position : action.start()]
            yield self._text(action[1], dot)
            position = action.end()
        yield line[position:]

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
            case "printf" if len(arguments) > 1 and _NOT_KNOWN not in arguments:
                pieces = re.split(r"%[sdvq]", str(arguments[0]))
                values = [*map(str, arguments[1:]), *[""] * len(pieces)]
                return "".join(piece + value for piece, value in zip(pieces, values, strict=False))
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


def _block(lines: Sequence[tuple[int, str]], begin: int) -> tuple[int, int]:
    """Where the `else` of a block stands, or else its end; and its end."""
    depth, middle = 1, None
    for index in range(begin, len(lines)):
        action = _ACTION.fullmatch(lines[index][1].strip())
        word = action[1].partition(" ")[0] if action else ""
        depth += (word in _OPENING) - (word == "end")
        if word == "else" and depth == 1 and middle is None:
            middle = index
        if not depth:
            return index if middle is None else middle, index
    return len(lines) if middle is None else middle, len(lines)


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
