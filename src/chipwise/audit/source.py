"""Files as values that know their lines: what rules look at, whatever the file's language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

DEEPEST = 60  # levels of a document: a deeper one is no manifest
MOST_NODES = 200_000  # of a file, aliases counted each time they are used
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the first is libyaml's, ten times as fast


class Located(dict[str, Any]):
    """A mapping whose keys know their lines."""

    def __init__(self) -> None:
        super().__init__()
        self.line = 1
        self.lines: dict[str, int] = {}


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
    def title(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Block:
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
    blocks: tuple[Block, ...] = ()
    dockerfiles: tuple[tuple[Instruction, ...], ...] = ()
    compose: tuple[Manifest, ...] = ()
    texts: tuple[tuple[str, str], ...] = field(default=())  # path and text of every file


class Unreadable(ValueError):
    """A file that is not what its name says. `line` is where it stops making sense."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def read_yaml(path: str, text: str) -> Iterator[Manifest]:
    """The mappings of a file; other documents are no manifests."""
    try:
        _bounded(text)
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", None) or "it is not YAML"
        raise Unreadable(str(said), mark.line + 1 if mark else 1) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    left = [MOST_NODES]
    for node in nodes:
        value = _built(node, 0, left) if node is not None else None
        if isinstance(value, Located) and value.get("kind") == "List" and isinstance(value.get("items"), list):
            yield from (Manifest(path, one) for one in value["items"] if isinstance(one, Located))
        elif isinstance(value, Located):
            yield Manifest(path, value)


def _bounded(text: str) -> None:
    """Before anything is built of it: what follows goes down by recursion."""
    depth = count = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        count += isinstance(event, yaml.NodeEvent)
        if depth > DEEPEST or count > MOST_NODES:
            raise Unreadable("it is nested too deeply, or far too large", event.start_mark.line + 1)


def _built(node: yaml.Node, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if depth > DEEPEST or left[0] < 0:
        raise Unreadable("it is nested too deeply, or far too large", node.start_mark.line + 1)
    match node:
        case yaml.MappingNode():
            made = Located()
            made.line = node.start_mark.line + 1
            for key, value in node.value:
                name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""  # keys of rules are texts
                made.lines[name] = key.start_mark.line + 1
                made[name] = _built(value, depth + 1, left)
            return made
        case yaml.SequenceNode():
            return [_built(one, depth + 1, left) for one in node.value]
        case yaml.ScalarNode():
            if node.tag == "tag:yaml.org,2002:bool":
                return str(node.value).lower() in ("true", "yes", "on")
            if node.tag == "tag:yaml.org,2002:int":
                try:
                    return int(str(node.value).replace("_", ""), 0)
                except ValueError:
                    return str(node.value)
            return None if node.tag == "tag:yaml.org,2002:null" else str(node.value)
    return None


def read_dockerfile(path: str, text: str) -> tuple[Instruction, ...]:
    found: list[Instruction] = []
    began, parts = 0, list[str]()
    for at, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if not parts and (not bare or bare.startswith("#")):
            continue
        began = began if parts else at
        if bare.startswith("#"):
            continue
        parts.append(bare.removesuffix("\\").strip())
        if not bare.endswith("\\"):
            word, _, rest = " ".join(parts).partition(" ")
            found.append(Instruction(path, word.upper(), rest.strip(), began))
            parts = []
    if parts:  # the last line says that it goes on
        word, _, rest = " ".join(parts).partition(" ")
        found.append(Instruction(path, word.upper(), rest.strip(), began))
    return tuple(found)


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


def whole(value: Any) -> int:
    """A number of chips or replicas, written as one; 0 otherwise."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
