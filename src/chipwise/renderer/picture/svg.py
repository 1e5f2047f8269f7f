"""A scene as an SVG that needs nothing else: dark text on light ground, readable at 1,000 pixels."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape

from chipwise.renderer.picture.mermaid import STYLES
from chipwise.renderer.picture.scene import Arrow, Box, Look, Scene

WIDTH = 1000.0
NARROWEST = 190.0  # of a place
WIDEST, WIDEST_OUTSIDE = 330.0, 560.0  # of a box
MARGIN, GUTTER, PAD = 24.0, 34.0, 12.0
TIGHT = 260.0  # a place narrower than this has less room beside its boxes
TITLE, TEXT, SMALL = 20.0, 13.0, 12.0
LINE = 18.0
GAP = 64.0  # between rows: arrows bend there, and carry their labels
TOP = 92.0
LANE_HEAD = 34.0
BETWEEN = 12.0  # places
# Widths of letters in plain fonts, as parts of their height, rather more than less.
NARROW, USUAL, BROAD = 0.34, 0.57, 0.9
_NARROW, _BROAD = frozenset("iIjltfr.,:;'|!()[]- "), frozenset("mwMW@%…")
ENTERED = 24.0  # more room under a place's name, where arrows come in there


@dataclass(frozen=True, slots=True)
class Drawn:
    box: Box
    x: float
    y: float
    wide: float
    high: float
    lines: tuple[str, ...]  # broken to fit

    @property
    def bottom(self) -> float:
        return self.y + self.high


@dataclass(frozen=True, slots=True)
class Lane:
    x: float
    wide: float


def svg(scene: Scene) -> str:
    wide = max(WIDTH, 2 * MARGIN + NARROWEST * len(scene.places))
    count = len(scene.places)
    lane_width = (wide - 2 * MARGIN - BETWEEN * (count - 1)) / count
    lanes = [Lane(MARGIN + (lane_width + BETWEEN) * at, lane_width) for at in range(count)]
    head = LANE_HEAD + (ENTERED if any(box.place is None and box.row == 0 for box in scene.boxes) else 0)
    drawn = {one.box.key: one for one in _layout(scene, lanes, wide, head)}
    inside = [one for one in drawn.values() if one.box.place is not None]
    span = (min(one.y for one in inside) - head - 8, max(one.bottom for one in inside) + 16)
    high = max(one.bottom for one in drawn.values()) + MARGIN + 14
    parts = [*_head(scene, wide), *_lanes(lanes, span), *_arrows(scene, drawn, lanes, span)]
    parts += _names(scene, lanes, span[0])  # over the arrows, which come in there
    for shape in drawn.values():
        parts += _box(shape)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}" '
        f'role="img" font-family="Helvetica, Arial, sans-serif">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def width_of(text: str, size: float) -> float:
    """Of a text, rather too much: signs of East Asia and pictures are as wide as they are high, and more."""
    return sum(map(_width, text)) * size


def _width(sign: str) -> float:
    if ord(sign) > 0x1F000:
        return 1.4
    if unicodedata.east_asian_width(sign) in "WF":
        return 1.05
    if sign in _NARROW:
        return NARROW
    return BROAD if sign in _BROAD else 0.7 if sign.isupper() or not sign.isascii() else USUAL


def fitted(text: str, room: float, size: float) -> str:
    if width_of(text, size) <= room:
        return text
    while text and width_of(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def broken(text: str, room: float, size: float, line_limit: int = 2) -> list[str]:
    """Into at most so many lines, after commas where there are some, else at blanks; what is left over is cut."""
    lines, words = [""], re.split(r"(?<=,) ", text) if "," in text else text.split(" ")
    for index, word in enumerate(words):
        longer = f"{lines[-1]} {word}".strip()
        if width_of(longer, size) <= room or not lines[-1]:
            lines[-1] = longer
        elif len(lines) == line_limit:
            lines[-1] = " ".join([lines[-1], *words[index:]])
            break
        else:
            lines.append(word)
    return [fitted(line, room, size) for line in lines]


# -- where everything stands


def _layout(scene: Scene, lanes: list[Lane], wide: float, head: float) -> Iterator[Drawn]:
    """Row by row; boxes of one row and place stand beside each other. What is outside stands over or under all places."""
    y, inner_rows = TOP, {box.row for box in scene.boxes if box.place is not None}
    for row in range(scene.rows):
        if row == min(inner_rows):
            y += head
        elif row > max(inner_rows):
            y += 16
        cells: dict[int | None, list[Box]] = defaultdict(list)
        for box in scene.boxes:
            if box.row == row:
                cells[box.place].append(box)
        drawn = [
            shape
            for place, boxes in cells.items()
            for shape in _side_by_side(
                boxes, lanes[place] if place is not None else Lane(MARGIN, wide - 2 * MARGIN), place is None
            )
        ]
        high = max(one.high for one in drawn)
        yield from (replace(one, y=y + (high - one.high) / 2) for one in drawn)
        y += high + GAP


def _side_by_side(boxes: list[Box], lane: Lane, outside: bool) -> Iterator[Drawn]:
    gutter = GUTTER if lane.wide >= TIGHT else GUTTER - 12
    room = lane.wide - 2 * gutter
    width = min(
        (room - PAD * (len(boxes) - 1)) / len(boxes), WIDEST_OUTSIDE if outside and boxes[0].look is Look.PEOPLE else WIDEST
    )
    left = lane.x + gutter + (room - width * len(boxes) - PAD * (len(boxes) - 1)) / 2
    for index, box in enumerate(boxes):
        lines = tuple(part for line in box.lines for part in broken(line, width - 2 * PAD, SMALL))
        high = 2 * PAD + LINE * (1 + len(lines)) + (10 if box.look is Look.STORE else 0)
        yield Drawn(box=box, x=left + index * (width + PAD), y=0.0, wide=width, high=high, lines=lines)


# -- what is drawn


def _head(scene: Scene, wide: float) -> Iterator[str]:
    yield f'<rect width="{wide:g}" height="100%" fill="#ffffff"/>'
    shape = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse"'
    yield f'<defs><marker id="tip" {shape}><path d="M0 0 10 5 0 10z" fill="#333333"/></marker></defs>'
    yield f"<title>{escape(scene.title)}</title>"
    yield _text(MARGIN, 40, fitted(scene.title, wide - 2 * MARGIN, TITLE * 1.05), TITLE, bold=True)
    yield _text(MARGIN, 64, fitted(scene.subtitle, wide - 2 * MARGIN, TEXT), TEXT, fill="#444444")


def _lanes(lanes: list[Lane], span: tuple[float, float]) -> Iterator[str]:
    top, bottom = span
    for lane in lanes:
        yield (
            f'<rect x="{lane.x:g}" y="{top:g}" width="{lane.wide:g}" height="{bottom - top:g}" rx="10" '
            'fill="#fafafa" stroke="#b5b5b5" stroke-dasharray="5 4"/>'
        )


def _names(scene: Scene, lanes: list[Lane], top: float) -> Iterator[str]:
    for name, lane in zip(scene.places, lanes, strict=True):
        label = fitted(name, lane.wide - 28, TEXT * 1.05)
        yield _text(lane.x + 14, top + 22, label, TEXT, bold=True, fill="#333333", halo=True)


def _box(shape: Drawn) -> Iterator[str]:
    fill, line = STYLES[shape.box.look]
    if shape.box.look is Look.STORE:
        x, y, w, bottom, ry = shape.x, shape.y + 8, shape.wide, shape.bottom - 8, 8
        yield (
            f'<path d="M{x:g} {y:g}v{bottom - y:g}a{w / 2:g} {ry} 0 0 0 {w:g} 0v{y - bottom:g}a{w / 2:g} {ry} 0 0 0 {-w:g} 0'
            f'a{w / 2:g} {ry} 0 0 0 {w:g} 0" fill="{fill}" stroke="{line}" stroke-width="1.5"/>'
        )
    else:
        corner = shape.high / 2 if shape.box.look is Look.PEOPLE else 6
        yield (
            f'<rect x="{shape.x:g}" y="{shape.y:g}" width="{shape.wide:g}" height="{shape.high:g}" rx="{min(corner, 26):g}" '
            f'fill="{fill}" stroke="{line}" stroke-width="1.5"/>'
        )
    y = shape.y + PAD + 13 + (10 if shape.box.look is Look.STORE else 0)
    room, middle = shape.wide - 2 * PAD, shape.x + shape.wide / 2
    yield _text(middle, y, fitted(shape.box.title, room, TEXT * 1.1), TEXT + 1, bold=True, anchor="middle")
    for number, text in enumerate(shape.lines, 1):
        yield _text(middle, y + LINE * number, text, SMALL, anchor="middle", fill="#222222")


def _arrows(scene: Scene, drawn: dict[str, Drawn], lanes: list[Lane], span: tuple[float, float]) -> Iterator[str]:
    """Each leaves and enters a box at a point of its own."""
    leaving: dict[str, list[int]] = defaultdict(list)
    entering: dict[tuple[str, bool], list[int]] = defaultdict(list)  # by side: from above, from below
    for index, arrow in enumerate(scene.arrows):
        leaving[arrow.source].append(index)
        entering[arrow.target, _down(arrow, drawn)].append(index)
    for arrows in leaving.values():
        arrows.sort(key=lambda at: drawn[scene.arrows[at].target].x)
    for arrows in entering.values():
        arrows.sort(key=lambda at: drawn[scene.arrows[at].source].x)
    bends: dict[float, int] = defaultdict(int)
    detours: dict[int, int] = defaultdict(int)
    for index, arrow in enumerate(scene.arrows):
        source, target = drawn[arrow.source], drawn[arrow.target]
        down = _down(arrow, drawn)
        incoming = entering[arrow.target, down]
        x1, x2 = _port(source, leaving[arrow.source], index), _port(target, incoming, index)
        way = _way(source, target, x1, x2, drawn, span, bends, detours, lanes)
        yield _line(way, arrow.is_two_way)
        if arrow.label:
            x, y = way[-1]
            yield _label(arrow, x, y - 14 if down else y + 18, target, (incoming.index(index), len(incoming)))


def _way(
    source: Drawn,
    target: Drawn,
    x1: float,
    x2: float,
    drawn: dict[str, Drawn],
    span: tuple[float, float],
    bends: dict[float, int],
    detours: dict[int, int],
    lanes: list[Lane],
) -> list[tuple[float, float]]:
    """It bends in the gap before its target, or outside of all places where it comes from there; where a box stands in its
    way it goes through the gutter of that box's place."""
    down = target.box.row > source.box.row
    step = 1 if down else -1
    y1, y2 = (source.bottom, target.y) if down else (source.y, target.bottom)
    if abs(x1 - x2) < 6:
        x1 = x2
    outside = source.box.place is None
    level = (span[0] if down else span[1]) - step * 14 if outside else y2 - step * 30
    bend = level - step * 5 * (bends[level] % 5)
    run, ends = (x2, (bend, y2)) if outside else (x1, (y1, bend))
    blocked = [
        shape
        for shape in drawn.values()
        if shape is not source
        and shape is not target
        and shape.x - 4 < run < shape.x + shape.wide + 4
        and min(ends) < shape.y + shape.high / 2 < max(ends)
    ]
    if x1 != x2 or blocked:
        bends[level] += 1
    if blocked:
        place = blocked[0].box.place or 0
        gutter = max(min(one.x for one in blocked) - 10 - 6 * (detours[place] % 4), lanes[place].x + 4)
        detours[place] += 1
        if outside:
            return [(x1, y1), (x1, bend), (gutter, bend), (gutter, y2 - step * 30), (x2, y2 - step * 30), (x2, y2)]
        return [(x1, y1), (x1, y1 + step * 14), (gutter, y1 + step * 14), (gutter, bend), (x2, bend), (x2, y2)]
    return [(x1, y1), (x2, y2)] if x1 == x2 else [(x1, y1), (x1, bend), (x2, bend), (x2, y2)]


