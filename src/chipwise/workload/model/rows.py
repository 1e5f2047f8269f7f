"""Rows of the registry as they are written: CSV in the package, YAML in a user's own files.

A CSV cell is a number, yes or no, a word, a list parted by `|`, or empty for the default. A user's file is a list, or a
mapping with `models`, of entries like this one:

    - name: my-model
      aliases: [our-org/my-model]
      context: 8192
      shape: {layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256}

Shapes are checked where they are built; everything else about an entry is checked here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from chipwise.errors import BadInput, InvalidFile, Problem
from chipwise.workload.model.fields import LARGEST_SIZE, Fields

EXAMPLE = "Write a list of models: - {name: my-model, shape: {layers: 32, hidden: 4096, heads: 32, ffn: 14336, vocab: 32000}}."


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model before its shape is built: where it stands, what is said about it, and the fields of its shape."""

    path: str
    line: int | None
    name: str
    fields: Mapping[str, object]
    aliases: tuple[str, ...] = ()
    family: str = ""
    year: int | None = None
    context: int | None = None
    published_parameters: int | None = None
    published_precision: str = ""
    source: str = ""
    as_of: str = ""


PUBLISHED = ("bf16", "fp16", "fp32", "fp8", "fp4", "int8", "int4")  # formats of weights
ABOUT = ("name", "aliases", "family", "year", "context", "published_parameters", "published_precision", "source", "as_of")


def read_csv(path: Path) -> Iterator[ModelRow]:
    """Our own rows, trusted to be well-formed: the data tests look at every one."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        for cells in reader:
            yield ModelRow(
                path=path.name,
                line=reader.line_num,
                name=cells["name"],
                fields={name: _value(cell) for name, cell in cells.items() if cell and name not in ABOUT},
                aliases=tuple(filter(None, cells["aliases"].split("|"))),
                family=cells["family"],
                year=_number(cells["year"]),
                context=_number(cells["context"]),
                published_parameters=_number(cells["published_parameters"]),
                published_precision=cells.get("published_precision") or "",
                source=cells["source"],
                as_of=cells["as_of"],
            )


def _value(cell: str) -> object:
    if "|" in cell:
        return [_value(item) for item in cell.split("|") if item]
    if cell.isdecimal():
        return int(cell)
    return {"yes": True, "no": False}.get(cell, cell)


def _number(cell: str) -> int | None:
    return int(cell) if cell else None


def read_yaml(path: Path) -> tuple[list[ModelRow], list[Problem]]:
    """The entries of a user's file, with whatever is wrong with them apart from their shapes."""
    entries, lines = _entries(path)
    rows: list[ModelRow] = []
    problems: list[Problem] = []
    names: set[str] = set()
    for index, entry in enumerate(entries):
        line = lines[index] if index < len(lines) else None
        if not isinstance(entry, Mapping):
            problems.append(Problem(f"models[{index}]", "is not a mapping of fields.", line))
            continue
        fields = Fields(entry, f"models[{index}]")
        row = _row(fields, str(path), line)
        if row.name in names:
            fields.problem("name", f"{row.name!r} stands here twice.", "one entry for each name")
        names.add(row.name)
        problems += [replace(problem, line=line) for problem in fields.problems]
        rows.append(row)
    return rows, problems


def _row(fields: Fields, path: str, line: int | None) -> ModelRow:
    row = ModelRow(
        path=path,
        line=line,
        name=fields.text("name", longest=200),
        fields=fields.section("shape"),
        aliases=_aliases(fields),
        family=fields.text("family", "own"),
        year=fields.optional("year", low=1950, high=2200),
        context=fields.optional("context", high=10 * LARGEST_SIZE),
        published_parameters=fields.optional("published_parameters", high=10**16),
        published_precision=_precision(fields),
        source=fields.text("source", "your own file"),
        as_of=str(fields.values.get("as_of") or "")[:10] if fields.has("as_of") else "",  # YAML reads a date as a date
    )
    fields.refuse_unknown()
    return row


def _precision(fields: Fields) -> str:
    value = fields.text("published_precision", "")
    if value not in ("", *PUBLISHED):
        fields.problem("published_precision", f"{value!r} is no format that weights are published in.", ", ".join(PUBLISHED))
    return value


def _aliases(fields: Fields) -> tuple[str, ...]:
    value = fields.values.get("aliases") if fields.has("aliases") else []
    if not isinstance(value, list) or not all(isinstance(alias, str) and 0 < len(alias) <= 200 for alias in value):
        fields.problem("aliases", "is not a list of names.", "a list of text")
        return ()
    return tuple(value)


def _entries(path: Path) -> tuple[list[object], list[int]]:
    """The list in the file and the line on which each entry starts."""
    from chipwise.files.source import FileKind, read_text, read_yaml  # only who has a file of their own pays for YAML

    kind = FileKind("model list", EXAMPLE, 50_000, lists=True)
    document = read_yaml(read_text(path, kind), str(path), kind)
    if document.problems:
        raise InvalidFile(str(path), document.problems, remedy=EXAMPLE)
    top: tuple[str | int, ...] = () if "" in document.data else ("models",)
    entries = document.data.get("" if not top else "models")
    if not isinstance(entries, list) or (top and set(document.data) != {"models"}):
        raise BadInput(f"{path} holds no list of models.", remedy=EXAMPLE)
    return entries, [document.lines[(*top, index)] for index in range(len(entries))]
