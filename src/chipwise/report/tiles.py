"""The answer in a few numbers, side by side: what a reader takes along who reads no further."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chipwise.report.markup import tag, text


@dataclass(frozen=True, slots=True)
class Tile:
    label: str
    value: str
    note: str = ""


def tiles(numbers: Iterable[Tile]) -> str:
    inside = (
        tag(
            "div",
            tag("dt", text(tile.label)),
            tag("dd", text(tile.value), class_="value"),
            tag("dd", text(tile.note)) if tile.note else "",
            class_="tile",
        )
        for tile in numbers
    )
    return tag("dl", *inside, class_="tiles", id="numbers")
