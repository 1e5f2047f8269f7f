"""EC2 names taken apart: class, generation, attributes and size, each with its meaning.

    p4de.24xlarge = p (training GPUs) . 4th generation . d (local disks) e (extra memory) . 24xlarge (96 vCPU)

The meanings are data (`data/ec2_classes.csv`, `data/ec2_attributes.csv`); a size in x-large counts four vCPU each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chipwise.catalog.tables import read_rows

_NAME = re.compile(
    r"(?P<class>u|mac|hpc|inf|trn|dl|vt|gr|im|is|[acdfghimprtxz])"
    r"(?P<generation>-\d+tb\d*|1?\d)(?P<attributes>[a-z]*)(?:-(?P<variant>[a-z0-9]+))?"
    r"(?:\.(?P<size>nano|micro|small|medium|large|xlarge|\d+xlarge|metal(?:-\d+xl)?))?"
)
_SMALL = {"nano": 2, "micro": 2, "small": 2, "medium": 1, "large": 2, "xlarge": 4}


class ClassMeaning(NamedTuple):
    """What the letters before the generation mean."""

    letters: str
    group: str
    title: str
    meant_for: str


class AttributeMeaning(NamedTuple):
    """What a letter or word behind the generation means."""

    attribute: str
    title: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Ec2Name:
    """A parsed name. `size` is None for a family (`p4de`)."""

    text: str
    family: str
    meaning: ClassMeaning
    generation: str
    attributes: tuple[AttributeMeaning, ...]
    size: str | None
    size_meaning: str | None


@lru_cache(maxsize=4)
def classes(data: Path) -> dict[str, ClassMeaning]:
    return {row.letters: row for row in read_rows(data / "ec2_classes.csv", ClassMeaning)}


@lru_cache(maxsize=4)
def attributes(data: Path) -> dict[str, AttributeMeaning]:
    return {row.attribute: row for row in read_rows(data / "ec2_attributes.csv", AttributeMeaning)}


def parse(text: str, data: Path) -> Ec2Name | None:
    """The parts of an EC2 name, or None when it is not one."""
    match = _NAME.fullmatch(text.strip().lower().removeprefix("ml."))
    if match is None or match["class"] not in classes(data):
        return None
    letters, variant = match["attributes"], match["variant"]
    known = attributes(data)
    if any(letter not in known for letter in letters) or (
        variant and variant not in known and match["class"] not in ("u", "mac")
    ):
        return None
    parts = [known[letter] for letter in letters]
    if variant in known:
        parts.append(known[variant])
    family = match["class"] + match["generation"] + letters + (f"-{variant}" if variant else "")
    return Ec2Name(
        text=text,
        family=family,
        meaning=classes(data)[match["class"]],
        generation=match["generation"].lstrip("-"),
        attributes=tuple(parts),
        size=match["size"],
        size_meaning=_size(match["size"]),
    )


def _size(size: str | None) -> str | None:
    if size is None:
        return None
    if size.startswith("metal"):
        rest = size.removeprefix("metal").lstrip("-").removesuffix("xl")
        return "the whole server without a hypervisor" + (f", {int(rest) * 4} vCPU" if rest else "")
    if size in _SMALL:
        return f"{size}: about {_SMALL[size]} vCPU"
    count = int(size.removesuffix("xlarge"))
    return f"{count} x xlarge: {count * 4} vCPU by the naming rule"
