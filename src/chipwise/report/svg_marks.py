"""Elements of SVG: lines, rectangles, symbols and texts, as markup.

Texts are markup already (`markup.label`), lines of them apart by `<br>`. Their widths are estimated: a page is drawn before
anybody measures it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import unescape

from chipwise.report.chart import INK

_LETTER = 0.62  # of the size of a text: its width per letter, on average
_CORNERS = {  # of symbols, as parts of their size
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    "triangle-up": ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    "triangle-down": ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
    "hexagon": tuple((math.sin(corner * math.pi / 3), math.cos(corner * math.pi / 3)) for corner in range(6)),
    "star": tuple(
        (
            (1.3 if corner % 2 == 0 else 0.55) * math.sin(corner * math.pi / 5),
            -(1.3 if corner % 2 == 0 else 0.55) * math.cos(corner * math.pi / 5),
        )
        for corner in range(10)
    ),
}


def symbol(x: float, y: float, name: str, size: float, colour: str, rim: tuple[str, float], tip: str) -> str:
    fill, stroke = ("none", colour) if name.endswith("-open") else (colour, rim[0])
    style = f'class="point" fill="{fill}" stroke="{stroke}" stroke-width="{rim[1]}"'
    if name not in _CORNERS:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size / 2:.1f}" {style}>{tip_element(tip)}</circle>'
    corners = joined([(x + dx * size / 2, y + dy * size / 2) for dx, dy in _CORNERS[name]])
    return f'<polygon points="{corners}" {style}>{tip_element(tip)}</polygon>'


def tip_element(tip: str) -> str:
    return f"<title>{tip.replace('<br>', chr(10))}</title>" if tip else ""


def text_width(line: str, size: float) -> float:
    return _LETTER * size * len(unescape(line))


def joined(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def line(x: float, y: float, end_x: float, end_y: float, colour: str, width: float = 1.0, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{end_x:.1f}" y2="{end_y:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"{dashed}/>'


def rect(x: float, y: float, width: float, height: float, colour: str, tip: str, kind: str = "point") -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
    return f'<rect class="{kind}" {box} fill="{colour}" stroke="{INK}" stroke-width="0.5">{tip_element(tip)}</rect>'


def text(
    x: float,
    y: float,
    words: str,
    size: int = 12,
    anchor: str = "start",
    fill: str = INK,
    turn: int = 0,
    halo: bool = False,
    wide: float = 0.0,
) -> str:
    """`halo`: readable over a line; `wide`: room that it must not leave to the right."""
    if wide and x + text_width(words, size) / 2 > wide - 4:
        x, anchor = wide - 4.0, "end"
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    look = ' class="halo"' if halo else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"{look}{turned}>{words}</text>'
