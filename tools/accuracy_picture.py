"""Predicted against measured seconds as one SVG file: a dot per row, logarithmic scales, no script, no font of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")  # Okabe and Ito's
_SIZE, _LEFT, _TOP, _PLOT = 760, 92, 70, 600
_INK, _QUIET, _GRID = "#1f2328", "#57606a", "#e4e7eb"
_UNITS = {
    -9: "1 ns",
    -6: "1 µs",
    -5: "10 µs",
    -4: "100 µs",
    -3: "1 ms",
    -2: "10 ms",
    -1: "100 ms",
    0: "1 s",
    1: "10 s",
    2: "100 s",
    3: "1,000 s",
}
Pairs = Sequence[tuple[float, float]]  # measured, predicted


def draw(families: Mapping[str, Pairs], title: str, below: str) -> str:
    values = [value for pairs in families.values() for pair in pairs for value in pair]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def place(value: float) -> float:
        return (math.log10(value) - low) / (high - low) * _PLOT

    def at(measured: float, predicted: float) -> tuple[float, float]:
        return _LEFT + place(measured), _TOP + _PLOT - place(predicted)

    size = f'width="{_SIZE}" height="{_SIZE}" viewBox="0 0 {_SIZE} {_SIZE}"'
    text = 'role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {text}>',
        f'<title id="title">{title}. {below}</title><rect width="{_SIZE}" height="{_SIZE}" fill="#ffffff"/>',
        _label(_LEFT, 26, title, size=17, weight=600),
        _label(_LEFT, 46, below, fill=_QUIET),
    ]
    for power in range(low, high + 1):
        x, y = at(10.0**power, 10.0**power)
        parts += [
            f'<path d="M{x:.1f} {_TOP}V{_TOP + _PLOT}M{_LEFT} {y:.1f}H{_LEFT + _PLOT}" stroke="{_GRID}"/>',
            _label(x, _TOP + _PLOT + 18, _tick(power), fill=_QUIET, anchor="middle"),
            _label(_LEFT - 8, y + 4, _tick(power), fill=_QUIET, anchor="end"),
        ]
    frame = f'<clipPath id="plot"><rect x="{_LEFT}" y="{_TOP}" width="{_PLOT}" height="{_PLOT}"/></clipPath>'
    parts.append(f'{frame}<g clip-path="url(#plot)">')
    for colour, pairs in zip(COLOURS, families.values(), strict=False):
        dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in sorted({at(*pair) for pair in pairs}))
        parts.append(f'<path d="{dots}" stroke="{colour}" stroke-opacity="0.55" stroke-width="3" stroke-linecap="round"/>')
    for factor, style in ((1.0, f'stroke="{_INK}" stroke-width="1.4"'), (1.25, _dashed()), (1 / 1.25, _dashed())):
        (x1, y1), (x2, y2) = at(10.0**low, factor * 10.0**low), at(10.0**high, factor * 10.0**high)
        parts.append(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" {style}/>')
    parts.append("</g>")
    for number, (name, pairs) in enumerate(families.items()):
        y = _TOP + 20 + 20 * number
        parts += [
            f'<circle cx="{_LEFT + 16}" cy="{y - 4}" r="5" fill="{COLOURS[number % len(COLOURS)]}"/>',
            _label(_LEFT + 28, y, f"{name}: {len(pairs):,} rows"),
        ]
    y = _TOP + 20 + 20 * len(families)
    parts += [
        f'<path d="M{_LEFT + 8} {y - 4}h16" {_dashed()}/>',
        _label(_LEFT + 28, y, "25% off"),
        _label(_LEFT + _PLOT / 2, _SIZE - 30, "measured: time that the value stands for", anchor="middle"),
        f'<g transform="translate(22 {_TOP + _PLOT / 2}) rotate(-90)">{_label(0, 0, "predicted", anchor="middle")}</g>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _dashed() -> str:
    return f'stroke="{_QUIET}" stroke-dasharray="6 4"'


def _tick(power: int) -> str:
    return _UNITS.get(power, f"1e{power} s")


def _label(x: float, y: float, text: str, *, fill: str = _INK, anchor: str = "start", size: int = 12, weight: int = 400) -> str:
    style = f'fill="{fill}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style} paint-order="stroke" stroke="#ffffff" stroke-width="3">{text}</text>'
