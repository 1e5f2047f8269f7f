"""YAML text as plain data, with the line of every value, safely and within a second whatever the file holds.

Read here: one document of mappings, lists, texts, numbers, true/false and null. Scalars follow the core schema of YAML 1.2,
as editors do, not the older rules of PyYAML: `NO` is Norway, `12:30` a time and `2027-01-01` a text, `1e6` a number, and
`010` stays text. Anchors, aliases and `<<` work as long as what they unfold to stays small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from chipwise.errors import BadInput, InvalidFile, Problem
from chipwise.files.handed import read_bytes
from chipwise.spelling import nearest
from chipwise.text import decimal_size

MAX_BYTES = 1_000_000  # examples are 2 kB
MAX_NODES = 5_000  # after aliases are unfolded; examples have about 100
MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a YAML file is meant to hold, for messages, and how much of it there may be."""

    noun: str = "workload"
    remedy: str = "See examples/ for complete workload files, or start from: kind: serve"
    values: int = MAX_NODES
    lists: bool = False  # whether a list may stand at the top


WORKLOAD = FileKind()


class NamedText(str):
    """The name of a workload that is not on the disk, with its text: whoever reads a file by this name gets the text.

    Relative names in the text start in the folder of the name.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, name: str, text: str) -> NamedText:
        instance = super().__new__(cls, name)
        instance.text = text
        return instance


FieldPath = tuple[str | int, ...]  # the way to a value: keys and positions
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the first is libyaml's, ten times as fast
_KNOWN_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq", "merge")}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Mapping[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says. `lines` has an entry for every value; `problems` are those that did not stop the reading.

    A list at the top, where the kind of file allows one, stands in `data` under the empty name; its lines start at ().
    """

    data: Mapping[str, object]
    lines: Mapping[FieldPath, int]
    problems: tuple[Problem, ...] = ()


