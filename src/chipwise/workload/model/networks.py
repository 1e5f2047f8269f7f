"""The table of counted networks (`data/networks`): 2,600 rows of model zoos, found by name, and by size where one has several.

A row is read when a name is asked for that the registry lacks. `derived` tells what the source does not print and was computed:
p parameters and a activations from networks of the same kind, g multiply-accumulates from the published shape. `products` is
derived throughout, from the published depth of the family.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from chipwise.workload.model.counted import CountedShape, Layers
from chipwise.workload.model.spelled import key, names_graph, without_owner

DATA = Path(__file__).resolve().parents[2] / "data" / "networks"
_WORD = re.compile(r"[a-z]+(?:v\d)?")
_PREFIXES = ("tf_", "gluon_", "legacy_", "ssl_", "swsl_", "ig_", "tv_", "cs3", "se_", "eca_", "ese_")
_SIZED = re.compile(r"[-_@](\d{3,4})$")


@cache
def _table() -> Mapping[str, tuple[Sequence[str], ...]]:
    """Cells by folded name; a name without its owner means the first row that has it."""
    full: dict[str, list[Sequence[str]]] = {}
    bare: dict[str, list[Sequence[str]]] = {}
    with (DATA / "counted.csv").open(encoding="utf-8", newline="") as file:
        cells = csv.reader(file)
        next(cells)
        for row in cells:
            full.setdefault(key(row[0]), []).append(row)
            short = bare.setdefault(key(without_owner(row[0])), [])
            if not short or short[0][0] == row[0]:
                short.append(row)
    return {name: tuple(rows) for name, rows in (bare | full).items()}


@cache
def _sources() -> Mapping[str, str]:
    with (DATA / "sources.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["source"]: f"https://github.com/{row['repository']} at {row['commit']}" if row["repository"] else "its paper"
            for row in csv.DictReader(file)
        }


@cache
def names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(row[0] for rows in _table().values() for row in rows))


def rows_of(folded: str) -> tuple[Sequence[str], ...]:
    return _table().get(folded, ())


def shape_of(rows: Sequence[Sequence[str]], size: float = 0.0) -> CountedShape:
    """The row whose size is nearest to the one asked for; 224 pixels, or the first row, where none is."""
    wanted = size or 224.0
    row = min(rows, key=lambda cells: abs(float(cells[4] or 0.0) - wanted)) if len(rows) > 1 else rows[0]
    _, parameters, macs, activations, stated, unit, layers, products, *_ = row
    return CountedShape(
        parameters=round(1e6 * float(parameters)),
        macs=round(1e9 * float(macs)),
        activations=round(1e6 * float(activations)),
        layers=Layers(layers),
        products=int(products),
        image_size=int(stated) if unit == "px" else 0,
        seconds=int(stated) if unit == "s" else 0,
    )


def source_of(rows: Sequence[Sequence[str]]) -> str:
    derived = {"p": "parameters", "a": "activations", "g": "multiply-accumulates"}
    computed = ", ".join(derived[letter] for letter in rows[0][9])
    return _sources()[rows[0][10]] + (f"; {computed} computed" if computed else "")


@cache
def family_of(name: str) -> str:
    """What networks of one design are called: `convnext`, `efficientnetv2`; the name of a file says nothing."""
    if names_graph(name):
        return "graph"
    bare = name.rpartition("/")[2].casefold()
    for prefix in _PREFIXES:
        bare = bare.removeprefix(prefix)
    match = _WORD.match(bare.replace("-", "").replace("_", "", 1) if bare[:6] == "mobile" else bare)
    return match[0] if match else bare


def without_size(name: str) -> tuple[str, int]:
    """`vit_base_384` -> (`vit_base`, 384): a picture's size at the end of a name that the table lacks."""
    match = _SIZED.search(name)
    return (name[: match.start()], int(match[1])) if match else (name, 0)
