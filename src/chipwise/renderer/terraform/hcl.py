"""Terraform's language with comments: blocks, attributes and references, laid out as `terraform fmt` would.

Strings pass `quoting.hcl` here and nowhere else, so that text of a user never becomes an expression; an expression is a `Raw`
that we wrote ourselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chipwise.renderer.quoting import hcl, one_line
from chipwise.renderer.yaml_text import Noted

Value = object  # None (left out), bool, int, float, str, Raw, Nested, `Noted`, and sequences and mappings of them
WIDEST = 110  # characters of a list that stands on one line
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
NOTHING = object()  # a variable without a default: whoever applies must give it


@dataclass(frozen=True, slots=True)
class Raw:
    """An expression: a reference, a call, a number with a meaning. Never made of a user's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Nested:
    """A block inside a block; `labels` as in `dynamic "tag"`."""

    body: Mapping[str, Value]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a file. `comment`: what stands above it."""

    kind: str
    labels: tuple[str, ...] = ()
    body: Mapping[str, Value] = field(default_factory=dict)
    comment: str = ""


def resource(kind: str, name: str, body: Mapping[str, Value], why: str = "") -> Block:
    return Block("resource", (kind, name), body, why)


def data(kind: str, name: str, body: Mapping[str, Value], why: str = "") -> Block:
    return Block("data", (kind, name), body, why)


def output(name: str, value: Value, description: str) -> Block:
    return Block("output", (name,), {"description": description, "value": value})


def variable(name: str, kind: str, description: str, default: Value = NOTHING, check: tuple[str, str] | None = None) -> Block:
    """`check`: a condition over it, and what to say where it does not hold. A default of None is written as `null`."""
    body: dict[str, Value] = {"description": description, "type": Raw(kind)}
    if default is not NOTHING:
        body["default"] = Raw("null") if default is None else default
    if check is not None:
        body["validation"] = Nested({"condition": Raw(check[0]), "error_message": check[1]})
    return Block("variable", (name,), body)


def text_of(*parts: str | Raw) -> Raw:
    """A string with references in it: `text_of("arn:aws:s3:::", Raw("var.bucket"))`."""
    return Raw('"' + "".join(f"${{{one.text}}}" if isinstance(one, Raw) else hcl(one)[1:-1] for one in parts) + '"')


def call(name: str, *arguments: Value) -> Raw:
    return Raw(f"{name}({', '.join(_inline(one) for one in arguments)})")


def document(blocks: Iterable[Block], title: str = "") -> str:
    head = "".join(f"# {one_line(line)}\n" for line in title.splitlines())
    texts = ["".join(f"{line}\n" for line in _block(one)) for one in blocks]
    return "\n".join([head, *texts] if head else texts)


def _block(block: Block) -> Iterator[str]:
    yield from _comment(block.comment)
    yield from _braced(" ".join([block.kind, *map(hcl, block.labels)]), block.body)


def _braced(opening: str, body: Mapping[str, Value]) -> Iterator[str]:
    inner = list(_body(body))
    if not inner:
        yield f"{opening} {{}}"
        return
    yield f"{opening} {{"
    yield from (f"  {line}" if line else "" for line in inner)
    yield "}"


def _body(body: Mapping[str, Value]) -> Iterator[str]:
    """Attributes of one line stand in columns until a comment, a block or a longer one comes between, as `terraform fmt`
    has it."""
    columns: list[tuple[str, str]] = []
    begun = apart = False  # something stands above; it was a block
    for key, entry in body.items():
        reason, value = _unnoted(entry)
        if value is None or (isinstance(value, Sequence) and not isinstance(value, str) and not value and _blocks(entry)):
            continue
        if _blocks(value):
            yield from _aligned(columns)
            for pair in _nested(value):
                if begun:
                    yield ""
                inner_reason, inner = pair
                yield from _comment("\n".join(filter(None, (reason, inner_reason))))
                yield from _braced(" ".join([key, *map(hcl, inner.labels)]), inner.body)
                reason, begun, apart = "", True, True
            continue
        first, *rest = _lines(value)
        if apart:
            yield ""
            apart = False
        if reason or rest:
            yield from _aligned(columns)
        yield from _comment(reason)
        if rest:
            yield f"{_key(key)} = {first}"
            yield from rest
        else:
            columns.append((_key(key), first))
        begun = True
    yield from _aligned(columns)


def _aligned(columns: list[tuple[str, str]]) -> Iterator[str]:
    width = max((len(key) for key, _ in columns), default=0)
    yield from [f"{key:<{width}} = {text}" for key, text in columns]
    columns.clear()


def _unnoted(value: Value) -> tuple[str, Value]:
    return (value.comment, value.value) if isinstance(value, Noted) else ("", value)


def _blocks(value: Value) -> bool:
    if isinstance(value, Nested):
        return True
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return any(isinstance(_unnoted(one)[1], Nested) for one in value)


def _nested(value: Value) -> Iterator[tuple[str, Nested]]:
    for item in [value] if isinstance(value, Nested) else value if isinstance(value, Sequence) else ():
        reason, inner = _unnoted(item)
        if not isinstance(inner, Nested):
            raise TypeError("blocks and values cannot be mixed in one list")
        yield reason, inner


def _comment(why: str) -> Iterable[str]:
    return (f"# {one_line(line)}" for line in why.splitlines())


def _key(key: str) -> str:
    return key if _NAME.fullmatch(key) else hcl(key)


def _lines(value: Value) -> list[str]:
    match value:
        case Mapping() if value:
            return ["{", *(f"  {line}" for line in _body(value)), "}"]
        case Mapping():
            return ["{}"]
        case str():
            return [hcl(value)]
        case Raw():
            return value.text.split("\n")
        case Sequence():
            return _list(value)
    return [_inline(value)]


def _list(values: Sequence[Value]) -> list[str]:
    plain = not any(isinstance(one, Noted | Mapping) for one in values)
    if plain:
        short = _inline(values)
        if len(short) <= WIDEST and "\n" not in short:
            return [short]
    lines = ["["]
    for item in values:
        reason, value = _unnoted(item)
        lines += [f"  {line}" for line in _comment(reason)]
        *rest, last = _lines(value)
        lines += [f"  {line}" for line in rest] + [f"  {last},"]
    return [*lines, "]"]


def _inline(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case str():
            return hcl(value)
        case Raw():
            return value.text
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_inline(one)}" for key, one in value.items()) + " }" if value else "{}"
        case Sequence():
            return "[" + ", ".join(_inline(one) for one in value) + "]"
    raise TypeError(f"{type(value).__name__} has no form in Terraform's language")