def show_where(field_path: FieldPath) -> str:
    """("stages", 1, "goals") -> "stages[1].goals"."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in field_path)
    return text.removeprefix(".")[:200]


def read_text(path: str | Path, kind: FileKind = WORKLOAD) -> str:
    """The text of a file that is small enough and is text."""
    if isinstance(path, NamedText):
        return path.text
    title = str(path)
    try:
        content = read_bytes(Path(path), MAX_BYTES)
        size = Path(path).stat().st_size
    except FileNotFoundError:
        near = _similar_files(Path(path))
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise BadInput(f"There is no file {title!r}.{hint}", remedy=f"Give the path of a {kind.noun} file.") from None
    except IsADirectoryError:
        raise BadInput(
            f"{title!r} is a folder.", remedy=f"Give a file in it, such as {Path(path) / (kind.noun + '.yaml')}."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{title!r} cannot be read: {reason}.", remedy="Check the path and its permissions.") from error
    if len(content) > MAX_BYTES:
        raise _refuse(
            title,
            f"{decimal_size(size) if size > MAX_BYTES else 'this'} is too large for a {kind.noun} file; the limit is 1 MB",
            "Data and traces are named by path: give the file that names them, or split it.",
        )
    if b"\0" in content:
        raise _refuse(title, "this is not a text file: it holds NUL bytes", "Give a YAML file, saved as UTF-8.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"this is not a text file in UTF-8: byte 0x{content[error.start]:02x} at position {error.start}"
        raise _refuse(title, message, "Give a YAML file, saved as UTF-8.", line) from None


def read_yaml(text: str, path: str, kind: FileKind = WORKLOAD) -> Document:
    """The one document in the text. Raises InvalidFile where there is none that could be checked further."""
    if len(text) > MAX_BYTES:
        raise _refuse(
            path, f"{len(text):,} characters are too many for a {kind.noun} file; the limit is {MAX_BYTES:,}", kind.remedy
        )
    if "\0" in text or not _is_unicode(text):
        raise _refuse(path, "this is not text: it holds NUL or broken characters", "Give a YAML file, saved as UTF-8.")
    composer = _Composer(path, kind)
    try:
        root = composer.compose(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        raise _syntax_error(path, text, error) from None
    if root is None or root.value is None:
        raise _refuse(path, "the file is empty", kind.remedy)
    unfolded = _Unfolded(path, kind)
    if kind.lists and isinstance(root.value, list):
        return Document({"": unfolded.value(root, (), 0)}, unfolded.lines, tuple(composer.problems))
    if not isinstance(root.value, dict):
        raise _refuse(path, f"a {kind.noun} file is a mapping of fields, and this is not one", kind.remedy, root.line)
    data = unfolded.value(root, (), 0)
    assert isinstance(data, dict)
    return Document(data, unfolded.lines, tuple(composer.problems))


@dataclass(slots=True, eq=False)
class _Node:
    """A value with its line; children are nodes, and an alias is the same node again."""

    line: int
    value: dict[str, _Node] | list[_Node] | str | int | float | bool | None
    key_lines: dict[str, int] = field(default_factory=dict)
    open: bool = True


class _Composer:
    """Nodes from parser events, without recursion. Collects what is wrong but can be stepped over."""

    def __init__(self, path: str, kind: FileKind) -> None:
        self.path = path
        self.kind = kind
        self.problems: list[Problem] = []
        self.anchors: dict[str, _Node] = {}
        self.count = 0

    def compose(self, events: Iterator[yaml.Event]) -> _Node | None:
        root: _Node | None = None
        stack: list[tuple[_Node, _Node | None]] = []  # (mapping or list that is open, the key that waits for its value)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise _refuse(self.path, "a second document starts here", f"Keep one {self.kind.noun} per file.", _line(event))
            if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                closed = stack.pop()[0]
                closed.open = False
                self._merge(closed)
                continue
            if not isinstance(event, yaml.NodeEvent):
                continue
            node = self._node(event)
            if not stack:
                root = node
            else:
                parent, key = stack[-1]
                if isinstance(parent.value, list):
                    parent.value.append(node)
                elif key is None:
                    stack[-1] = (parent, node)
                else:
                    self._put(parent, key, node)
                    stack[-1] = (parent, None)
            if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                stack.append((node, None))
                if len(stack) > MAX_DEPTH:
                    raise _refuse(self.path, f"nested more than {MAX_DEPTH} levels deep", self.kind.remedy, node.line)
        return root

    def _node(self, event: yaml.NodeEvent) -> _Node:
        line = _line(event)
        self._count(1, line)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise _refuse(self.path, f"*{event.anchor} has no anchor &{event.anchor} before it", "Define it first.", line)
            target = self.anchors[event.anchor]
            if target.open:
                raise _refuse(
                    self.path, f"*{event.anchor} stands inside what it stands for, a cycle", "Write the value out.", line
                )
            return target
        tag = getattr(event, "tag", None)
        if tag not in (None, "!") and tag not in _KNOWN_TAGS:
            tag_text = tag.replace("tag:yaml.org,2002:", "!!")
            self.problems.append(Problem("", f"the tag {tag_text[:60]} is not known here", line, "plain values without tags"))
        node = _Node(line, {} if isinstance(event, yaml.MappingStartEvent) else [])
        if isinstance(event, yaml.ScalarEvent):
            plain = (event.implicit[0] or tag is not None) and tag in (None, *(_KNOWN_TAGS - {"tag:yaml.org,2002:str"}))
            node = _Node(line, _scalar(event.value) if plain else event.value, open=False)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _put(self, parent: _Node, key: _Node, node: _Node) -> None:
        assert isinstance(parent.value, dict)
        if not isinstance(key.value, str):
            key_text = str(key.value)[:60] if isinstance(key.value, int | float) else "a mapping, a list or nothing"
            self.problems.append(
                Problem("", f"{key_text} is not a field name", key.line, "text; in quotes if it looks like a number")
            )
        elif key.value in parent.value:
            first = parent.key_lines[key.value]
            self.problems.append(Problem(key.value[:60], f"is given twice, first in line {first}", key.line, "each field once"))
        else:
            parent.value[key.value] = node
            parent.key_lines[key.value] = key.line

    def _merge(self, node: _Node) -> None:
        """What `<<: *a` or `<<: [*a, *b]` brings in, under the fields that are there; the first of several wins."""
        if not isinstance(node.value, dict) or "<<" not in node.value:
            return
        merged = node.value.pop("<<")
        for source in merged.value if isinstance(merged.value, list) else [merged]:
            if not isinstance(source.value, dict):
                raise _refuse(
                    self.path, "<< takes a mapping or a list of mappings", "Give it an alias of a mapping.", source.line
                )
            self._count(len(source.value), source.line)
            for key, child in source.value.items():
                if node.value.setdefault(key, child) is child:
                    node.key_lines.setdefault(key, source.key_lines[key])

    def _count(self, added: int, line: int) -> None:
        self.count += added
        if self.count > self.kind.values:
            message = f"more than {self.kind.values:,} values are too many for a {self.kind.noun} file"
            raise _refuse(self.path, message, self.kind.remedy, line)


class _Unfolded:
    """Plain data from nodes, aliases written out, with the line of every value."""

    def __init__(self, path: str, kind: FileKind) -> None:
        self.path = path
        self.kind = kind
        self.lines: dict[FieldPath, int] = {}

    def value(self, node: _Node, field_path: FieldPath, line: int) -> object:
        self.lines[field_path] = line or node.line
        if len(self.lines) > self.kind.values:
            message = f"the aliases unfold to more than {self.kind.values:,} values"
            raise _refuse(self.path, message, "Write fewer of them.", node.line)
        if len(field_path) > MAX_DEPTH:
            raise _refuse(self.path, f"nested more than {MAX_DEPTH} levels deep", self.kind.remedy, node.line)
        if isinstance(node.value, list):
            return [self.value(item, (*field_path, index), item.line) for index, item in enumerate(node.value)]
        if isinstance(node.value, dict):
            return {key: self.value(child, (*field_path, key), node.key_lines[key]) for key, child in node.value.items()}
        return node.value


def _scalar(text: str) -> str | int | float | bool | None:
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 40 and _INT.fullmatch(text):
        return int(text)
    if len(text) <= 40 and _FLOAT.fullmatch(text) and not re.match(r"[-+]?0[0-9]", text):
        return float(text)
    return text


def _line(event: yaml.Event) -> int:
    return int(event.start_mark.line) + 1 if event.start_mark is not None else 1


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _syntax_error(path: str, text: str, error: yaml.YAMLError) -> InvalidFile:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = min(mark.line, text.count("\n")) + 1 if mark is not None else None
    message = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).splitlines()[0]
    allowed = None
    line_text = text.splitlines()[line - 1] if line is not None and line <= len(text.splitlines()) else ""
    if "\t" in line_text[: len(line_text) - len(line_text.lstrip())] or "\\t" in message:
        allowed = "blanks, not tabs, to indent"
    elif "mapping values" in message and line is not None and _too_deep(text.splitlines(), line):
        allowed = "the indentation of the line above"
    elif "mapping values" in message:
        allowed = "quotes around a text that holds ': '"
    return InvalidFile(
        path, [Problem("", f"not valid YAML: {message[:200]}", line, allowed)], remedy="Fix this first; more may follow."
    )


def _too_deep(lines: Sequence[str], line: int) -> bool:
    """Whether a field is indented below one that has a value already."""
    above = next((text for text in reversed(lines[: line - 1]) if text.strip() and not text.lstrip().startswith("#")), "")
    indents = [len(text) - len(text.lstrip()) for text in (above, lines[line - 1])]
    return indents[1] > indents[0] and re.fullmatch(r"\s*(- )?[^\s:]+:\s+[^\s&!|>].*", above) is not None


def _refuse(path: str, message: str, remedy: str, line: int | None = None) -> InvalidFile:
    return InvalidFile(path, [Problem("", message, line)], remedy=remedy)


def _similar_files(path: Path) -> tuple[str, ...]:
    try:
        names = [entry.name for entry, _ in zip(path.parent.iterdir(), range(1000), strict=False)]
    except OSError:
        return ()
    return nearest(path.name, [name for name in names if name.endswith((".yaml", ".yml"))], 1)
