"""A scene as a Mermaid flowchart. Every sign that means something there is written by its number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from chipwise.renderer.picture.scene import Box, Look, Scene

_PLAIN = re.compile(r"[A-Za-z0-9 .,:/+%_-]")
_SHAPES = {Look.STORE: ("[(", ")]"), Look.PEOPLE: ("([", "])"), Look.DEVICE: ("[[", "]]")}
STYLES = {
    Look.JOB: ("#e8f0fe", "#1a4f9c"),
    Look.SERVICE: ("#e6f4ea", "#1e6b36"),
    Look.DEVICE: ("#fef3e0", "#8a5a00"),
    Look.STORE: ("#f3e8fd", "#5b2c8a"),
    Look.PEOPLE: ("#f1f3f4", "#444444"),
}


def mermaid(scene: Scene, comments: str) -> str:
    return "\n".join(_lines(scene, comments)) + "\n"


def label(text: str) -> str:
    return "".join(sign if _PLAIN.fullmatch(sign) else f"#{ord(sign)};" for sign in text)


def _lines(scene: Scene, comments: str) -> Iterator[str]:
    yield from ("---", f"title: {json.dumps(scene.title)}", "---")
    for line in comments.splitlines():
        yield "%% " + re.sub(r"[{}]", "", line)  # braces would make a directive of a comment
    yield "flowchart TB"
    for box in scene.boxes:
        if box.place is None:
            yield f"  {_box(box)}"
    for index, place in enumerate(scene.places):
        yield f'  subgraph p{index}["{label(place)}"]'
        yield from (f"    {_box(box)}" for box in scene.boxes if box.place == index)
        yield "  end"
    for arrow in scene.arrows:
        label_text = f'|"{label(arrow.label)}"|' if arrow.label else ""
        yield f"  {arrow.source} {'<-->' if arrow.is_two_way else '-->'}{label_text} {arrow.target}"
    for look in dict.fromkeys(box.look for box in scene.boxes):
        fill, line = STYLES[look]
        yield f"  classDef {look} fill:{fill},stroke:{line},color:#111111"


def _box(box: Box) -> str:
    left, right = _SHAPES.get(box.look, ("[", "]"))
    inside = "<br>".join([f"<b>{label(box.title)}</b>", *map(label, box.lines)])
    return f'{box.key}{left}"{inside}"{right}:::{box.look}'
