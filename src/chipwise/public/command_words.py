"""Commands in a sentence as calls: `chipwise ps --all` is cw.ps(everything=True) to whoever writes Python."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence

GIVEN = "arguments"  # what a workload is called that is written down nowhere: options, fields
UNNAMED = rf"(?:{GIVEN}(?:-(?P<place>\d+))?|text)"  # what messages call a workload that is no file
_NAMES = {"all": "everything", "out": "folder", "label": "labels", "secret": "secrets", "with": "components", "limit": "limits"}
_PLACEHOLDER = r"[A-Z][A-Z_]*(?:\.\w+)?"
_WORD = rf"(?:{_PLACEHOLDER}|[\w/]*[./:\d-][\w./:-]*\w|{GIVEN}|text)(?![\w(])"
_OPTION = rf"--[a-z][a-z-]*(?:[ =](?:{_PLACEHOLDER}|[\w.]+=[\w.,]+|\d[\w.]*))?"
_COMMAND = re.compile(r"`chipwise (?P<quoted>[a-z][^`\n]*)`|(?<![\w`])chipwise (?P<bare>[a-z][a-z-]*)")
_ARGUMENT = re.compile(rf" (?:{_OPTION}|-- {_PLACEHOLDER}|-- [^,;()`\n]+?(?=\.?$|\. |[,;()`\n])|{_WORD})")

Parameters = Callable[[str], Sequence[str] | None]  # the keywords of a function by its name, None where there is none


def as_calls(text: str, parameters: Parameters) -> str:
    """The same sentence with calls."""
    pieces: list[str] = []
    start = 0
    while (command := _COMMAND.search(text, start)) is not None:
        end = command.end() if command["quoted"] else _end(text, command, parameters)
        quote = "`" if command["quoted"] else ""
        words = command["quoted"] or text[command.start("bare") : end]
        call = _call(_split(words), parameters)
        pieces += [text[start : command.start()], text[command.start() : end] if call is None else f"{quote}{call}{quote}"]
        start = end
    return "".join([*pieces, text[start:]])


def _end(text: str, command: re.Match[str], parameters: Parameters) -> int:
    """Where a command without quotes ends: behind the last word that is none of a sentence."""
    end = command.end()
    inner = re.compile(r" ([a-z][a-z-]*)").match(text, end)
    if inner is not None and parameters(f"{command['bare']}_{inner[1].replace('-', '_')}") is not None:
        end = inner.end()
    while (argument := _ARGUMENT.match(text, end)) is not None:
        end = argument.end()
    return end


def _call(words: Sequence[str], parameters: Parameters) -> str | None:
    if words[:1] == ["render"] and "--list" in words:
        return "cw.targets()"
    for count in (2, 1):
        name = "_".join(words[:count]).replace("-", "_")
        if len(words) >= count and (known := parameters(name)) is not None:
            return f"cw.{name}({', '.join(_arguments(words[count:], known))})"
    return None


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _arguments(words: Sequence[str], known: Sequence[str]) -> Iterable[str]:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            yield f"[{', '.join(map(_text, rest))}]"
            return
        if not word.startswith("--"):
            yield _text(word)
            continue
        option, _, value = word.partition("=")
        name = option[2:].replace("-", "_")
        keyword = name if name in known else _NAMES.get(name, name)
        if not value and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        if keyword in known:
            yield f"{keyword}={_value(value)}"


def _value(text: str) -> str:
    key, equals, inner = text.partition("=")
    return f'{{"{key}": {_text(inner)}}}' if equals else _text(text) if text else "True"


def _text(word: str) -> str:
    return "..." if re.fullmatch(UNNAMED, word) or not word else word if re.fullmatch(r"\d+", word) else f'"{word}"'
