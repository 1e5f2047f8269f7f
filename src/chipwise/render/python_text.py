"""Python files: constants from the plan over a program that is the same for everybody.

A constant is written as a formatter would leave it, so that a rendered script needs no pass of one. Text of users stands in
literals only, never in code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.render.quoting import one_line

WIDTH = 128
PROGRAM_LINES = 10  # of a text: from here on it is a program


@dataclass(frozen=True, slots=True)
class Constant:
    """`NAME = value`, with the reason a reader would ask for."""

    name: str
    value: object
    why: str = ""


def script(heading: str, usage: str, imports: str, constants: Sequence[Constant], program: str) -> str:
    """A whole file: shebang, what it is, imports, the plan's constants, the program."""
    head = "".join(f"# {one_line(line)}\n" if line else "#\n" for line in heading.splitlines())
    settings = "".join(constant_text(one) for one in constants)
    told = usage.strip() + ("\n" if "\n" in usage.strip() else "")
    return f'#!/usr/bin/env python3\n{head}"""{told}"""\n\n{imports.strip()}\n\n{settings}\n\n{program.strip()}\n'


def constant_text(one: Constant) -> str:
    why = "".join(f"# {one_line(line)}\n" for line in one.why.splitlines())
    flat = f"{one.name} = {literal(one.value, 0, len(one.name) + 3)}"
    if isinstance(one.value, str) and len(flat) > WIDTH and len(literal(one.value)) + 4 <= WIDTH:
        flat = f"{one.name} = (\n    {literal(one.value)}\n)"
    return f"{why}{flat}\n"


def literal(value: object, indent: int = 0, used: int = 0) -> str:
    """`used`: columns that stand before it on its line."""
    match value:
        case str():
            return string(value)
        case Mapping():
            return _block("{", "}", [f"{string(str(key))}: " for key in value], list(value.values()), indent, used)
        case tuple():
            if len(value) == 1:
                return f"({literal(value[0], indent, used + 1)},)"
            return _block("(", ")", [""] * len(value), list(value), indent, used)
        case Sequence():
            return _block("[", "]", [""] * len(value), list(value), indent, used)
        case float() if value.is_integer():
            return repr(int(value))
    return repr(value)


def string(text: str) -> str:
    """Double quotes, unless they need more escapes than single ones."""
    text = text.encode("utf-8", "replace").decode()  # half of a pair of surrogates is no text
    if _read_by_people(text):
        return '"""' + text.replace("\\", "\\\\") + '"""'
    quote = '"' if text.count('"') <= text.count("'") else "'"
    return quote + "".join(f"\\{sign}" if sign in ("\\", quote) else _sign(sign) for sign in text) + quote


def _read_by_people(text: str) -> bool:
    """A program of a shell stands as it is, line by line, where nothing in it needs an escape but backslashes."""
    lines = text.split("\n")
    plain = all(line.isprintable() and line == line.rstrip() for line in lines)
    return len(lines) >= PROGRAM_LINES and plain and '"""' not in text and not text.startswith('"') and not text.endswith('"')


def _sign(sign: str) -> str:
    return sign if sign in ("'", '"') else repr(sign)[1:-1]


def _block(left: str, right: str, heads: list[str], values: list[object], indent: int, used: int) -> str:
    flat = left + ", ".join(head + literal(value) for head, value in zip(heads, values, strict=True)) + right
    if "\n" not in flat and indent + used + len(flat) + 1 <= WIDTH:
        return flat
    pad = " " * (indent + 4)
    lines = [f"{pad}{head}{literal(value, indent + 4, len(head) + 1)},\n" for head, value in zip(heads, values, strict=True)]
    return left + "\n" + "".join(lines) + " " * indent + right
