"""A pipeline's stages drawn as a picture: boxes with what each runs on, arrows with what is handed on, down the page.

Stages stand on levels by the longest way that leads to them; those that can run at the same time may stand beside each other.
It is plain SVG of one size. A chain fits a telephone; what is wider is scrolled sideways.
"""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.planner.explain.words import many_words
from chipwise.planner.values.pipeline import Moved, PipelinePlan, Placed
from chipwise.report.markup import tag, text
from chipwise.report.words import chips, listed, mass, short
from chipwise.text import decimal_size, duration, usd

WIDE, HIGH = 330, 122  # of a box, in pixels
HORIZONTAL_GAP, BELOW = 30, 84  # between boxes
LINE = 18
LANE = 22  # of an arrow that passes a level
_LETTERS = 44  # that fit on a line of a box
_EDGE = 10
_MOVED = {
    "in place": "stays in place",
    "other region": "other region",
    "other cloud": "other cloud",
    "own site": "from own site",
}
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 L10 5 L0 10 z" fill="#57606a"></path></marker></defs>'
)


@dataclass(frozen=True, slots=True)
class _Spot:
    level: int
    place: float  # from the left, in boxes; levels with fewer stages stand in the middle


def stage_flow(plan: PipelinePlan) -> str:
    spots, columns = _spots(plan), width_of(plan)
    down = 1 + max(one.level for one in spots.values())
    boxes = columns * WIDE + (columns - 1) * HORIZONTAL_GAP + 2 * _EDGE
    passing = [move for move in plan.hand_offs if spots[move.to].level - spots[move.source].level > 1]
    width = boxes + (LANE * len(passing) + 190 if passing else 0)
    height = down * HIGH + (down - 1) * BELOW + 2 * _EDGE
    arrows = [
        _past(move, spots, boxes, passing.index(move)) if move in passing else _arrow(move, spots) for move in plan.hand_offs
    ]
    drawn = [
        _TIP,
        *(one for one, _ in arrows),
        *(_box(one, spots[one.name]) for one in plan.stages),
        *(one for _, one in arrows),
    ]
    title = f"Stages of {plan.workload}: " + "; ".join(f"{one.name} on {one.choice.where}" for one in plan.stages)
    picture = tag("svg", *drawn, width=width, height=height, viewBox=f"0 0 {width} {height}", role="img", aria_label=title)
    return tag("div", picture, class_="wide stages", tabindex="0", role="region", aria_label="Stages and hand-offs")


def width_of(plan: PipelinePlan) -> int:
    """The most stages that stand beside each other; 1 for a chain."""
    levels = list(_levels(plan).values())
    return max(map(levels.count, levels))


def _spots(plan: PipelinePlan) -> dict[str, _Spot]:
    levels = _levels(plan)
    counts = list(levels.values())
    columns = max(map(counts.count, counts))
    spots: dict[str, _Spot] = {}
    for name, level in levels.items():
        before = sum(one.level == level for one in spots.values())
        spots[name] = _Spot(level, (columns - counts.count(level)) / 2 + before)
    return spots


def _levels(plan: PipelinePlan) -> dict[str, int]:
    levels: dict[str, int] = {}
    for stage in plan.stages:  # givers stand before takers
        levels[stage.name] = 1 + max((levels[giver] for giver in stage.after), default=-1)
    return levels


def _corner(spot: _Spot) -> tuple[float, float]:
    return _EDGE + spot.place * (WIDE + HORIZONTAL_GAP), _EDGE + spot.level * (HIGH + BELOW)


