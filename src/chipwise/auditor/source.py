"""Files as values that know their lines: what rules look at, whatever the file's language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class At(int):
    """A line that knows its file, where that is another than the one of its object: a patch has its own."""

    path: str

    def __new__(cls, line: int, path: str) -> At:
        place = super().__new__(cls, line)
        place.path = path
        return place

    def __add__(self, other: int) -> At:
        return At(int(self) + other, self.path)


class Located(dict[str, Any]):
    """A mapping whose keys know their lines."""

    def __init__(self) -> None:
        super().__init__()
        self.line = 1
        self.lines: dict[str, int] = {}


class LocatedList(list[Any]):
    """A sequence whose items know their lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of Kubernetes, or a Compose file."""

    path: str
    body: Located

    @property
    def kind(self) -> str:
        return str(self.body.get("kind", ""))

    @property
    def name(self) -> str:
        return str(look(self.body, "metadata", "name") or "?")

    @property
    def namespace(self) -> str:
        return str(look(self.body, "metadata", "namespace") or "")

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class TerraformBlock:
    """One block of Terraform, such as resource "aws_instance" "main"."""

    path: str
    type: str
    labels: tuple[str, ...]
    body: Mapping[str, Any]
    line: int

    @property
    def title(self) -> str:
        return ".".join(self.labels) or self.type


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile, its continued lines joined."""

    path: str
    word: str
    rest: str
    line: int


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that is looked at together: an answer to one file may stand in another."""

    manifests: tuple[Manifest, ...] = ()
    blocks: tuple[TerraformBlock, ...] = ()
    dockerfiles: tuple[tuple[Instruction, ...], ...] = ()
    compose: tuple[Manifest, ...] = ()
    texts: tuple[tuple[str, str], ...] = field(default=())  # path and text of every file


class Unreadable(ValueError):
    """A file, or a document of one, that is not what its name says. `line` is where it stops making sense; `template`: it
    becomes a manifest only when something fills it in; `foreign`: it is none of ours, and nobody need mend it."""

    def __init__(
        self, message: str, line: int = 1, *, template: bool = False, foreign: bool = False, fix: str = "Fix it first."
    ) -> None:
        super().__init__(message)
        self.line, self.template, self.foreign, self.fix = line, template, foreign, fix


def read_dockerfile(path: str, text: str) -> tuple[Instruction, ...]:
    instructions: list[Instruction] = []
    began, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if not parts and (not bare or bare.startswith("#")):
            continue
        began = began if parts else number
        if bare.startswith("#"):
            continue
        parts.append(bare.removesuffix("\\").strip())
        if not bare.endswith("\\"):
            word, _, rest = " ".join(parts).partition(" ")
            instructions.append(Instruction(path, word.upper(), rest.strip(), began))
            parts = []
    if parts:  # the last line says that it goes on
        word, _, rest = " ".join(parts).partition(" ")
        instructions.append(Instruction(path, word.upper(), rest.strip(), began))
    return tuple(instructions)


def look(value: Any, *keys: str) -> Any:
    """What stands under these keys; None where a step is missing."""
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def line_of(value: Any, *keys: str) -> int:
    """The line of the last of these keys that is there."""
    line = value.line if isinstance(value, Located) else 1
    for key in keys:
        if not isinstance(value, Located) or key not in value.lines:
            break
        line, value = value.lines[key], value.get(key)
    if isinstance(value, Located) and not keys:
        line = value.line
    return line


def mapped(value: Any) -> Mapping[str, Any]:
    """What should be a mapping; nothing where it is something else."""
    return value if isinstance(value, Mapping) else {}


def whole_number(value: Any) -> int:
    """A number of chips or replicas, written as one; 0 otherwise."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def walk(value: Any) -> Iterator[Located]:
    """Every mapping in it, itself first."""
    if isinstance(value, Located):
        yield value
        for item in value.values():
            yield from walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)


def relined(value: Any, lines: Sequence[int]) -> None:
    """Gives a value the lines of what it was made from: the first of these is the one of its own first line."""
    if isinstance(value, Located):
        value.line = lines[min(value.line, len(lines)) - 1]
        value.lines = {key: lines[min(line, len(lines)) - 1] for key, line in value.lines.items()}
        for item in value.values():
            relined(item, lines)
    elif isinstance(value, LocatedList):
        value.lines = [lines[min(line, len(lines)) - 1] for line in value.lines]
        for item in value:
            relined(item, lines)