def _down(arrow: Arrow, drawn: dict[str, Drawn]) -> bool:
    return drawn[arrow.target].box.row > drawn[arrow.source].box.row


def _port(one: Drawn, ports: list[int], at: int) -> float:
    return one.x + one.wide * (ports.index(at) + 1) / (len(ports) + 1)


def _line(points: list[tuple[float, float]], two_way: bool) -> str:
    way = " ".join(f"{x:g},{y:g}" for x, y in points)
    start = ' marker-start="url(#tip)"' if two_way else ""
    return f'<polyline points="{way}" fill="none" stroke="#333333" stroke-width="1.4" marker-end="url(#tip)"{start}/>'


def _label(arrow: Arrow, x: float, y: float, target: Drawn, port: tuple[int, int]) -> str:
    """Right of its arrow; where several come in, the first one's stands left of it, and those between stand higher."""
    index, count = port
    room = target.wide / 2 + 24 if count <= 2 else max(target.wide / (count + 1) + 10, 60)
    label = fitted(arrow.label, room, SMALL)
    if count > 1 and index == 0:
        return _text(x - 7, y, label, SMALL, anchor="end", fill="#222222", halo=True)
    return _text(x + 7, y - (13 if 0 < index < count - 1 else 0), label, SMALL, fill="#222222", halo=True)


def _text(
    x: float, y: float, text: str, size: float, bold: bool = False, anchor: str = "", fill: str = "#111111", halo: bool = False
) -> str:
    extra = ' font-weight="bold"' if bold else ""
    extra += f' text-anchor="{anchor}"' if anchor else ""
    extra += ' paint-order="stroke" stroke="#ffffff" stroke-width="4"' if halo else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{extra}>{escape(text)}</text>'