def _box(stage: Placed, spot: _Spot) -> str:
    x, y = _corner(spot)
    choice = stage.choice
    time = "service" if stage.per == "month" else duration(choice.seconds)
    emitted = "CO2e not known" if stage.per_use else f"{mass(choice.kg)} kg CO2e"
    lines = [
        f"{many_words(choice)}{choice.machine}",
        listed(choice.provider, choice.place),
        listed(chips(choice), choice.precision, choice.purchase),
        listed(f"{usd(choice.usd)}{' a month' if stage.per == 'month' else ''}", time, emitted),
    ]
    rim = "#0969da" if stage.per == "month" else "#57606a"
    frame = tag("rect", x=x, y=y, width=WIDE, height=HIGH, rx=6, fill="#ffffff", stroke=rim, stroke_width=2)
    rows = [_line(x + 14, y + 24, f"{stage.name} ({stage.kind})", "name", 38)]
    rows += [_line(x + 14, y + 46 + at * LINE, line, "told") for at, line in enumerate(lines)]
    about = "\n".join([f"{stage.name} ({stage.kind})", *lines])
    return tag("g", tag("title", text(about)), frame, *rows)


def _line(x: float, y: float, told: str, kind: str, letters: int = _LETTERS) -> str:
    return tag("text", text(short(told, letters)), x=f"{x:.0f}", y=f"{y:.0f}", class_=kind)


def _arrow(move: Moved, spots: dict[str, _Spot]) -> tuple[str, str]:
    """From the lower edge of the giver to the upper edge of the taker: (the line, what it says)."""
    (start, top), (end, bottom) = _ends(move, spots)
    middle = (top + bottom) / 2
    path = f"M{start:.0f} {top:.0f} C{start:.0f} {middle:.0f} {end:.0f} {middle:.0f} {end:.0f} {bottom:.0f}"
    return _way(move, path, (start + end) / 2 + 12, middle - 4)


def _past(move: Moved, spots: dict[str, _Spot], boxes: float, lane: int) -> tuple[str, str]:
    """Past other levels, at the right of all boxes."""
    (start, top), (end, bottom) = _ends(move, spots)
    side = boxes + LANE * lane
    path = (
        f"M{start:.0f} {top:.0f} C{start:.0f} {top + BELOW / 2:.0f} {side:.0f} {top + 10:.0f} {side:.0f} {top + BELOW:.0f} "
        f"L{side:.0f} {bottom - BELOW:.0f} "
        f"C{side:.0f} {bottom - 10:.0f} {end:.0f} {bottom - BELOW / 2:.0f} {end:.0f} {bottom:.0f}"
    )
    return _way(move, path, side + 8, top + BELOW + 22 + 40 * lane)


def _ends(move: Moved, spots: dict[str, _Spot]) -> tuple[tuple[float, float], tuple[float, float]]:
    (from_x, from_y), (to_x, to_y) = _corner(spots[move.source]), _corner(spots[move.to])
    return (from_x + WIDE / 2, from_y + HIGH), (to_x + WIDE / 2, to_y - 2)


def _way(move: Moved, path: str, x: float, y: float) -> tuple[str, str]:
    lines = moved_told(move)
    title = tag("title", text(f"{move.source} to {move.to}: {', '.join(lines)}"))
    line = f'<path d="{path}" fill="none" stroke="#57606a" stroke-width="2" marker-end="url(#tip)"></path>'
    labels = (_line(x, y + at * 16, one, "way", 30) for at, one in enumerate(lines))
    return tag("g", title, line), tag("g", *labels)


def moved_told(move: Moved) -> list[str]:
    """Two lines: how much and where to, then what it costs and how long it takes."""
    if not move.size_bytes:
        return ["nothing moves"]
    size = f"{decimal_size(move.size_bytes)}{' a month' if move.per == 'month' else ''}"
    if move.path == "in place":
        return [size, _MOVED["in place"]]
    waits = (
        "continuously" if move.per == "month" else duration(move.seconds) if move.seconds >= 120 else f"{move.seconds:.0f} s"
    )
    cost = f"{usd(move.usd)}{' a month' if move.per == 'month' else ''}" if move.usd else "free"
    return [f"{size}, {_MOVED.get(move.path, move.path)}", listed(cost, waits)]
